"""One child process of `up`: started, followed, reaped, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO

from config.home import BASE_DIR
from config.leash import VARIABLE

HEALTHY = 10.0  # seconds of life after which an end counts as a first one
LONGEST_PAUSE = 30.0  # seconds between two starts


class Child:
    """A command that is to run as long as `up` does."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], *, holds_runs: bool = False) -> None:
        self.name = name
        self.holds_runs = holds_runs
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None
        self._follower: threading.Thread | None = None
        self._started_at = 0.0
        self._early_ends = 0
        self.start_at = 0.0  # on the monotonic clock

    @property
    def pid(self) -> int | None:
        """Process id while it runs or waits to be reaped."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Starts it in a session of its own, so that Ctrl-C reaches `up` alone."""
        self._started_at = time.monotonic()
        self._process = subprocess.Popen(
            self._command,
            cwd=BASE_DIR,
            env={**os.environ, **self._environment, VARIABLE: str(os.getpid()), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._follower = threading.Thread(target=self._follow, args=(self._process.stdout,), daemon=True)
        self._follower.start()

    def reap(self) -> tuple[int, int] | None:
        """(process id, exit code) of a process that has ended, once; None while it runs."""
        if self._process is None or self._process.poll() is None:
            return None
        ended = (self._process.pid, self._process.returncode)
        self._process = None
        if self._follower:
            self._follower.join(1)
        return ended

    def schedule_restart(self) -> float:
        """Sets when to start it again, and returns the pause: none at first, longer for a child that keeps ending."""
        now = time.monotonic()
        self._early_ends = 0 if now - self._started_at > HEALTHY else self._early_ends + 1
        pause = min(LONGEST_PAUSE, 0.25 * 2**self._early_ends) if self._early_ends > 1 else 0.0
        self.start_at = now + pause
        return pause

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Sends a signal to the process, or to all that it started too."""
        if self._process is None or self._process.poll() is not None:
            return
        if group:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def _follow(self, output: IO[str]) -> None:
        with output:
            for line in output:
                if line.strip():
                    say(line.rstrip("\n"), who=self.name)


def say(text: str, *, who: str = "up") -> None:
    """One line of output, with who says it; whole lines, whichever thread writes."""
    announce(f"{who:<9}| {text}")


def announce(line: str) -> None:
    """One line for people and programs that wait for it."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        pass  # nobody reads any more: what matters is that the children go on, and stop cleanly
