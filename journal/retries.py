"""When a failed step is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

from django.core.exceptions import ValidationError as DjangoValidationError
from pydantic import ValidationError as PydanticValidationError

from journal.errors import JournalError

Seconds = float | timedelta

HOPELESS = (JournalError, PydanticValidationError, DjangoValidationError)
"""Asked again they would say the same: not retried unless `only` names them."""


LONGEST = 366 * 24 * 3600.0
"""The longest pause, in seconds."""


def _is_error_class(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def seconds(value: Seconds) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


@dataclass(frozen=True)
class Retry:
    """How often and when a failed step is tried again. Times are seconds or timedelta.

    The pause before attempt n+1 is `first * factor**(n-1)`, at most `longest`, give or take the share `jitter`.
    `only` and `never` are exception classes (their subclasses count); `never` wins. An execution that was lost
    to a crash does not count as an attempt.
    """

    max_attempts: int = 3
    first: Seconds = 1
    factor: float = 2
    longest: Seconds = 300
    jitter: float = 0.2
    only: tuple[type[BaseException], ...] = ()
    never: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError("max_attempts counts the first attempt too: at least 1")
        if not 0 <= seconds(self.first) <= LONGEST or not 0 <= seconds(self.longest) <= LONGEST:
            raise ValueError("first and longest are from 0 to 366 days")
        if not 1 <= self.factor <= 1_000 or not 0 <= self.jitter < 1:
            raise ValueError("factor is from 1 to 1,000, jitter is in [0, 1)")
        for classes in (self.only, self.never):
            if not isinstance(classes, tuple) or not all(_is_error_class(kind) for kind in classes):
                raise TypeError("only and never are tuples of exception classes")

    def pause_after(self, attempt: int, error: BaseException) -> float | None:
        """Seconds until the next attempt, or None if there is none."""
        if attempt >= self.max_attempts or not self._is_worth_it(error):
            return None
        # Past the sixtieth doubling the longest pause is reached, and a power would overflow in the end.
        pause = min(seconds(self.longest), seconds(self.first) * self.factor ** min(attempt - 1, 60))
        return pause * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - spreads, hides nothing

    def _is_worth_it(self, error: BaseException) -> bool:
        if isinstance(error, self.never) or not isinstance(error, Exception):
            return False
        if self.only:
            return isinstance(error, self.only)
        return not isinstance(error, HOPELESS)
