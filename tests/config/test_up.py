"""`manage.py up`: one supervisor for database, web and workers, on a home of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from config.home import BASE_DIR
from config.postgres import EmbeddedPostgres
from tests import machine
from tests.waiting import wait_for

STARTED: list[Up] = []  # by the test at hand


class Up:
    """A running `manage.py up` in `home`."""

    def __init__(self, home: Path, *options: str, **env: str) -> None:
        self.home = home
        self.log = home.parent / f"up-{len(list(home.parent.glob('up-*')))}.log"
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "manage.py", "up", *options],
                cwd=BASE_DIR,
                env=machine.environment(SIGNOFF_HOME=str(home), **env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        STARTED.append(self)

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def until(self, pattern: str, timeout: float = 40) -> re.Match[str]:
        """Waits for a line of its output."""

        def found() -> re.Match[str] | None:
            match = re.search(pattern, self.output(), re.MULTILINE)
            assert match or self.popen.poll() is None, f"`up` ended:\n{self.output()}"
            return match

        match = wait_for(found, timeout, f"{pattern} in the output of `up`")
        assert match
        return match

    def children(self, word: str) -> list[psutil.Process]:
        """Its own children whose command has the word."""
        return [child for child in psutil.Process(self.popen.pid).children() if word in " ".join(child.cmdline())]

    def stop(self, sign: signal.Signals = signal.SIGINT) -> int:
        self.popen.send_signal(sign)
        return self.popen.wait(40)

    def workers_ready(self, count: int) -> None:
        wait_for(lambda: self.output().count("worker_ready") >= count, 40, f"{count} workers are ready")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    yield folder
    for up in STARTED:
        up.popen.kill()
        up.popen.wait()
    STARTED.clear()
    for process in psutil.process_iter(["pid", "environ"]):
        if (process.info["environ"] or {}).get("SIGNOFF_HOME") == str(folder):
            process.kill()
    EmbeddedPostgres(folder).destroy()


def deaths(home: Path) -> dict[int, str]:
    """Grade of death by process id."""
    url = EmbeddedPostgres(home).url
    assert url
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT pid, death FROM journal_worker WHERE death IS NOT NULL").fetchall())


def test_the_demo_serves_and_stops_cleanly(home: Path) -> None:
    up = Up(home, "--demo", "--workers", "1")
    url = up.until(r"^Signoff is at (http://127\.0\.0\.1:\d+)$").group(1)
    accounts = re.findall(r"^sign in: (\S+) (\S+) \((.*)\)$", up.output(), re.MULTILINE)
    for_what = {name: words for name, _, words in accounts}
    assert len(for_what) == len(accounts) >= 2
    assert (for_what["mara"], for_what["olga"]) == ("finance", "operator")
    with urllib.request.urlopen(f"{url}/sign-in/", timeout=10) as answer:
        assert answer.status == 200
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    up.workers_ready(1)
    processes = psutil.Process(up.popen.pid).children(recursive=True)
    assert up.stop() == 0
    _, alive = psutil.wait_procs(processes, timeout=1)  # one that has ended is there until the system takes it away
    assert alive == []
    assert not EmbeddedPostgres(home).is_running()
    assert "Traceback" not in up.output()


def test_started_again_it_goes_on_with_the_same_accounts(home: Path) -> None:
    printed = []
    for _ in range(2):
        up = Up(home, "--demo", "--workers", "0")
        up.until(r"^Signoff is at")
        printed.append(re.findall(r"^sign in: .*$", up.output(), re.MULTILINE))
        assert up.stop(signal.SIGTERM) == 0
    assert printed[0] == printed[1] != []


def test_a_killed_worker_is_proved_dead_and_replaced(home: Path) -> None:
    up = Up(home, "--no-web", "--workers", "2")
    up.workers_ready(2)
    before = {child.pid for child in up.children("celery")}
    assert len(before) == 2
    victim = min(before)
    wait_for(lambda: len(_registered(home)) == 2, what="both workers are registered")
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: deaths(home).get(victim) == "proved", 5, "the death is written down")
    up.workers_ready(3)
    after = {child.pid for child in up.children("celery")}
    assert len(after) == 2
    assert victim not in after
    assert up.stop() == 0


def _registered(home: Path) -> list[int]:
    url = EmbeddedPostgres(home).url
    assert url
    with psycopg.connect(url) as connection:
        return [pid for (pid,) in connection.execute("SELECT pid FROM journal_worker WHERE stopped_at IS NULL")]


def test_a_second_one_is_refused_and_other_commands_find_the_database_of_the_home(home: Path) -> None:
    up = Up(home, "--no-web", "--workers", "0")
    up.until("started")
    other = Up(home)
    assert other.popen.wait(40) == 1
    assert other.output().strip() == f"CommandError: `up` runs already in {home} (process {up.popen.pid})"
    done = subprocess.run(
        [sys.executable, "manage.py", "list_workers", "--json"],
        cwd=BASE_DIR,
        env=machine.environment(SIGNOFF_HOME=str(home)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
    assert up.stop() == 0


def test_children_end_with_a_supervisor_that_was_killed_and_the_database_is_adopted(home: Path) -> None:
    up = Up(home, "--workers", "1")
    up.until(r"^Signoff is at")
    up.workers_ready(1)
    children = [*up.children("celery"), *up.children("gunicorn")]
    assert len(children) == 2
    database = EmbeddedPostgres(home).pid()
    up.stop(signal.SIGKILL)
    wait_for(lambda: not any(child.is_running() for child in children), 20, "the children end by themselves")
    again = Up(home, "--no-web", "--workers", "1")
    again.workers_ready(1)
    assert EmbeddedPostgres(home).pid() == database
    assert again.stop() == 0
    assert not EmbeddedPostgres(home).is_running()


def test_a_database_that_died_is_started_again(home: Path) -> None:
    up = Up(home, "--no-web", "--workers", "1")
    up.workers_ready(1)
    pid = EmbeddedPostgres(home).pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: EmbeddedPostgres(home).pid() not in (None, pid) and EmbeddedPostgres(home).is_running(), 20)
    assert up.stop() == 0


def test_a_port_that_is_asked_for_and_busy_is_an_error(home: Path) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        up = Up(home, "--port", str(port))
        assert up.popen.wait(40) == 1
    assert f"CommandError: port {port} is in use" in up.output()
    assert not EmbeddedPostgres(home).is_running()


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999"])
def test_a_port_that_is_none_is_an_error(home: Path, port: str) -> None:
    up = Up(home, f"--port={port}")
    assert up.popen.wait(40) == 1
    assert up.output().splitlines() == ["CommandError: --port must be from 1 to 65535"]


def test_workflows_that_do_not_load_start_nothing(home: Path, tmp_path: Path) -> None:
    shop = tmp_path / "broken_shop.py"
    shop.write_text("import journal\n1 / 0\n", encoding="utf-8")
    up = Up(home, SIGNOFF_WORKFLOWS="broken_shop", PYTHONPATH=str(tmp_path))
    assert up.popen.wait(40) == 1
    reason = f"module broken_shop does not load: {shop}:2: ZeroDivisionError: division by zero"
    said = [line for line in up.output().splitlines() if not line.startswith("up ")]
    assert said == [f"settings: signoff.E013: SIGNOFF_WORKFLOWS: {reason}"]
    assert "started" not in up.output()
    assert not EmbeddedPostgres(home).is_running()


def test_ctrl_c_while_it_starts_leaves_nothing_running(home: Path) -> None:
    up = Up(home, "--no-web", "--workers", "0")
    wait_for(lambda: EmbeddedPostgres(home).is_running(), 20)
    assert up.stop(signal.SIGTERM) in (0, 130)
    wait_for(lambda: not EmbeddedPostgres(home).is_running(), 5)
    assert "Traceback" not in up.output()
