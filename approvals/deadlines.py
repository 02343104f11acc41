"""What a deadline brings: the request expires, which is never a yes."""

from __future__ import annotations

from django.db import transaction

from approvals.models import Approval
from approvals.record import Record, lock
from approvals.states import Status, Via
from approvals.waking import wake
from journal.errors import Tampered
from journal.hooks import WaitDue
from journal.locking import lock_run_if_free
from journal.reconnecting import retried


def expire(record: Record) -> None:
    """Enters that nobody decided in time. The caller has seen that it is overdue, and saves."""
    record.close(Status.EXPIRED, via=Via.DEADLINE, reason="nobody decided in time")


def expire_due(due: WaitDue) -> None:
    """The hook `wait_due`: a run waits for an approval whose deadline has come."""
    retried(lambda: _expire_due(due), f"the end of the time of {due.reference}")


def _expire_due(due: WaitDue) -> None:
    with transaction.atomic(durable=True):
        if lock_run_if_free(due.run_id) is None:
            return  # by somebody who decides, perhaps, and looks at the clock then; else the next sweep does
        try:
            record = lock(due.reference)
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
