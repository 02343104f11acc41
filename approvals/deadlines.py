"""What a deadline brings: the request expires, which is never a yes."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from approvals.models import Approval
from approvals.record import Record, lock
from approvals.states import Status, Via
from approvals.waking import wake
from journal.clock import db_now
from journal.errors import Tampered, UnknownRun
from journal.hooks import WaitDue
from journal.locking import lock_run


def is_overdue(approval: Approval, now: datetime) -> bool:
    """Whether it waits although its deadline is over. `now` is the database's, read under the locks."""
    return approval.status == Status.WAITING and approval.deadline_at is not None and now >= approval.deadline_at


def expire(record: Record, now: datetime) -> None:
    """Enters that nobody decided in time. The caller has seen that it is overdue, and saves."""
    record.close(Status.EXPIRED, via=Via.DEADLINE, at=now, reason="nobody decided in time")


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
        if record is None or record.approval.run_id != due.run_id:
            return
        now = db_now()
        if is_overdue(record.approval, now):
            expire(record, now)
            record.save()
            wake(record.approval)
