"""verify_journal: does every row still say what was written?

By anybody who does not hold the chain's key: an edited, missing, added or swapped event or payload, a cut tail, a
message that nobody sent, and a run's row or waits that say other than its history.
docs/engine.md lists what it does not find.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef

from journal import chain, codec, exceptions, hooks, messages, statements
from journal.describing import readable_waits
from journal.errors import UnknownRun
from journal.history import PastEvent
from journal.loading import past_event
from journal.models import Event, Message, Payload, Run, Wait
from journal.plaintext import cleaned_all, storable
from journal.states import ENDED, EventKind, RunStatus, WaitKind

MESSAGES = f"SELECT {messages.SIGNED}, mac FROM journal_message WHERE run_id = %s ORDER BY id"  # noqa: S608 - our own text

OPENED_BY = {
    WaitKind.APPROVAL: (EventKind.APPROVAL_REQUESTED, EventKind.APPROVAL_GRANTED),
    WaitKind.SIGNAL: (EventKind.SIGNAL_AWAITED,),
    WaitKind.TIMER: (EventKind.TIMER_SET,),
    WaitKind.RETRY: (EventKind.STEP_FAILED,),
}
"""What a position's last event is while something waits there."""
DUE = {WaitKind.SIGNAL: "until", WaitKind.TIMER: "until", WaitKind.RETRY: "retry_at"}
"""Where that event says until when. An approval's deadline moves with what is decided about it."""
ENDED_BY = {EventKind.RUN_COMPLETED: RunStatus.COMPLETED, EventKind.RUN_FAILED: RunStatus.FAILED}
WITHOUT_EVENT = {"reason", "path", "code"}
"""What a difference holds at most that is no event: a run that kills its workers, or that cannot be read."""


