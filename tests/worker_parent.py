"""Forks real Celery workers from a process that has imported everything: a new worker is there in a moment.

Reads one line a worker, its log file; answers with its process id. A line `reap PID` waits for one that has died.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import django

django.setup()

from config.celery import app  # noqa: E402 - Django has to be set up before the tasks are imported
from config.processes import worker_command  # noqa: E402
from journal import registry  # noqa: E402


def main() -> None:
    registry.load_authors_modules()
    app.loader.import_default_modules()
    arguments = worker_command(threads=int(os.environ["SIGNOFF_TEST_THREADS"]))
    arguments = arguments[arguments.index("worker") :]
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "reap":
            os.waitpid(int(argument), 0)
            print("reaped", flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            become_a_worker(argument, arguments)
        print(pid, flush=True)


def become_a_worker(log: str, arguments: list[str]) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with Path(log).open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    app.worker_main(arguments)
    os._exit(0)


if __name__ == "__main__":
    main()
