"""Two real sessions that want the same rows, one of them held in its transaction until the test lets it go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection, transaction
from psycopg import IsolationLevel

from journal import runs
from tests.journal.test_starting import _lock_waits
from tests.waiting import wait_for

Job = Callable[[], Any]


class Session(threading.Thread):
    """Calls a function on a connection of its own, with `options` of its own; keeps what came of it."""

    def __init__(self, job: Job, options: str = "", isolation: IsolationLevel = IsolationLevel.READ_COMMITTED) -> None:
        super().__init__(daemon=True)
        self._job, self._options, self._isolation = job, options, isolation
        self._outcome: Any = None
        self.start()

    def run(self) -> None:
        self._leave_the_pool()
        try:
            self._outcome = self._job()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self._outcome = error
        finally:
            connection.close()

    def _leave_the_pool(self) -> None:
        """For this thread: another would get the connection, with its options, as soon as it is given back."""
        entry = dict(connection.settings_dict)
        options = {name: value for name, value in entry["OPTIONS"].items() if name != "pool"}
        options["options"] += f" {self._options}"
        connection.settings_dict = entry | {"OPTIONS": options | {"isolation_level": self._isolation}}

    def outcome(self) -> Any:
        """What the function returned or raised."""
        self.join(20)
        assert not self.is_alive()
        return self._outcome


class Other:
    """A second session: does `first` in a transaction, does `then` when it is let go on, and commits."""

    def __init__(self, first: Job, then: Job = lambda: None, options: str = "") -> None:
        self._held, self._go = threading.Event(), threading.Event()
        self._first, self._then = first, then
        self._session = Session(self._transaction, options)
        assert self._held.wait(10)

    def _transaction(self) -> None:
        with transaction.atomic():
            self._first()
            self._held.set()
            assert self._go.wait(20)
            self._then()

    def go_on(self, *, when_waiting: int) -> None:
        """Lets it, once so many sessions are seen waiting for a lock."""
        wait_for(lambda: _lock_waits() == when_waiting, what=f"{when_waiting} sessions wait")
        self._go.set()

    def end(self) -> None:
        """Waits until it has committed."""
        outcome = self._session.outcome()
        assert outcome is None, outcome


def deadlocked(call: Job, *, hold: Job, cross: Job) -> Any:
    """What comes of `call` when it waits for what another session got by `hold`, and that one, by `cross`, for what the
    call has got. The other gives all back as soon as the call has been broken off."""

    def cross_and_step_back() -> None:
        cross()
        transaction.set_rollback(True)

    # Whoever finds the circle is broken off. Each looks once, when it has waited for so long: the call for PostgreSQL's
    # own second, and until then the other has to have crossed it.
    other = Other(hold, cross_and_step_back, "-c deadlock_timeout=60s")
    session = Session(call)
    other.go_on(when_waiting=1)
    outcome = session.outcome()
    other.end()
    return outcome


def overtaken(call: Job, *, change: Job) -> Any:
    """What comes of `call`, in REPEATABLE READ, when it waits for what another session changes and commits: a
    serialization failure."""
    other = Other(change)
    stricter = r"-c default_transaction_isolation=repeatable\ read"
    session = Session(call, stricter, IsolationLevel.REPEATABLE_READ)
    other.go_on(when_waiting=1)
    outcome = session.outcome()
    other.end()
    return outcome


# ---------------------------------------------------------------- which of two has the run first


def arriving(run_id: str) -> Other:
    """A signal "go" that has arrived and holds the run, and that its sender has not committed yet."""

    def arrive() -> None:
        runs.signal(run_id, "go", 7)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    return Other(arrive)


def hindered(run_id: str) -> Other:
    """Whoever appends to the run stops in the middle of it, the run's row locked, until this one steps back: the number
    of the next event is taken. (Of two that only wait for the row, the one behind may be the first to get it.)"""

    def take_the_number() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO journal_event SELECT (jsonb_populate_record(e, jsonb_build_object('seq', e.seq + 1))).*"
                " FROM journal_event e WHERE run_id = %s ORDER BY seq DESC LIMIT 1",
                [run_id],
            )

    return Other(take_the_number, lambda: transaction.set_rollback(True))
