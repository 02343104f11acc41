"""What a run says of itself while it goes on: labels to find it by, and its progress."""

from __future__ import annotations

import json
import logging
from typing import Any

from journal import context, statements
from journal.errors import LeaseLost
from journal.plaintext import checked, cleaned
from journal.reconnecting import persistently

log = logging.getLogger("journal.facts")


def set_labels(**labels: str | int | bool) -> None:
    """Adds labels to the run (a value of the same name is replaced); runs.find looks for them.

    In a workflow's frame or in a step. Not a durable call: it has no position, and nothing is done on a replay."""
    check_labels(labels)
    _update("labels = labels || %s::jsonb", json.dumps(labels))


def check_labels(labels: dict[str, Any]) -> None:
    """Raises TypeError or ValueError for what cannot be a label."""
    if not isinstance(labels, dict):
        raise TypeError(f"labels are a dict, not a {type(labels).__name__}")
    for name, value in labels.items():
        checked(name, "a label's name")
        if not isinstance(value, str | int | bool):
            raise TypeError(f"label {name} is a {type(value).__name__}; labels are text, whole numbers or booleans")
        if isinstance(value, str):
            checked(value, f"label {name}")


def progress(text: str) -> None:
    """Shows `text` on the run's page, for example "1,200 of 5,000 rows". In a workflow's frame or in a step."""
    _update("progress = %s", cleaned(text[:500]))


def _update(assignment: str, value: str) -> None:
    """For people's eyes: a database that is away for long costs the note, not the run."""
    if context.in_workflow() and (context.execution().replaying or context.execution().unwinding):
        return
    run = context.current_run()
    sql = f"UPDATE journal_run SET {assignment} WHERE id = %s AND epoch = %s AND status = 'running'"  # noqa: S608
    try:
        persistently(lambda: statements.rows(sql, [value, run.id, run.epoch]), f"noting on run {run.id}")
    except LeaseLost as lost:
        log.warning("not noted on run %s: %s", run.id, lost)
