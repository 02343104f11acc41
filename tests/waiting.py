"""Waiting for a condition, instead of sleeping for luck."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T], timeout: float = 10, what: str = "", every: float = 0.02) -> T:
    """Calls `condition` until it answers with something true, and returns that.

    Raises AssertionError after `timeout` seconds, with `what` was waited for.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or condition}")
        time.sleep(every)
