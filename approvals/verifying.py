"""What verify_journal finds about a run's approvals."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction

from approvals import record
from approvals.crosschecks import against_history, against_messages
from approvals.models import Approval, Entry, Revision
from approvals.states import EntryKind, Status
from journal import codec
from journal.locking import lock_run
from journal.models import Event, Run
from journal.run_page import stored_body
from journal.states import EventKind


def verify(run: Run) -> list[str]:
    """The hook `chain_verifiers`: what does not fit about the run's approvals, one line each."""
    if not _findings(run):
        return []
    # Something may have been written while we were reading: with the run locked, nothing is.
    with transaction.atomic():
        return _findings(lock_run(run.pk))


def _findings(run: Run) -> list[str]:
    approvals = Approval.objects.filter(run=run).select_related("policy").prefetch_related("entries", "revisions")
    found = {approval.id: approval for approval in approvals.order_by("created_at", "id")}
    findings = [line for approval in found.values() for line in _about(approval)]
    own = {approval.id: record.split(_entries(approval))[0] for approval in found.values()}
    return [*findings, *_missing(run, found), *against_history(run, found, own), *against_messages(run, found, own)]


def _entries(approval: Approval) -> list[Entry]:
    return sorted(approval.entries.all(), key=lambda entry: entry.n)


def _about(approval: Approval) -> Iterator[str]:
    entries = _entries(approval)
    revisions = sorted(approval.revisions.all(), key=lambda revision: revision.number)
    current = next((revision for revision in revisions if revision.number == approval.revision), None)
    findings, own = record.examine(approval, current, entries)
    yield from (f"approval {approval.id}: {finding}" for finding in findings)
    _, foreign = record.split(entries)
    if approval.status != Status.WAITING:  # else examine has said so
        yield from (f"approval {approval.id}: entry {entry.n} does not belong to it" for entry in foreign)
    for number in range(1, approval.revision):
        earlier = next((revision for revision in revisions if revision.number == number), None)
        if earlier is None or not record.was_requested(own, earlier):
            yield f"approval {approval.id}: revision {number} is not what was asked"
    yield from (
        f"approval {approval.id}: revision {revision.number} was never asked"
        for revision in revisions
        if revision.number > approval.revision
    )
    if not findings and _status_of(own, approval.revision) != approval.status:
        yield f"approval {approval.id}: it is {approval.status}, its entries say otherwise"


def _status_of(own: list[Entry], revision: int) -> str:
    """The status by the entries alone: that of the first verdict on the current revision."""
    verdicts = (entry.verdict for entry in own if entry.kind == EntryKind.VERDICT and entry.revision == revision)
    return next(verdicts, Status.WAITING)


def _missing(run: Run, found: dict[str, Approval]) -> Iterator[str]:
    """Approvals that the run's own history knows: gone, or asking for something else."""
    for event in Event.objects.filter(run=run, kind=EventKind.APPROVAL_REQUESTED).order_by("seq"):
        text = event.data or stored_body(run, event.seq, "data") or "{}"
        asked = codec.plain(text)
        approval = found.get(asked.get("reference", ""))
        if approval is None:
            yield f"approval {asked.get('reference')} (event {event.seq}) is missing"
        elif _first_digest(list(approval.revisions.all())) != asked.get("digest"):
            yield f"approval {approval.id} is not what event {event.seq} asked for"


def _first_digest(revisions: list[Revision]) -> str | None:
    return next((bytes(revision.digest).hex() for revision in revisions if revision.number == 1), None)
