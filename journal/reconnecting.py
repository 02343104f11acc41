"""Doing something with the database again: PostgreSQL broke it off for another's sake, or the connection fell."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection
from psycopg.errors import DeadlockDetected, SerializationFailure

from journal.connections import in_transaction
from journal.errors import LeaseLost

T = TypeVar("T")
log = logging.getLogger("journal.reconnecting")

TRANSIENT = (OperationalError, InterfaceError, InternalError)
"""What passes: a lost connection, a deadlock, a server that is read-only for the moment of a failover."""
PATIENCE = 60.0
"""Seconds for which a lost database is waited for; after them the lease is taken to be lost."""
ATTEMPTS = 5
"""How often in all something is done that is broken off."""


def retried(action: Callable[[], T], what: str, *, also_if_lost: bool = False) -> T:
    """Does `action`, and again if it was broken off by a deadlock or a serialization failure: nothing of it was
    committed, and nobody has to hear of it. Every write that owns its transaction goes through here.

    `also_if_lost`: after any TRANSIENT error too, for what may be done twice without harm. Inside the caller's
    transaction nothing is done again: what was broken off is the whole of it, which only the caller can repeat."""
    for attempt in range(1, ATTEMPTS):
        try:
            return action()
        except TRANSIENT as error:
            if in_transaction(connection) or not (also_if_lost or _is_collision(error)):
                raise
            log.warning("%s was broken off, and is done again: %s", what, error, extra={"action": "done_again"})
            connection.close_if_unusable_or_obsolete()
            time.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311 - spreads those that collided
    return action()


def _is_collision(error: Exception) -> bool:
    return isinstance(error.__cause__, DeadlockDetected | SerializationFailure)


class Patience:
    """The pauses between attempts, longer and longer up to a second, until PATIENCE is over."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._give_up_at = time.monotonic() + PATIENCE
        self._pause = 0.02

    def wait(self, error: Exception) -> None:
        """Drops the connection and pauses. Raises LeaseLost if it has lasted too long, or inside a transaction."""
        if connection.in_atomic_block or time.monotonic() > self._give_up_at:
            raise LeaseLost(f"the database was lost for {PATIENCE:.0f} s") from error
        log.warning("the database was lost while %s; again in %.2f s (%s)", self._what, self._pause, error)
        connection.close()
        time.sleep(self._pause)
        self._pause = min(1.0, self._pause * 2)


def persistently(action: Callable[[], T], what: str) -> T:
    """Repeats `action`, which may be done twice without harm, until it reaches the database. Raises LeaseLost."""
    patience = Patience(what)
    while True:
        try:
            return action()
        except TRANSIENT as error:
            patience.wait(error)
