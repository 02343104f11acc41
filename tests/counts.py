"""How often: counts above fifty are for `make chaos`, which sets SIGNOFF_TEST_FULL; CI runs a twentieth of them."""

from __future__ import annotations

import os

FULL = os.environ.get("SIGNOFF_TEST_FULL") == "1"
SEED = int(os.environ.get("SIGNOFF_TEST_SEED", "1"))
"""Of every random choice that a test makes: the same seed, the same choices."""


def of(full: int, *, at_least: int = 1) -> int:
    """`full` in `make chaos`; else a twentieth, or `at_least`."""
    return full if FULL else max(at_least, full // 20)
