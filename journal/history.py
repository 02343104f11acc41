"""A run's history in memory: events by position, and the comparison of what is asked with what is recorded."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from journal import codec
from journal.states import CALL_OF_EVENT, CallKind, EventKind

OUTCOMES = {
    EventKind.STEP_COMPLETED,
    EventKind.STEP_REFUSED,
    EventKind.TIMER_FIRED,
    EventKind.SIGNAL_RECEIVED,
    EventKind.SIGNAL_TIMED_OUT,
    EventKind.VALUE_DRAWN,
}


@dataclass(frozen=True, slots=True)
class PastEvent:
    """An event as it was loaded; bodies are codec text."""

    seq: int
    generation: int
    branch: int
    path: str
    attempt: int
    kind: EventKind
    name: str
    args_digest: bytes | None
    args: str | None
    data_hash: bytes | None
    data: str | None
    at: datetime
    digest: bytes

    def read(self, types: codec.Types | None = None) -> dict[str, Any]:
        """Its data. Raises Undecodable."""
        return codec.decode(self.data, types) if self.data else {}


@dataclass(slots=True)
class Site:
    """All that happened at one position."""

    path: str
    events: list[PastEvent] = field(default_factory=list)
    reached: bool = False

    @property
    def first(self) -> PastEvent:
        return self.events[0]

    @property
    def call_kind(self) -> CallKind:
        return CALL_OF_EVENT[self.first.kind]

    @property
    def outcome(self) -> PastEvent | None:
        """The event that ends it. A failed step's last attempt does, if no other is due."""
        last = self.events[-1]
        if last.kind in OUTCOMES:
            return last
        # Read without its classes: one of an exception's attributes may be gone, and that is not asked here.
        if last.kind == EventKind.STEP_FAILED and codec.plain(last.data or "{}")["retry_at"] is None:
            return last
        return None

    def last(self, kind: EventKind) -> PastEvent | None:
        return next((event for event in reversed(self.events) if event.kind == kind), None)


@dataclass(frozen=True)  # no slots: the digest is computed once, when it is needed
class Asked:
    """What the code at hand asks for at a position."""

    kind: CallKind
    name: str
    text: str | None = None
    """Codec text of the arguments, where they count."""
    types: codec.Types | None = None
    defaults: dict[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def digest(self) -> bytes | None:
        return None if self.text is None else codec.digest(self.text)


class History:
    """The events of the run's current line, by position."""

    def __init__(self, events: Iterable[PastEvent], generation: int) -> None:
        self.sites: dict[str, Site] = {}
        self.started: PastEvent | None = None
        for event in events:
            if event.kind == EventKind.RUN_STARTED:
                self.started = event
            if event.path and event.generation == generation:
                self.sites.setdefault(event.path, Site(event.path)).events.append(event)
        self._waiting = len(self.sites)

    @property
    def unreached(self) -> Site | None:
        """The first position that the replay has not come to."""
        if self._waiting == 0:
            return None
        return next(site for site in self.sites.values() if not site.reached)

    def at(self, path: str) -> Site | None:
        """What has happened at `path` so far, this execution's own guard events included."""
        return self.sites.get(path)

    def note(self, event: PastEvent) -> None:
        """An event of this execution's that a later call at the same position must know of."""
        self.sites.setdefault(event.path, Site(event.path, reached=True)).events.append(event)

    def reach(self, path: str) -> Site | None:
        site = self.sites.get(path)
        if site is not None and not site.reached:
            site.reached = True
            self._waiting -= 1
        return site


def fits(site: Site, asked: Asked) -> bool:
    """Whether the code asks for what is recorded: kind, name, and arguments compared as values.

    A new optional field, another order of keys or of keywords, and a new optional parameter with its default
    have other digests and equal values: they fit. Raises Undecodable."""
    first = site.first
    if site.call_kind != asked.kind or first.name != asked.name:
        return False
    if first.args_digest is None or asked.digest is None or bytes(first.args_digest) == asked.digest:
        return first.args_digest is None if asked.digest is None else first.args_digest is not None
    recorded, wanted = codec.decode(first.args or "{}", asked.types), codec.decode(asked.text or "{}", asked.types)
    return bool(_same({**asked.defaults, **recorded}, {**asked.defaults, **wanted}))


def _same(one: Any, other: Any) -> bool:
    """Equality, with NaN equal to itself."""
    return bool(one == other) or codec.encode(one) == codec.encode(other)
