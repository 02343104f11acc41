"""Time and chance for workflows: the same on each replay."""

from __future__ import annotations

import hashlib
import random as chance
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from journal import codec, context
from journal.execution import Execution
from journal.history import Asked
from journal.states import CallKind, EventKind
from journal.writer import Draft

T = TypeVar("T")


def now() -> datetime:
    """The database's time, as it was when the workflow first came here."""
    return _drawn("now", lambda execution, path: execution.writer.anchor.now(), keep=True)


def uuid4() -> uuid.UUID:
    """A random-looking UUID, derived from the run and the position."""
    return _drawn("uuid4", lambda execution, path: uuid.UUID(bytes=_seed(execution, path)[:16], version=4), keep=False)


def random() -> chance.Random:
    """A generator, seeded by the run and the position."""
    return _drawn(
        "random",
        lambda execution, path: chance.Random(_seed(execution, path)),  # noqa: S311 - repeatable by intent
        keep=False,
    )


def _drawn(name: str, make: Callable[[Execution, str], T], *, keep: bool) -> T:
    """Rides on the next append. What is derived is not stored, only that it was asked for here."""
    execution = context.execution()
    path = execution.position()
    site = execution.site(path, Asked(CallKind.VALUE, name))
    value: T
    if site is not None and keep:
        value = site.first.read()["value"]
        return value
    value = make(execution, path)
    if site is None:
        data = codec.encode({"value": value}) if keep else None
        execution.writer.ride(Draft(EventKind.VALUE_DRAWN, path, name, data=data))
        value = codec.decode(data)["value"] if data else value
    return value


def _seed(execution: Execution, path: str) -> bytes:
    place = f"{execution.info.id}\n{execution.writer.generation}\n{path}"
    return hashlib.sha256(place.encode()).digest()