def verify(run_id: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """Each run's id with what does not fit, one line each; an empty list if all does. Raises UnknownRun."""
    runs = Run.objects.order_by("pk")
    if run_id is not None:
        runs = runs.filter(pk=run_id) if storable(run_id) else runs.none()
        if not runs:
            raise UnknownRun(run_id)
    for found in runs.values_list("pk", flat=True).iterator(chunk_size=2_000):
        yield found, _verified(found)
    if run_id is None:
        yield from _orphans()


def verify_run(run: Run) -> list[str]:
    """What does not fit about one run, as it is stored now."""
    return _verified(run.pk)


def _verified(run_id: str) -> list[str]:
    if not _findings(run_id):
        return []
    # Something may have been written while we were reading: with the run locked, nothing is.
    with transaction.atomic():
        statements.rows("SELECT 1 FROM journal_run WHERE id = %s FOR NO KEY UPDATE", [run_id])
        return _findings(run_id)


def _findings(run_id: str) -> list[str]:
    """Rows that somebody has altered may hold anything: what cannot even be read is a finding, and the next run's
    turn comes all the same."""
    try:
        run = Run.objects.get(pk=run_id)
        events = [past_event(row) for row in statements.rows(statements.LOAD_HISTORY, [run.pk])]
        found = [*_chain(run, events), *_bodies(run, events), *_messages(run)]
        if _is_whole(events):
            found += _against_history(run, events)
        for verifier in hooks.chain_verifiers:
            found += verifier(run)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:  # noqa: BLE001 - see above
        return [f"it cannot be read: {type(error).__name__}: {error}"]
    return found


def _chain(run: Run, events: list[PastEvent]) -> Iterator[str]:
    previous = b""
    for number, event in enumerate(events, start=1):
        if event.seq != number:
            yield f"event {number} is missing"
            return
        place = (event.generation, event.branch, event.path, event.attempt)
        digest = chain.event_digest(
            previous, run.pk, event.seq, place, event.kind, event.name, event.args_digest, event.data_hash, event.at
        )
        if digest != event.digest:
            yield f"event {number} ({event.kind}) does not fit its digest"
        previous = event.digest
    if run.seq != len(events):
        yield f"the run has {len(events)} events, its row says {run.seq}"
    elif not events or chain.seal(previous, run.seq, run.generation, run.branch) != bytes(run.head):
        yield "the run's head does not fit its last event"


def _is_whole(events: list[PastEvent]) -> bool:
    """Whether the events' data can be compared with at all; else _bodies has said what is wrong."""
    return bool(events) and all(
        event.data_hash is None or (event.data is not None and _fits(event.data, event.data_hash)) for event in events
    )


def _fits(body: str, digest: bytes | None) -> bool:
    return digest is not None and body.isascii() and codec.digest(body) == digest


def _bodies(run: Run, events: list[PastEvent]) -> Iterator[str]:
    known: set[bytes] = set()
    with_args = set()
    for event in events:
        for body, digest, what in ((event.args, event.args_digest, "arguments"), (event.data, event.data_hash, "data")):
            if digest is not None:
                known.add(digest)
            if body is not None and not _fits(body, digest):
                yield f"the {what} of event {event.seq} ({event.kind}) do not fit their hash"
        if event.data_hash is not None and event.data is None:
            yield f"the data of event {event.seq} ({event.kind}) are missing"
        if event.args is not None:
            with_args.add(event.args_digest)
        elif event.args_digest is not None and event.args_digest not in with_args:
            yield f"the arguments of event {event.seq} ({event.kind}) are missing"
    for stored, body in Payload.objects.filter(run=run).values_list("hash", "body"):
        if bytes(stored) not in known or not _fits(body, bytes(stored)):
            yield f"payload {bytes(stored).hex()[:12]} does not belong to this run, or does not fit its hash"


def _messages(run: Run) -> Iterator[str]:
    rows = statements.rows(MESSAGES, [run.pk])
    for row in rows:
        if not messages.is_genuine(run.pk, row):
            yield f"message {row[0]} ({row[1]} {row[2]}) was not sent, or was altered"
    delivered = Message.objects.filter(run=run, arrived_at__isnull=False).count()
    if delivered < run.inbox_count:
        yield f"{run.inbox_count} messages came, {delivered} are there"


def _against_history(run: Run, events: list[PastEvent]) -> Iterator[str]:
    """What does not fit, one line each. The events' data must be known to fit their hashes."""
    if events[0].kind != EventKind.RUN_STARTED:
        return
    yield from _identity(run, events[0])
    yield from _end(run, events[-1])
    if run.status == RunStatus.BLOCKED:
        yield from _difference(run, events)
    yield from _waits(run, events)
    there = set(Message.objects.filter(run=run).values_list("pk", flat=True))
    for event in events:
        if event.kind == EventKind.SIGNAL_RECEIVED and _plain(event)["message"] not in there:
            yield f"the signal that event {event.seq} took is not in the inbox"


def _identity(run: Run, first: PastEvent) -> Iterator[str]:
    said = _plain(first)
    wanted = {name: said[name] for name in ("version", "key", "owner", "actor", "actor_name")}
    wanted |= {"workflow": first.name, "code": f"{first.name}@{said['version']}", "created_at": first.at}
    shown: dict[str, Any] = {name: getattr(run, name) for name in wanted if name != "actor"}
    shown["actor"] = run.actor_id
    for name, value in shown.items():
        if value != wanted[name]:
            yield f"the run's {name} is {value!r}; it was started with {wanted[name]!r}"
    if bytes(run.input_hash) != first.args_digest:
        yield "the run's input_hash is not that of its input"


def _end(run: Run, last: PastEvent) -> Iterator[str]:
    ended = ENDED_BY.get(last.kind)
    if (run.status in ENDED or ended) and run.status != ended:
        yield f"the run's status is {run.status}; its last event is {last.kind}"
    error = None
    if last.kind == EventKind.RUN_FAILED:
        said = _plain(last)
        error = _as_stored(exceptions.describe(said["error"], said["path"]))
    if run.error != error:
        yield f"the run's error is {run.error!r}; its last event says {error!r}"


def _difference(run: Run, events: list[PastEvent]) -> Iterator[str]:
    blocked = run.blocked or {}
    last = events[-1]
    if last.kind == EventKind.RUN_BLOCKED and _as_stored(_plain(last)) == blocked:
        return
    if set(blocked) - WITHOUT_EVENT or blocked.get("path"):
        yield "the run is blocked by a difference that no event has"


def _waits(run: Run, events: list[PastEvent]) -> Iterator[str]:
    """Woken runs keep their rows until they are claimed."""
    waits = list(readable_waits(run.pk))
    if run.status == RunStatus.WAITING and not waits:
        yield "the run waits, and no row says for what"
    if waits and run.status not in (RunStatus.WAITING, RunStatus.READY):
        yield f"the run is {run.status}, and has rows of what it waits for"
    latest = {(event.generation, event.branch, event.path): event for event in events}
    for wait in waits:
        event = latest.get((wait["generation"], wait["branch"], wait["path"]))
        if event is None or event.kind not in OPENED_BY[WaitKind(wait["kind"])]:
            yield f"the run waits at {wait['path']} for {wait['kind']}; its history does not"
        else:
            yield from _terms(wait, event)


def _terms(wait: Mapping[str, Any], event: PastEvent) -> Iterator[str]:
    where = f"the wait at {wait['path']}"
    if wait["name"] != event.name:
        yield f"{where} is for {wait['name']!r}; its event says {event.name!r}"
    said = _plain(event)
    kind = WaitKind(wait["kind"])
    if kind in DUE:
        until = said.get(DUE[kind])
        due_at = None if until is None else datetime.fromisoformat(until)
        if wait["until"] != due_at or (kind != WaitKind.SIGNAL and due_at is None):
            yield f"{where} ends at {wait['until']}; its event says {due_at}"
    elif event.kind == EventKind.APPROVAL_REQUESTED and wait["reference"] != said["reference"]:
        yield f"{where} names {wait['reference']!r}; its event says {said['reference']!r}"


def _plain(event: PastEvent) -> dict[str, Any]:
    """The event's data, read without the classes that they may speak of."""
    found: dict[str, Any] = codec.plain(event.data or "{}")
    return found


def _as_stored(value: dict[str, Any]) -> Any:
    """As it stands in a column of JSON."""
    return json.loads(json.dumps(cleaned_all(value)))


def _orphans() -> Iterator[tuple[str, list[str]]]:
    """Rows of runs that are not there."""
    there = Exists(Run.objects.filter(pk=OuterRef("run_id")))
    for model in (Event, Payload, Message, Wait):
        for lost in model._default_manager.filter(~there).values_list("run_id", flat=True).distinct():
            yield lost, [f"{model._meta.db_table} has rows of a run that is not there"]
