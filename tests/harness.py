"""The real service for a test: a database of its own, real Celery workers, web server, commands.

    def test_a_killed_worker_s_run_goes_on(service):
        worker = service.start_worker()
        run = service.json("start_run", "greet", "--input", '{"name": "Ada"}')
        worker.kill()
        service.start_worker()
        wait_for(lambda: service.json("show_run", run["id"])["status"] == "completed")

While the fixture `service` is in use Django's own connection in the test's process is bound to the
service's database too: models and `runs.start` work on it. Nothing is rolled back; the database is
dropped at the end. Choose the broker before the first process: `service.broker = LOST` drops every
doorbell (each process then has a private broker in its memory).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from django.conf import settings
from django.db import connections
from psycopg.rows import dict_row

from config import leash
from config.home import BASE_DIR
from config.processes import web_command, worker_command
from tests import machine
from tests.databases import DatabaseServer
from tests.waiting import wait_for

PGMQ = ""  # the default: bells travel over the service's own PostgreSQL
LOST = "memory://"  # every bell is lost: only the sweeps find work


@dataclass(frozen=True)
class Done:
    """What a finished command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


class Child:
    """A process that the test started, with its output in a file."""

    def __init__(self, name: str, command: Sequence[str], env: dict[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._popen = subprocess.Popen(
                command, cwd=BASE_DIR, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Process id; the process leads its own session."""
        return self._popen.pid

    @property
    def is_alive(self) -> bool:
        """Whether it still runs (a stopped one does); a finished one is reaped by asking."""
        return self._popen.poll() is None

    def output(self) -> str:
        """All that it has written so far, both streams."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """`kill -9`, and reaps it."""
        self._popen.kill()
        self._popen.wait(10)

    def terminate(self) -> None:
        """Sends SIGTERM; see `wait`."""
        self._popen.send_signal(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: it neither works nor dies, until `proceed`."""
        self._popen.send_signal(signal.SIGSTOP)
        wait_for(lambda: psutil.Process(self.pid).status() == psutil.STATUS_STOPPED, what="SIGSTOP")

    def proceed(self) -> None:
        """SIGCONT."""
        self._popen.send_signal(signal.SIGCONT)

    def wait(self, timeout: float = 20) -> int:
        """Its exit code; raises subprocess.TimeoutExpired."""
        return self._popen.wait(timeout)

    def close(self) -> None:
        """Ends it for good, with all that it started."""
        if self.is_alive:
            children = psutil.Process(self.pid).children(recursive=True)
            self.kill()
            for child in children:
                if child.is_running():
                    child.kill()


class Web(Child):
    """A running web server; `url` has no slash at its end."""

    url: str


class Service:
    """One installation of Signoff for one test; made by the fixture `service`."""

    def __init__(self, server: DatabaseServer) -> None:
        self.server = server
        self.database = server.create()
        self.folder = Path(tempfile.mkdtemp(prefix="signoff-service-"))
        self.broker = PGMQ
        self.env: dict[str, str] = {}  # more variables for the processes, or other values
        self.children: list[Child] = []
        self._own: psycopg.Connection[dict[str, Any]] | None = None

    # -- commands ----------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        """What the service's processes get as environment."""
        ours = {
            leash.VARIABLE: str(os.getpid()),  # a test session that is killed leaves no workers behind
            "SIGNOFF_ENV": "test",
            "DATABASE_URL": self.url,
            "SIGNOFF_HOME": str(self.folder),
            "SIGNOFF_BROKER_URL": self.broker,
            "SIGNOFF_CHAIN_KEY": settings.SIGNOFF_CHAIN_KEY,
            "SIGNOFF_SECRET_KEY": settings.SECRET_KEY,
            "SIGNOFF_COMMAND_DECISIONS": "1",
            "SIGNOFF_LOG_LEVEL": "INFO",
        }
        return machine.environment(**{**ours, **self.env, **more})

    def manage(self, *args: str, text: str | None = None, timeout: float = 60, **env: str) -> Done:
        """Runs `manage.py ARGS` to its end; `text` is its standard input. Never raises for its exit code."""
        done = subprocess.run(
            [sys.executable, "manage.py", *args],
            cwd=BASE_DIR,
            env=self.environment(**env),
            input=text or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def json(self, *args: str, text: str | None = None, timeout: float = 60, **env: str) -> Any:
        """Runs `manage.py ARGS --json`; the one value that it prints. It must end well."""
        done = self.manage(*args, "--json", text=text, timeout=timeout, **env)
        assert done.code == 0, f"manage.py {' '.join(args)} ended with {done.code}: {done.err or done.out}"
        return json.loads(done.out)

    # -- processes ---------------------------------------------------------------------------

    def start_worker(self, *options: str, threads: int = 4, wait: bool = True, **env: str) -> Child:
        """A real Celery worker, with more options for `celery worker`; `wait` until it takes work."""
        name = f"worker-{len(self.children) + 1}"
        command = [*worker_command(threads=threads), *options]
        worker = Child(name, command, self.environment(**env), self.folder)
        self.children.append(worker)
        if wait:
            self._until(worker, lambda: "worker_ready" in worker.output())
        return worker

    def start_web(self, **env: str) -> Web:
        """The real web server on a free port of the loopback interface."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        name = f"web-{len(self.children) + 1}"
        env = {"SIGNOFF_BASE_URL": url, **env}
        web = Web(name, web_command(port=port), self.environment(**env), self.folder)
        web.url = url
        self.children.append(web)
        self._until(web, lambda: _answers(url))
        return web

    def _until(self, child: Child, ready: Any) -> None:
        wait_for(lambda: ready() or not child.is_alive, timeout=30, what=f"{child.name} is ready")
        assert child.is_alive, f"{child.name} ended:\n{child.output()}"

    # -- the database ------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The database's address, for psycopg and DATABASE_URL."""
        return self.server.url(self.database)

    def connect(self, **options: Any) -> psycopg.Connection[dict[str, Any]]:
        """A connection of the test's own; rows come as dicts."""
        return psycopg.connect(self.url, row_factory=dict_row, **options)

    def rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        """The rows of one statement, committed."""
        if self._own is None or self._own.closed:  # kept: tests look fifty times a second, and connecting is dear
            self._own = self.connect(autocommit=True)
        cursor = self._own.execute(query.encode(), params or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, query: str, *params: Any) -> Any:
        """The first column of the first row."""
        return next(iter(self.rows(query, *params)[0].values()))

    def terminate_sessions(self, child: Child) -> int:
        """Ends all database sessions of a process (pg_terminate_backend); how many there were."""
        query = (
            "SELECT count(pg_terminate_backend(pid)) AS n FROM pg_stat_activity "
            "WHERE datname = %s AND application_name LIKE %s"
        )
        return int(self.value(query, self.database, f"%signoff-{child.pid}"))

    def restart_postgres(self) -> None:
        """Restarts the session's server in the middle of everything; Django's sessions here are new after it."""
        connections.close_all()
        self._hang_up()
        self.server.restart()

    def close(self) -> None:
        """Ends every process and drops the database."""
        for child in self.children:
            child.close()
        self._hang_up()
        self.server.drop(self.database)

    def _hang_up(self) -> None:
        if self._own is not None:
            self._own.close()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except OSError:
        return False
    return True
