"""The guard before a step: asks once, and gives the answer to the step's start, inside the engine's transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from approvals import policies
from approvals.asking import ask_again, give_earlier_answer, open_request, pass_by_rule
from approvals.errors import Expired, Rejected
from approvals.models import Approval
from approvals.record import Record, lock
from approvals.states import EntryKind, Status, Via
from approvals.text import storable
from journal import codec
from journal.clock import db_now
from journal.errors import Tampered
from journal.hooks import Granted, GuardedCall, Pending, Refused, Requested

log = logging.getLogger("approvals.guard")

Summary = str | Callable[..., str]
Facts = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True)
class ApprovalGuard:
    """Stops a step until its policy is satisfied: a journal.hooks.Guard."""

    policy: str
    summary: Summary
    facts: Facts | None = None

    def request(self, call: GuardedCall) -> Requested:
        """Puts the call to people; what a rule lets pass, or was rejected before, is decided at once.

        The summary and the facts are worked out here, once, and kept. A summary that raises fails the step; facts
        that raise leave it to a person."""
        policy = policies.find(self.policy)
        summary = storable(self._summary(call.arguments))
        facts = self._facts(call.arguments)
        now = db_now()
        record = open_request(
            call,
            name=self.policy,
            policy=policy,
            summary=summary,
            facts=codec.encode({"facts": "could not be worked out"} if facts is None else facts, name="facts"),
            now=now,
        )
        if not give_earlier_answer(record) and facts is not None:
            pass_by_rule(record, policy, call.arguments, facts)
        record.save()
        approval = record.approval
        return Requested(approval.id, approval.summary, approval.deadline_at, _about(record))

    def resolve(self, call: GuardedCall, reference: str, *, use: bool) -> Pending | Granted | Refused:
        """The answer as the locked row has it. With `use`, a grant is used up: here, and nowhere else."""
        record = lock(reference)
        if record is None:
            raise Tampered(f"approval {reference} is gone")
        approval = record.approval
        _check_belongs(approval, call)
        if _is_stale(record):
            ask_again(record)
            record.save()
        if approval.status == Status.WAITING:
            return Pending(approval.summary, approval.deadline_at)
        if approval.status == Status.APPROVED:
            return _grant(record, use=use)
        return _refuse(record)

    def _summary(self, arguments: dict[str, Any]) -> str:
        summary = self.summary if isinstance(self.summary, str) else self.summary(**arguments)
        if not isinstance(summary, str) or not summary.strip():
            raise TypeError("a summary is a text that says what would happen")
        return summary

    def _facts(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """The facts, as they come back from their stored text; None if they could not be worked out."""
        if self.facts is None:
            return {}
        try:
            found: dict[str, Any] = codec.decode(codec.encode(dict(self.facts(**arguments)), name="facts"))
        except Exception:
            log.exception("facts for %s raised", self.policy, extra={"action": "facts_failed"})
            return None
        return found


def _about(record: Record) -> dict[str, Any]:
    """What the run's own history keeps of its approval."""
    approval, revision = record.approval, record.revision
    return {
        "approval": approval.id,
        "revision": revision.number,
        "digest": bytes(revision.digest).hex(),
        "policy": approval.policy.name,
        "policy_version": approval.policy.version,
    }


def _check_belongs(approval: Approval, call: GuardedCall) -> None:
    """An approval is for one call: that of its position and its idempotency key."""
    mine = (approval.run_id, approval.generation, approval.branch, approval.path, approval.idempotency_key)
    if mine != (call.run.pk, call.generation, call.branch, call.path, call.idempotency_key):
        raise Tampered(f"approval {approval.pk} is for another call")


def _is_stale(record: Record) -> bool:
    approval = record.approval
    if approval.status != Status.APPROVED or approval.used_at or approval.void_reason or approval.decided_at is None:
        return False
    return record.now >= approval.decided_at + record.policy.valid_for


def _grant(record: Record, *, use: bool) -> Granted:
    approval = record.approval
    if approval.used_at or approval.void_reason:
        raise Tampered(f"approval {approval.pk} can no longer be used: {approval.void_reason or 'it was used before'}")
    if use:
        record.add(EntryKind.USED, via=Via.WORKFLOW, data={"idempotency_key": approval.idempotency_key})
        approval.used_at = record.now
        record.save()
    return Granted(record.revision.args, _about(record) | {"by": approval.decided_by_name, "via": approval.decided_via})


def _refuse(record: Record) -> Refused:
    approval = record.approval
    if approval.status == Status.REJECTED:
        return Refused(Rejected(approval.reason, approval.decided_by_name, approval.id), _about(record))
    if approval.status == Status.EXPIRED and approval.deadline_at is not None:
        return Refused(Expired(approval.deadline_at, approval.id), _about(record))
    raise Tampered(f"approval {approval.pk} is {approval.status}: its run should have ended")
