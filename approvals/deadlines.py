"""What a deadline brings: the request expires, which is never a yes."""

from __future__ import annotations

from django.db import transaction

from approvals.models import Approval
from approvals.record import Record, lock
from approvals.states import Status, Via
from approvals.waking import wake
from journal.errors import Tampered, UnknownRun
from journal.hooks import WaitDue
from journal.locking import lock_run


def expire(record: Record) -> None:
    """Enters that nobody decided in time. The caller has seen that it is overdue, and saves."""
    record.close(Status.EXPIRED, via=Via.DEADLINE, reason="nobody decided in time")


def expire_due(due: WaitDue) -> None:
    """The hook `wait_due`: a run waits for an approval whose deadline has come."""
    with transaction.atomic(durable=True):
        try:
            lock_run(due.run_id)
            record = lock(due.reference)
        except UnknownRun:
            return
        except Tampered:
            # The run has to look at it, to be blocked by it.
            altered = Approval.objects.filter(pk=due.reference, run=due.run_id).first()
            if altered is not None:
                wake(altered)
            return
        if record is not None and record.approval.run_id == due.run_id and record.is_overdue:
            expire(record)
            record.save()
            wake(record.approval)
