"""`manage.py up`: the whole service on one machine, under one supervisor."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from config import database, demo, env
from config.checks import require_sound_settings
from config.child import Child, announce, say
from config.postgres import EmbeddedPostgres, PostgresError
from config.postgres_process import is_free
from config.processes import web_command, worker_command
from config.supervisor import Supervisor
from journal import leases

HOST = "127.0.0.1"
FIRST_PORT, PORTS = 8000, 100
LAST_PORT = 65535  # of TCP
STOPS = {signal.SIGINT, signal.SIGTERM}


class Command(BaseCommand):
    """Starts database (unless DATABASE_URL is set), web and workers; Ctrl-C stops them all."""

    help = "Run the service on this machine: database, web, workers. Ctrl-C stops everything."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options of DESIGN's table that exist so far."""
        parser.add_argument("--demo", action="store_true", help="add demo people and runs, print how to sign in")
        parser.add_argument("--port", type=int, help=f"web port (default: the first free one from {FIRST_PORT})")
        parser.add_argument("--workers", type=int, default=2, help="number of worker processes (default: 2)")
        parser.add_argument("--no-web", action="store_true", help="workers only")

    def handle(self, *args: Any, **options: Any) -> None:
        """Runs until a signal."""
        if options["workers"] < 0:
            raise CommandError("--workers must be 0 or more")
        if options["port"] is not None and not 1 <= options["port"] <= LAST_PORT:
            raise CommandError(f"--port must be from 1 to {LAST_PORT}")
        # Until the supervisor listens, SIGTERM unwinds as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with _only_one():
                pass  # refused before anything is touched
            # Held back while the database starts, and over an exec: whoever started it stops it.
            signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
            postgres = _database()
            with _only_one(), _stopping(postgres):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
                self._run(postgres, options)
        except PostgresError as error:
            raise CommandError(str(error)) from error

    def _run(self, postgres: EmbeddedPostgres | None, options: dict[str, Any]) -> None:
        require_sound_settings()
        call_command("migrate", verbosity=0, skip_checks=True, interactive=False)
        sign_ins = demo.seed() if options["demo"] else []
        connections.close_all()
        children: list[Child] = []
        environment: dict[str, str] = {}
        if not options["no_web"]:
            port = _port(options["port"])
            environment["SIGNOFF_BASE_URL"] = env.text("SIGNOFF_BASE_URL", f"http://{HOST}:{port}")
            children.append(Child("web", web_command(port=port, host=HOST), environment))
            announcement = partial(_announce, f"http://{HOST}:{port}", sign_ins)
            threading.Thread(target=announcement, name="announce", daemon=True).start()
        children += [
            Child(f"worker-{number}", worker_command(), environment, holds_runs=True)
            for number in range(1, options["workers"] + 1)
        ]
        supervisor = Supervisor(children, prove_dead=_prove_dead, postgres=postgres)
        supervisor.listen()
        say(f"started: {', '.join(child.name for child in children) or 'the database'} (Ctrl-C stops)")
        supervisor.run()


def _prove_dead(pid: int) -> None:
    leases.prove_dead(pid=pid)


@contextmanager
def _only_one() -> Iterator[None]:
    """Refuses a second `up` in the same home."""
    home: Path = settings.SIGNOFF_HOME
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (home / "up.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise CommandError(f"`up` runs already in {home} (process {file.read().strip() or '?'})") from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _database() -> EmbeddedPostgres | None:
    """The embedded database, started; None where DATABASE_URL names another one."""
    if env.secret("DATABASE_URL"):
        return None
    postgres = EmbeddedPostgres(settings.SIGNOFF_HOME)
    postgres.start()
    if database.address() != settings.DATABASE_ADDRESS:
        # The settings were read before this database was there, or on another port: read them
        # again. The server goes on; the new image of this process adopts it.
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606
    return postgres


@contextmanager
def _stopping(postgres: EmbeddedPostgres | None) -> Iterator[None]:
    try:
        yield
    finally:
        if postgres:
            postgres.stop()
        say("stopped")


def _port(wanted: int | None) -> int:
    if wanted is not None:
        if not is_free(wanted):
            raise CommandError(f"port {wanted} is in use; without --port the next free one is taken")
        return wanted
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        if is_free(port):
            return port
    raise CommandError(f"no free port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1}; give one with --port")


def _announce(url: str, sign_ins: list[str]) -> None:
    """Says where the service is, once it answers."""
    while not _answers(url):
        time.sleep(0.1)
    for line in [f"Signoff is at {url}", *sign_ins]:
        announce(line)


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/sign-in/", timeout=5).close()  # noqa: S310
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except OSError:
        return False
    return True
