"""Doing something with the database although its connection may fall."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection

from journal.errors import LeaseLost

T = TypeVar("T")
log = logging.getLogger("journal.reconnecting")

TRANSIENT = (OperationalError, InterfaceError, InternalError)
"""What passes: a lost connection, a deadlock, a server that is read-only for the moment of a failover."""
PATIENCE = 60.0
"""Seconds for which a lost database is waited for; after them the lease is taken to be lost."""


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
