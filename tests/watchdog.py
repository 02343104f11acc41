"""Cleans up after a test session that was killed: `python -m tests.watchdog HOME`, holding a pipe to it.

The pipe closes when the session's process ends, however it ends. After an orderly end nothing is left to do.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from config.home import BASE_DIR
from config.postgres import EmbeddedPostgres


def watch(home: Path) -> subprocess.Popen[bytes]:
    """Starts the watchdog over the embedded server of `home`; closing its standard input lets it look."""
    command = [sys.executable, "-m", "tests.watchdog", str(home)]
    return subprocess.Popen(command, cwd=BASE_DIR, stdin=subprocess.PIPE, start_new_session=True)


def main(home: Path) -> None:
    """Waits for the end of the pipe, then stops the server and deletes what it left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.read(sys.stdin.fileno(), 1)
    EmbeddedPostgres(home).destroy()
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
