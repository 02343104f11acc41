"""`up`'s main loop: keeps the children running, tells what died, and stops all in order.

Only a child that this process itself has reaped counts as proved dead (ENGINE: three grades).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from django.db import DatabaseError, connections

from config.child import Child, say
from config.postgres import EmbeddedPostgres, PostgresError

TICK = 0.1  # seconds; a killed worker is noticed within one
LOOK_AT_DATABASE = 1.0  # seconds
PATIENCE = 30.0  # seconds for the children to end what they are at


class Supervisor:
    """Runs `children` until SIGINT or SIGTERM; a second signal ends the patience."""

    def __init__(
        self,
        children: list[Child],
        *,
        prove_dead: Callable[[int], None],
        postgres: EmbeddedPostgres | None = None,
    ) -> None:
        self.children = children
        self._prove_dead = prove_dead
        self._postgres = postgres
        self._reaped: list[int] = []  # whose death is not yet written down
        self._signals = 0
        self._wake = threading.Event()

    def listen(self) -> None:
        """Takes over SIGINT and SIGTERM; before that, Ctrl-C ends the command as usual."""
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)

    @property
    def is_stopping(self) -> bool:
        """Whether a signal came."""
        return self._signals > 0

    def run(self) -> None:
        """Returns when a signal came and all children have ended."""
        for child in self.children:
            child.start()
        next_look = time.monotonic() + LOOK_AT_DATABASE
        while not self.is_stopping:
            self._wake.wait(TICK)
            self._reap(restart=True)
            if time.monotonic() >= next_look:
                self._keep_database()
                next_look = time.monotonic() + LOOK_AT_DATABASE
        self._stop()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self._wake.set()

    def _reap(self, *, restart: bool) -> None:
        for child in self.children:
            ended = child.reap()
            if ended:
                pid, code = ended
                if child.holds_runs:
                    self._reaped.append(pid)
                if restart:
                    pause = child.schedule_restart()
                    say(f"{child.name} ({pid}) ended with {code}; starting it again" + _in(pause))
            if restart and child.pid is None and time.monotonic() >= child.start_at:
                child.start()
        self._write_deaths()

    def _write_deaths(self) -> None:
        """Frees the runs of the reaped; kept for the next tick while the database is away."""
        while self._reaped:
            try:
                self._prove_dead(self._reaped[0])
            except DatabaseError as error:
                say(f"cannot yet write down that {self._reaped[0]} is dead: {_first_line(error)}")
                connections.close_all()
                return
            self._reaped.pop(0)

    def _keep_database(self) -> None:
        if self._postgres is None or self._postgres.pid() is not None:
            return
        say("PostgreSQL is gone; starting it again")
        try:
            self._postgres.start()
        except PostgresError as error:
            say(f"PostgreSQL: {error}")

    def _stop(self) -> None:
        say("stopping: steps at hand end, runs are handed back (Ctrl-C again: at once)")
        deadline = time.monotonic() + PATIENCE
        for child in self.children:
            child.signal(signal.SIGTERM)
        while any(child.pid is not None for child in self.children):
            self._reap(restart=False)
            if self._signals > 1 or time.monotonic() > deadline:
                for child in self.children:
                    child.signal(signal.SIGKILL, group=True)
            time.sleep(0.02)
        self._write_deaths()


def _in(pause: float) -> str:
    return f" in {pause:.1f} s" if pause else ""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
