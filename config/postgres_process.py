"""What the embedded server's process tells of itself: its pid file, its port, its log."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil

HOST = "127.0.0.1"
_STATUS_LINE = 7  # the eighth line of postmaster.pid: starting, ready, stopping …


def server_pid(data: Path) -> int | None:
    """Process id of the server that runs on this data folder, or None.

    A pid file outlives a server that was killed, and its number may have gone to another
    process since: only a `postgres` started on this very folder counts.
    """
    lines = _pid_file(data)
    try:
        process = psutil.Process(int(lines[0]))
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        command = process.cmdline()
    except (IndexError, ValueError, psutil.NoSuchProcess):
        return None
    return process.pid if str(data) in command else None


def server_status(data: Path) -> str:
    """`ready`, `starting`, `stopping` or, when no server runs, ``""``."""
    lines = _pid_file(data)
    if len(lines) <= _STATUS_LINE or server_pid(data) is None:
        return ""
    return lines[_STATUS_LINE].strip()


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def disown_stale_pid_file(data: Path) -> None:
    """Lets a start go on although the dead server's number now belongs to some other process.

    PostgreSQL takes a pid file for stale when it names the starting process's parent, which we
    are. The rest of the file must stay: by its shared memory key the new server sees whether
    backends of the dead one are still at work.
    """
    lines = _pid_file(data)
    if lines and server_pid(data) is None:
        path = data / "postmaster.pid"
        path.write_text("\n".join([str(os.getpid()), *lines[1:], ""]), encoding="utf-8")


def free_port() -> int:
    """A port of the loopback interface that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether the port can be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def environment() -> dict[str, str]:
    """The server's environment: none of ours, which holds the service's secrets."""
    return {"PATH": os.defpath, "LC_ALL": "C"}


def log_after(path: Path, offset: int) -> str:
    """The log from this byte on."""
    with path.open("rb") as log:
        log.seek(offset)
        return log.read().decode(errors="replace")


def last_line(text: str) -> str:
    """The last line that says something; PostgreSQL's own prefix stays."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it gave no reason"
