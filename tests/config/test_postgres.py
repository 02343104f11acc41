"""The embedded PostgreSQL: starts, is adopted, survives, and opens nobody's folders."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from config.home import BASE_DIR
from config.postgres import EmbeddedPostgres, PostgresError
from tests.waiting import wait_for

NOBODY = 65534


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "closed" / "home"
    folder.parent.mkdir(mode=0o700)
    yield folder
    EmbeddedPostgres(folder).destroy()


def ask(url: str, query: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return str(row[0])


def test_a_start_is_harmless_when_it_runs_already(home: Path) -> None:
    first, second = EmbeddedPostgres(home), EmbeddedPostgres(home)
    url = first.start()
    pid = first.pid()
    assert second.start() == url == second.url
    assert second.pid() == pid
    assert ask(url, "SHOW fsync") == ask(url, "SHOW synchronous_commit") == "on"
    assert ask(url, "SHOW server_encoding") == "UTF8"


def test_a_stop_is_harmless_when_it_is_down(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    postgres.stop()
    postgres.start()
    postgres.stop()
    postgres.stop()
    assert not postgres.is_running()
    assert postgres.pid() is None


def test_the_data_survive_a_restart_on_the_same_port(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    url = postgres.start()
    ask(url, "SELECT 1 FROM (SELECT set_config('x.y', '', false)) AS ignored")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    assert postgres.restart() == url
    assert ask(url, "SELECT n FROM kept") == "42"


def test_it_wants_the_password_and_listens_on_loopback_only(home: Path) -> None:
    url = EmbeddedPostgres(home).start()
    assert ask(url, "SHOW listen_addresses") == "127.0.0.1"
    assert ask(url, "SHOW unix_socket_directories") == ""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url, password="guess")
    assert (home / "postgres.json").stat().st_mode & 0o777 == 0o600


def test_no_parent_folder_is_opened_up(home: Path) -> None:
    parents = [home.parent, *home.parent.parents]
    before = [path.stat().st_mode for path in parents]
    EmbeddedPostgres(home).start()
    assert [path.stat().st_mode for path in parents] == before
    assert home.stat().st_mode & 0o077 == 0


def test_the_server_of_a_supervisor_that_was_killed_is_adopted(home: Path) -> None:
    code = (
        "import os, sys, pathlib; from config.postgres import EmbeddedPostgres\n"
        "EmbeddedPostgres(pathlib.Path(sys.argv[1])).start(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, home], cwd=BASE_DIR, check=False)
    assert done.returncode == -signal.SIGKILL
    postgres = EmbeddedPostgres(home)
    assert postgres.is_running()
    pid = postgres.pid()
    url = postgres.start()
    assert postgres.pid() == pid
    assert ask(url, "SELECT 1") == "1"
    postgres.stop()
    assert not postgres.is_running()


def test_a_killed_server_starts_again_and_has_lost_nothing(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    with psycopg.connect(postgres.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    pid = postgres.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: postgres.pid() is None, what="the server is dead")
    assert ask(postgres.start(), "SELECT n FROM kept") == "42"


def test_a_stale_pid_file_with_somebody_else_s_number_does_not_hinder(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    postgres.start()
    pid_file = next(iter(_data(home).glob("postmaster.pid")))
    lines = pid_file.read_text(encoding="utf-8").splitlines()
    os.kill(int(lines[0]), signal.SIGKILL)
    wait_for(lambda: postgres.pid() is None, what="the server is dead")
    pid_file.write_text("\n".join([str(_somebody_else()), *lines[1:], ""]), encoding="utf-8")
    assert postgres.pid() is None
    postgres.start()
    assert postgres.is_running()


def _data(home: Path) -> Path:
    log = EmbeddedPostgres(home).log_path()
    assert log is not None
    return log.parent / "data"


def _somebody_else() -> int:
    """A live process that PostgreSQL would take for a running server: not its parent, nor theirs."""
    return next(pid for pid in psutil.pids() if pid not in (os.getpid(), os.getppid()))


def test_a_port_that_was_taken_meanwhile_is_exchanged(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    before = postgres.start()
    postgres.stop()
    port = int(before.rsplit(":", 1)[1].split("/")[0])
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        after = postgres.start()
    assert after != before
    assert ask(after, "SELECT 1") == "1"


def test_deleting_the_home_means_an_empty_database(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    with psycopg.connect(postgres.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE gone AS SELECT 1")
    old = _data(home).parent
    postgres.stop()
    shutil.rmtree(home)
    assert ask(postgres.start(), "SELECT count(*) FROM pg_tables WHERE tablename = 'gone'") == "0"
    if old.exists():  # as root: the data are not inside the home
        shutil.rmtree(old)


def test_data_that_are_gone_are_not_silently_replaced(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    postgres.start()
    postgres.stop()
    shutil.rmtree(_data(home))
    with pytest.raises(PostgresError, match="the data of this home is gone"):
        postgres.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_keeps_everything_in_the_home() -> None:
    folder = Path("/tmp") / f"signoff-test-{os.getpid()}"
    folder.mkdir(mode=0o700)
    shutil.copytree(BASE_DIR / "config", folder / "config")
    os.chown(folder, NOBODY, NOBODY)
    code = (
        "import sys, pathlib; from config.postgres import EmbeddedPostgres\n"
        "postgres = EmbeddedPostgres(pathlib.Path(sys.argv[1]) / 'home'); postgres.start()\n"
        "print(postgres.log_path()); postgres.stop()"
    )
    try:
        done = _as_nobody(_python_for_nobody(), "-c", code, str(folder), cwd=folder)
        assert done.stdout.strip() == str(folder / "home" / "postgres" / "server.log"), done.stderr
    finally:
        shutil.rmtree(folder)


def _python_for_nobody() -> str:
    """A Python that an ordinary user can run, with our packages; this one may lie in root's home."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if _as_nobody(python, "-c", "import psutil, psycopg, django").returncode == 0:
                return python
        except OSError:
            continue
    pytest.skip("no Python that an ordinary user could run with these packages")


def _as_nobody(*command: str, cwd: Path = Path("/")) -> subprocess.CompletedProcess[str]:
    packages = str(Path(psycopg.__file__).parent.parent)
    environment = {"PATH": os.defpath, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
