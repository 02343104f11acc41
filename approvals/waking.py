"""Telling a run that something was decided about it."""

from __future__ import annotations

from approvals.models import Approval
from journal.inbox import send_addressed
from journal.states import MessageKind


def wake(approval: Approval) -> None:
    """Sends the run a message, in the transaction at hand. It names the approval and nothing else: what was
    decided is read from the approval's row, under its lock, when the run uses it."""
    send_addressed(
        approval.run_id,
        kind=MessageKind.DECISION,
        generation=approval.generation,
        branch=approval.branch,
        path=approval.path,
        attempt=approval.attempt,
        payload={"approval": approval.id},
    )
