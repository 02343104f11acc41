"""The database's clock. Every time that means anything is read from it, through one SQL function.

`journal_clock()` is `clock_timestamp()`; the tests' fake clock replaces that one function in their database.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.db import connection


def db_now() -> datetime:
    """The time in the database, in a round trip. Compare deadlines with it after the locks are held."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT journal_clock()")
        (moment,) = cursor.fetchone()
    return moment  # type: ignore[no-any-return]


class Anchor:
    """The database's clock between round trips: its last reading plus what has passed here since.

    The worker's own wall clock plays no part, so it may be wrong by any amount."""

    def __init__(self, moment: datetime) -> None:
        self._latest = moment
        self.set(moment)

    def set(self, moment: datetime) -> None:
        self._moment = moment
        self._read_at = time.monotonic()

    def now(self) -> datetime:
        """Never earlier than it said before."""
        self._latest = max(self._latest, self._moment + timedelta(seconds=time.monotonic() - self._read_at))
        return self._latest
