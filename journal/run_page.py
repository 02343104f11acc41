"""One run's page: what it is and waits for, its events newest first, and one step's input and output.

Nothing here reads more of a value than a page shows: bodies are cut in the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Func, IntegerField, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Left, Substr

from journal import display
from journal.describing import waiting_for
from journal.marks import WAIT_ORDER, Mark, run_mark
from journal.models import Event, Message, Payload, Run, Wait
from journal.states import ENDED, EventKind, MessageKind, RunStatus, WaitKind

EVENTS_PAGE = 40
WAITS_SHOWN = 20
ATTEMPTS_SHOWN = 20
_READ = display.INLINE_LIMIT + 100


class _Octets(Func):
    """A text's size; unlike length() it does not unpack what is stored compressed."""

    function = "octet_length"
    output_field = IntegerField()


@dataclass(frozen=True)
class Body:
    """A stored value, as far as it is shown, and where all of it can be had."""

    shown: display.Shown
    seq: int
    part: str
    """`args` or `data`: with `seq`, the download's address."""


@dataclass(frozen=True)
class EventRow:
    seq: int
    at: datetime
    kind: str
    path: str
    name: str
    attempt: int
    about: str
    digest: str

    @property
    def is_failure(self) -> bool:
        return self.kind in (EventKind.STEP_FAILED, EventKind.RUN_FAILED, EventKind.RUN_BLOCKED, EventKind.STEP_REFUSED)


def title_of(run: Run) -> str:
    title = run.labels.get("title") if isinstance(run.labels, dict) else None
    return str(title or run.key or run.workflow)[:200]


def open_waits(run: Run) -> list[Wait]:
    """What it waits for, the most telling first.

    The rows of a run that was woken stay until a worker claims it: it does not wait for them any more."""
    if run.status != RunStatus.WAITING:
        return []
    rank = {str(kind): at for at, kind in enumerate(WAIT_ORDER)}
    waits = list(Wait.objects.filter(run=run).order_by("since", "path")[:WAITS_SHOWN])
    return sorted(waits, key=lambda wait: rank.get(wait.kind, len(rank)))


def mark_of(run: Run, waits: list[Wait]) -> Mark:
    return run_mark(run.status, waits[0].kind if waits else None)


def no_worker(run: Run) -> str:
    """Why nobody takes a run that is ready, or nothing."""
    missing = waiting_for(run) if run.status == RunStatus.READY else []
    return str(missing[0]["detail"]) if missing else ""


def answers(run: Run, now: datetime) -> dict[str, datetime]:
    """When that came which a woken run waited for, by path: nobody has taken it yet."""
    if run.status == RunStatus.WAITING or is_ended(run):
        return {}
    came: dict[str, datetime] = {}
    names: dict[str, datetime] = {}
    messages = Message.objects.filter(run=run, taken_seq=None, fate=None, arrived_at__isnull=False).order_by("id")
    for kind, name, generation, branch, path, at in messages.values_list(
        "kind", "name", "generation", "branch", "path", "arrived_at"
    )[:WAITS_SHOWN]:
        if at is not None and kind == MessageKind.SIGNAL:
            names.setdefault(name, at)
        elif at is not None and path is not None and (generation, branch) == (run.generation, run.branch):
            came.setdefault(path, at)
    for wait in Wait.objects.filter(run=run)[:WAITS_SHOWN]:
        if wait.kind == WaitKind.SIGNAL and wait.name in names:
            came.setdefault(wait.path, names[wait.name])
        elif wait.due_at is not None and wait.due_at <= now:
            came.setdefault(wait.path, wait.due_at)
    return came


def version_of(run: Run) -> str:
    """Changes whenever the page would: each event, each change of state, each word of progress, and whether there
    is a worker for it."""
    changes = f"{run.seq}.{run.epoch}.{run.status}.{run.inbox_count}.{run.state_at.timestamp()}"
    return f"{changes}.{no_worker(run)}.{run.progress}"


def is_ended(run: Run) -> bool:
    return run.status in ENDED


# ---------------------------------------------------------------- events


def _size_of(hash_field: str) -> Subquery:
    body = Payload.objects.filter(run=OuterRef("run"), hash=OuterRef(hash_field))
    return Subquery(body.values(size=_Octets("body"))[:1])


def events_page(run: Run, before: int | None) -> tuple[list[EventRow], int | None]:
    """Events newest first, those before the number `before`; and the number for the next page."""
    found = Event.objects.filter(run=run)
    if before is not None:
        found = found.filter(seq__lt=before)
    listed = list(
        found.order_by("-seq")
        .annotate(args_size=_size_of("args_digest"), data_size=_size_of("data_hash"))
        .values(
            "seq", "at", "kind", "path", "name", "attempt", "args", "data", "args_digest", "args_size", "data_size"
        )[: EVENTS_PAGE + 1]
    )
    more = len(listed) > EVENTS_PAGE
    rows = [_event_row(event) for event in listed[:EVENTS_PAGE]]
    return rows, rows[-1].seq if more else None


def _event_row(event: Mapping[str, Any]) -> EventRow:
    digest = event["args_digest"]
    return EventRow(
        seq=event["seq"],
        at=event["at"],
        kind=event["kind"],
        path=event["path"],
        name=event["name"],
        attempt=event["attempt"],
        about=_about(event),
        digest=display.short(bytes(digest).hex()) if digest else "",
    )


