"""A Celery task for tests of the broker: it writes down when it was called."""

from __future__ import annotations

import time
from pathlib import Path

from celery import shared_task


@shared_task(name="tests.note_bell")
def note_bell(path: str) -> None:
    """Appends the time to a file."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{time.time()}\n")
