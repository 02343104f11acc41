"""When a run's steps ran, and when nothing did: lanes and bars, with long idle stretches folded to bands.

A plain step is journaled once, when it ends. Its bar begins where the event before it ends, or where its retry
was due: that is when the worker got to it, give or take the time it took to claim the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Case, Value, When
from django.db.models.functions import Right

from journal import times
from journal.models import Event, Run
from journal.states import EventKind

EVENTS_DRAWN = 300
LANES_DRAWN = 60
_SHORTEST_IDLE = timedelta(seconds=2)
_NARROWEST = 0.35
_RETRY_AT = re.compile(r'"retry_at":\{"\$":"datetime","v":"([^"]+)"')

_ENDS_WAIT = {
    EventKind.APPROVAL_GRANTED,
    EventKind.STEP_STARTED,
    EventKind.STEP_REFUSED,
    EventKind.TIMER_FIRED,
    EventKind.SIGNAL_RECEIVED,
    EventKind.SIGNAL_TIMED_OUT,
}
_BEGINS_WAIT = {
    EventKind.APPROVAL_REQUESTED: "person",
    EventKind.TIMER_SET: "time",
    EventKind.SIGNAL_AWAITED: "time",
}


@dataclass
class Bar:
    """A stretch of a lane. `look` is a class of static/css/pages.css: step, effect, failed, person, time."""

    start: datetime
    end: datetime
    look: str
    is_open: bool = False
    x: float = 0.0
    width: float = 0.0

    @property
    def is_wait(self) -> bool:
        return self.look in ("person", "time")


@dataclass
class Lane:
    path: str
    name: str
    note: str = ""
    bars: list[Bar] = field(default_factory=list)
    idle_before: str = ""
    """For the list that phones get: how long nothing ran before this lane."""

    @property
    def took(self) -> str:
        return times.took(sum((bar.end - bar.start for bar in self.bars), timedelta()))

    @property
    def is_open(self) -> bool:
        return any(bar.is_open for bar in self.bars)

    @property
    def waits_for_person(self) -> bool:
        return any(bar.look == "person" for bar in self.bars)


@dataclass(frozen=True)
class Tick:
    x: float
    at: datetime


@dataclass(frozen=True)
class Band:
    x: float
    width: float
    length: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class Timeline:
    lanes: list[Lane]
    bands: list[Band]
    ticks: list[Tick]
    looks: list[str]
    """The kinds of bars that occur, for the legend."""
    is_open: bool
    is_cut: bool
    """Older lanes are not drawn."""


def timeline_of(run: Run, now: datetime, answers: Mapping[str, datetime]) -> Timeline | None:
    """The run's current line, from its newest events, in one query; None before anything happened.

    `answers`: when that came which a wait is still open for in the history, by path; its bar ends there."""
    events = list(
        Event.objects.filter(run=run, generation=run.generation, branch=run.branch)
        .exclude(kind=EventKind.VALUE_DRAWN)
        .order_by("-seq")
        .annotate(tail=Case(When(kind=EventKind.STEP_FAILED, then=Right("data", 120)), default=Value("")))
        .values("path", "name", "kind", "attempt", "at", "tail")[: EVENTS_DRAWN + 1]
    )
    is_cut = len(events) > EVENTS_DRAWN
    events = events[EVENTS_DRAWN - 1 :: -1] if is_cut else events[::-1]
    if not events:
        return None
    lanes = _lanes(events, run.ended_at or now, answers, is_open=run.ended_at is None)
    is_cut = is_cut or len(lanes) > LANES_DRAWN
    return _drawn(lanes[-LANES_DRAWN:], now, is_cut)


def _lanes(
    events: Sequence[Mapping[str, Any]], now: datetime, answers: Mapping[str, datetime], *, is_open: bool
) -> list[Lane]:
    drawer = _Drawer(events[0]["at"])
    for event in events:
        drawer.take(event)
    drawer.finish(now, answers, is_open=is_open)
    return [lane for lane in drawer.lanes.values() if lane.bars]


class _Drawer:
    """Turns events, in their order, into bars."""

    def __init__(self, begin: datetime) -> None:
        self.lanes: dict[str, Lane] = {}
        self.previous = begin
        self.open: dict[str, Bar] = {}
        self.started: dict[str, datetime] = {}
        self.due: dict[str, datetime] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        path, kind, at = event["path"], event["kind"], event["at"]
        if path:
            lane = self.lanes.setdefault(path, Lane(path, event["name"]))
            self._close(path, kind, at)
            self._bar(lane, event, at)
        self.previous = at

    def _close(self, path: str, kind: str, at: datetime) -> None:
        if kind in _ENDS_WAIT and path in self.open:
            self.open.pop(path).end = at

    def _bar(self, lane: Lane, event: Mapping[str, Any], at: datetime) -> None:
        path, kind = lane.path, event["kind"]
        look = _BEGINS_WAIT.get(kind)
        if look:
            self.open[path] = Bar(at, at, look)
            lane.bars.append(self.open[path])
        elif kind == EventKind.STEP_STARTED:
            self.started[path] = at
            lane.note = "side effect"
        elif kind in (EventKind.STEP_COMPLETED, EventKind.STEP_FAILED):
            effect = path in self.started
            begin = self.started.pop(path, None) or self.due.pop(path, None) or self.previous
            look = "failed" if kind == EventKind.STEP_FAILED else "effect" if effect else "step"
            lane.bars.append(Bar(min(begin, at), at, look))
            if event["attempt"] > 1:
                lane.note = f"{event['attempt']} attempts"
            found = _RETRY_AT.search(event["tail"] or "")
            if found:
                self.due[path] = datetime.fromisoformat(found[1])

    def finish(self, now: datetime, answers: Mapping[str, datetime], *, is_open: bool) -> None:
        for path, begin in self.started.items():
            self.lanes[path].bars.append(Bar(begin, max(begin, now), "effect", is_open))
        for path, bar in self.open.items():
            bar.end = max(bar.start, answers.get(path, now))
            bar.is_open = is_open and path not in answers


def _drawn(lanes: list[Lane], now: datetime, is_cut: bool) -> Timeline | None:
    if not lanes:
        return None
    bars = [bar for lane in lanes for bar in lane.bars]
    spans = _spans(bars)
    place, bands = _scale(spans)
    for bar in bars:
        bar.x = place(bar.start)
        bar.width = max(_NARROWEST, place(bar.end) - bar.x)
        bar.x = min(bar.x, 100 - bar.width)
    for before, lane in pairwise(lanes):
        idle = min(bar.start for bar in lane.bars) - max(bar.end for bar in before.bars)
        lane.idle_before = times.length(idle) if idle > _SHORTEST_IDLE else ""
    looks = [look for look in ("step", "effect", "failed", "person", "time") if any(bar.look == look for bar in bars)]
    return Timeline(lanes, bands, _ticks(spans, place), looks, any(bar.is_open for bar in bars), is_cut)


@dataclass(frozen=True)
class _Span:
    start: datetime
    end: datetime
    idle: bool

    @property
    def length(self) -> timedelta:
        return self.end - self.start


def _spans(bars: list[Bar]) -> list[_Span]:
    """The whole time in order, cut where something begins to run or nothing runs any more."""
    begin, end = min(bar.start for bar in bars), max(bar.end for bar in bars)
    busy = sorted((bar.start, bar.end) for bar in bars if not bar.is_wait)
    worked = sum((until - since for since, until in busy), timedelta())
    shortest = max(_SHORTEST_IDLE, worked / 8)
    spans: list[_Span] = []
    at = begin
    for since, until in busy:
        if since - at > shortest:
            spans.append(_Span(at, since, True))
            at = since
        if until > at:
            spans = (
                [*spans[:-1], _Span(spans[-1].start, until, False)]
                if spans and not spans[-1].idle
                else [*spans, _Span(at, until, False)]
            )
            at = until
    if end - at > shortest or not spans:
        spans.append(_Span(at, max(end, at), True))
    elif end > at:
        spans.append(_Span(at, end, False))
    return spans


def _scale(spans: list[_Span]) -> tuple[Callable[[datetime], float], list[Band]]:
    """Where a moment stands, in per cent: work in proportion, each long idle stretch a band of one width.

    A band is twice as wide as any stretch of work that took less time: a longer bar has to mean more time."""
    idle = sum(span.idle for span in spans)
    worked = sum((span.length for span in spans if not span.idle), timedelta()) or timedelta(microseconds=1)
    briefest = min((span.length for span in spans if span.idle), default=timedelta())
    widest = max((2 * span.length / worked for span in spans if not span.idle and span.length <= briefest), default=0.0)
    band = max(min(12.0, 60.0 / idle), 100 * widest / (1 + idle * widest)) if idle else 0.0
    if idle == len(spans):
        band = 100.0 / idle
    weights = [band if span.idle else max(1.0, (100 - band * idle) * (span.length / worked)) for span in spans]
    total = sum(weights) or 1.0
    edges = [0.0]
    for weight in weights:
        edges.append(edges[-1] + weight * 100 / total)

    def place(moment: datetime) -> float:
        for span, left, right in zip(spans, edges, edges[1:], strict=False):
            if moment <= span.end:
                share = (moment - span.start) / span.length if span.length else 0.0
                return round(left + max(0.0, share) * (right - left), 3)
        return 100.0

    bands = [
        Band(round(left, 3), round(right - left, 3), times.length(span.length))
        for span, left, right in zip(spans, edges, edges[1:], strict=False)
        if span.idle
    ]
    return place, bands


def _ticks(spans: list[_Span], place: Callable[[datetime], float]) -> list[Tick]:
    """The times at which work began, where there is room to write them."""
    ticks: list[Tick] = []
    for span in spans:
        x = place(span.start)
        if not span.idle and x < 90 and (not ticks or x - ticks[-1].x > 12):
            ticks.append(Tick(x, span.start))
    return ticks