def _about(event: Mapping[str, Any]) -> str:
    """Input, output or reason, in one line."""
    kind, data, args = event["kind"], event["data"], event["args"]
    if kind in (EventKind.APPROVAL_REQUESTED, EventKind.RUN_STARTED) and args:
        return display.one_line(args)
    if data is None and event["data_size"] is not None:
        return f"{display.size(event['data_size'])}"
    if data is None:
        return display.one_line(args) if args else ""
    return display.event_line(data)


# ---------------------------------------------------------------- one step


@dataclass(frozen=True)
class Attempt:
    at: datetime
    kind: str
    attempt: int
    about: str
    is_failure: bool


@dataclass(frozen=True)
class StepPane:
    path: str
    name: str
    mark: Mark
    attempts: list[Attempt]
    input: Body | None
    output: Body | None
    error: str


_STEP_MARKS = {
    EventKind.STEP_COMPLETED: Mark("completed", "Completed", "is-green"),
    EventKind.STEP_FAILED: Mark("failed", "Failed", "is-red"),
    EventKind.STEP_REFUSED: Mark("cancelled", "Not started"),
    EventKind.STEP_STARTED: Mark("running", "Started", "is-blue"),
    EventKind.APPROVAL_REQUESTED: Mark("person", "Waits for a person", "is-amber"),
    EventKind.APPROVAL_GRANTED: Mark("completed", "Approved", "is-green"),
    EventKind.TIMER_SET: Mark("clock", "Waits for time"),
    EventKind.SIGNAL_AWAITED: Mark("clock", "Waits for a signal"),
    EventKind.SIGNAL_TIMED_OUT: Mark("clock", "Timed out"),
}

_ANSWERED = Mark("worker", "Answered, waits for a worker")


def step_pane(run: Run, path: str, *, is_answered: bool) -> StepPane | None:
    """What happened at one position of the run's current line, or None if nothing has.

    `is_answered`: what it waited for has come, and no worker has taken it yet."""
    place = Q(run=run, generation=run.generation, branch=run.branch, path=path)
    events = _with_heads(Event.objects.filter(place)).order_by("-seq")[:ATTEMPTS_SHOWN]
    found = list(events)[::-1]
    if not found:
        return None
    last = found[-1]
    with_args = next((event for event in found if event["args_head"] is not None), None)
    outcome = last if last["data_head"] is not None else None
    return StepPane(
        path=path,
        name=found[0]["name"],
        mark=_ANSWERED if is_answered else _STEP_MARKS.get(last["kind"], Mark("completed", "Done", "is-green")),
        attempts=[_attempt(event) for event in found],
        input=_body(with_args, "args") if with_args else None,
        output=_body(outcome, "data") if outcome and last["kind"] != EventKind.APPROVAL_REQUESTED else None,
        error=display.error_line(last["data_head"]) if last["kind"] == EventKind.STEP_FAILED else "",
    )


def run_bodies(run: Run) -> tuple[Body | None, Body | None]:
    """The run's input and its result."""
    kinds = [EventKind.RUN_STARTED, EventKind.RUN_COMPLETED]
    found = {
        event["kind"]: event for event in _with_heads(Event.objects.filter(run=run, kind__in=kinds)).order_by("seq")
    }
    started, completed = found.get(EventKind.RUN_STARTED), found.get(EventKind.RUN_COMPLETED)
    return (_first_body(started) if started else None, _first_body(completed) if completed else None)


def _first_body(event: dict[str, Any]) -> Body | None:
    part = "args" if event["args_head"] is not None else "data"
    return _body(event, part) if event[f"{part}_head"] is not None else None


def _with_heads(events: Any) -> Any:
    """The events with the beginnings and sizes of their bodies, wherever these are stored."""
    annotations: dict[str, Any] = {}
    for part, hash_field in (("args", "args_digest"), ("data", "data_hash")):
        body = Payload.objects.filter(run=OuterRef("run"), hash=OuterRef(hash_field))
        annotations[f"{part}_head"] = Coalesce(
            Left(F(part), _READ), Subquery(body.values(head=Substr("body", 1, _READ))[:1])
        )
        annotations[f"{part}_size"] = Coalesce(_Octets(F(part)), _size_of(hash_field))
    names = ["seq", "at", "kind", "path", "name", "attempt", *annotations]
    return events.annotate(**annotations).values(*names)


def _body(event: dict[str, Any], part: str) -> Body:
    return Body(display.preview(event[f"{part}_head"], event[f"{part}_size"]), event["seq"], part)


def _attempt(event: dict[str, Any]) -> Attempt:
    failed = event["kind"] in (EventKind.STEP_FAILED, EventKind.STEP_REFUSED)
    about = display.error_line(event["data_head"]) if failed else ""
    return Attempt(event["at"], event["kind"], event["attempt"], about, failed)


def stored_body(run: Run, seq: int, part: str) -> str | None:
    """All of a stored value, as it is stored; None if there is none."""
    hash_field = "args_digest" if part == "args" else "data_hash"
    body = Payload.objects.filter(run=OuterRef("run"), hash=OuterRef(hash_field)).values("body")[:1]
    found: Iterable[str | None] = Event.objects.filter(run=run, seq=seq).values_list(
        Coalesce(F(part), Subquery(body)), flat=True
    )
    return next(iter(found), None)
