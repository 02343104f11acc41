"""When a run has ended, nobody has to decide for it any more."""

from __future__ import annotations

from django.db.models import Q

from approvals.models import Approval
from approvals.record import lock
from approvals.states import EntryKind, Status, Via
from journal.errors import Tampered
from journal.models import Run

REASON = "the run has ended"


def withdraw_open(run: Run) -> None:
    """The hook `run_closed`: withdraws what waits, and voids what was approved and not used."""
    useless = Q(status=Status.WAITING) | Q(status=Status.APPROVED, used_at=None, void_reason="")
    for approval_id in Approval.objects.filter(useless, run=run).order_by("id").values_list("id", flat=True):
        try:
            record = lock(approval_id)
        except Tampered:
            continue  # logged there; verify_journal names it, and the run can end all the same
        if record is None:
            continue
        approval = record.approval
        if approval.status == Status.WAITING:
            record.close(Status.WITHDRAWN, via=Via.WORKFLOW, reason=REASON)
        else:
            record.add(EntryKind.VOID, via=Via.WORKFLOW, reason=REASON)
            approval.void_reason = REASON
        record.save()
