"""What a run's own history says of its approvals, held against their records.

A record that was put back to an earlier state of its own, seal included, fits itself. The run went on from what it
said before: its events name the approval, and each decision left a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from approvals.models import Approval, Entry
from approvals.states import EntryKind, Status, Via
from journal import codec
from journal.models import Event, Message, Run
from journal.run_page import stored_body
from journal.states import ENDED, EventKind, MessageKind

_TAKEN = {
    EventKind.STEP_STARTED: (Status.APPROVED,),
    EventKind.APPROVAL_GRANTED: (Status.APPROVED,),
    EventKind.STEP_REFUSED: (Status.REJECTED, Status.EXPIRED),
}
"""The events that take an answer, and the verdicts that they follow from."""

_TOLD = (Via.BROWSER, Via.COMMAND, Via.DEADLINE)
"""Verdicts that come while the run waits: it is sent a message, in the same transaction."""

Own = Mapping[str, Sequence[Entry]]
"""By the approval's id: the entries that belong to its chain."""


def against_history(run: Run, approvals: Mapping[str, Approval], own: Own) -> Iterator[str]:
    """What does not fit, one line each."""
    used: set[str] = set()
    events = Event.objects.filter(run=run, kind__in=_TAKEN).order_by("seq")
    for seq, kind, data in events.values_list("seq", "kind", "data"):
        said = codec.plain(data or stored_body(run, seq, "data") or "{}")
        if "approval" not in said:
            continue  # a step without a guard, or a retry of one that has started
        if kind == EventKind.STEP_STARTED:
            used.add(said["approval"])
        approval = approvals.get(said["approval"])
        if approval is None:
            yield f"approval {said['approval']} (event {seq}, {kind}) is missing"
        elif odd := _odd(kind, said, approval, own[approval.id]):
            yield f"approval {approval.id}: event {seq} is {kind}, but {odd}"
    for approval in approvals.values():
        if approval.id not in used and any(entry.kind == EntryKind.USED for entry in own[approval.id]):
            yield f"approval {approval.id}: it was used, and no event of its run says so"
        if run.status in ENDED and _is_open(approval):
            yield f"approval {approval.id}: the run has ended, and it is still {approval.status} and open"


def _odd(kind: str, said: Mapping[str, Any], approval: Approval, own: Sequence[Entry]) -> str:
    """What is missing in the record for such an event to have been written."""
    revision = next((found for found in approval.revisions.all() if found.number == said["revision"]), None)
    if revision is None or bytes(revision.digest).hex() != said["digest"]:
        return f"revision {said['revision']} is not the one that it names"
    here = [entry for entry in own if entry.revision == said["revision"]]
    verdict = next((entry.verdict for entry in here if entry.kind == EntryKind.VERDICT), "")
    if verdict not in _TAKEN[EventKind(kind)]:
        return f"revision {said['revision']} is {verdict or 'undecided'}"
    if kind == EventKind.STEP_STARTED and not any(entry.kind == EntryKind.USED for entry in here):
        return "it was not used"
    return ""


def _is_open(approval: Approval) -> bool:
    if approval.status == Status.APPROVED:
        return approval.used_at is None and not approval.void_reason
    return approval.status == Status.WAITING


def against_messages(run: Run, approvals: Mapping[str, Approval], own: Own) -> Iterator[str]:
    """Each verdict that its run had to be told of left one message; more messages than verdicts: one is gone.

    Deciding on an altered record leaves one too: the run has to look."""
    sent = Message.objects.filter(run=run, kind=MessageKind.DECISION, arrived_at__isnull=False)
    told = Counter(codec.plain(payload).get("approval", "") for payload in sent.values_list("payload", flat=True))
    for approval in approvals.values():
        verdicts = [entry for entry in own[approval.id] if entry.kind == EntryKind.VERDICT and entry.via in _TOLD]
        if told[approval.id] > len(verdicts):
            yield (
                f"approval {approval.id}: its run was told of {told[approval.id]} decisions, its entries have"
                f" {len(verdicts)}: one was taken out, or found altered when somebody decided"
            )
