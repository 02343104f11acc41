"""verify_journal: does every row still say what was written?

It finds an edited, missing, added or swapped event or payload, a cut tail, and a run's row whose identity,
count or head was changed, by anybody who does not hold the chain's key. It does not find rows put back to how
they all once were together (an older backup of one run), nor what somebody with the key writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, OuterRef

from journal import chain, codec, hooks, statements
from journal.errors import UnknownRun
from journal.history import PastEvent
from journal.loading import past_event
from journal.models import Event, Payload, Run
from journal.states import ENDED, EventKind, RunStatus


def verify(run_id: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """Each run's id with what does not fit, one line each; an empty list if all does. Raises UnknownRun."""
    runs = Run.objects.order_by("pk")
    if run_id is not None:
        runs = runs.filter(pk=run_id)
        if not runs:
            raise UnknownRun(run_id)
    for run in runs.iterator(chunk_size=200):
        yield run.pk, verify_run(run)
    if run_id is None:
        yield from _orphans()


def verify_run(run: Run) -> list[str]:
    events = [past_event(row) for row in statements.rows(statements.LOAD_HISTORY, [run.pk])]
    found = [*_chain(run, events), *_identity(run, events), *_bodies(run, events)]
    for verifier in hooks.chain_verifiers:
        found += verifier(run)
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


def _identity(run: Run, events: list[PastEvent]) -> Iterator[str]:
    """The row's columns against what the first and the last event say."""
    if not events or events[0].kind != EventKind.RUN_STARTED:
        return
    said = events[0].read()
    wanted = said | {"workflow": events[0].name, "code": f"{events[0].name}@{said['version']}"}
    shown: dict[str, Any] = {
        name: getattr(run, name) for name in ("workflow", "code", "version", "key", "owner", "actor_name")
    }
    shown["actor"] = run.actor_id
    for name, value in shown.items():
        if value != wanted[name]:
            yield f"the run's {name} is {value!r}; it was started with {wanted[name]!r}"
    if bytes(run.input_hash) != events[0].args_digest:
        yield "the run's input_hash is not that of its input"
    ends = {EventKind.RUN_COMPLETED: RunStatus.COMPLETED, EventKind.RUN_FAILED: RunStatus.FAILED}
    ended = ends.get(events[-1].kind)
    if (run.status in ENDED or ended) and run.status != ended:
        yield f"the run's status is {run.status}; its last event is {events[-1].kind}"


def _bodies(run: Run, events: list[PastEvent]) -> Iterator[str]:
    known: set[bytes] = set()
    with_args = set()
    for event in events:
        for body, digest, what in ((event.args, event.args_digest, "arguments"), (event.data, event.data_hash, "data")):
            if digest is not None:
                known.add(digest)
            if body is not None and (digest is None or codec.digest(body) != digest):
                yield f"the {what} of event {event.seq} ({event.kind}) do not fit their hash"
        if event.data_hash is not None and event.data is None:
            yield f"the data of event {event.seq} ({event.kind}) are missing"
        if event.args is not None:
            with_args.add(event.args_digest)
        elif event.args_digest is not None and event.args_digest not in with_args:
            yield f"the arguments of event {event.seq} ({event.kind}) are missing"
    for stored, body in Payload.objects.filter(run=run).values_list("hash", "body"):
        if bytes(stored) not in known or codec.digest(body) != bytes(stored):
            yield f"payload {bytes(stored).hex()[:12]} does not belong to this run, or does not fit its hash"


def _orphans() -> Iterator[tuple[str, list[str]]]:
    """Events and payloads of runs that are not there."""
    there = Exists(Run.objects.filter(pk=OuterRef("run_id")))
    for model in (Event, Payload):
        for lost in model._default_manager.filter(~there).values_list("run_id", flat=True).distinct():
            yield lost, [f"{model._meta.db_table} has rows of a run that is not there"]
