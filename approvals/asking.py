"""Putting an action to people: the request with its first revision, and what settles it without them."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, Max

from approvals import rules
from approvals.digests import action_digest
from approvals.models import Approval, PolicyVersion, Revision
from approvals.policies import Policy, spec_digest
from approvals.record import Record, revision_digest
from approvals.states import EntryKind, Status, Via
from approvals.text import headline
from journal.hooks import GuardedCall
from journal.ids import new_id

log = logging.getLogger("approvals.asking")


def open_request(call: GuardedCall, *, name: str, policy: Policy, summary: str, facts: str, now: datetime) -> Record:
    """The request for `call` under the policy of that name, not saved yet. `facts` is codec text."""
    run = call.run
    approval = Approval(
        # 60 random bits: one that is taken fails the insert, and the run's next try asks under another.
        id=new_id(),
        run=run,
        generation=call.generation,
        branch=call.branch,
        path=call.path,
        attempt=call.attempt,
        idempotency_key=call.idempotency_key,
        action=call.step,
        policy=version_of(name, policy, now),
        risk=policy.risk,
        summary=headline(summary),
        starter_id=run.actor_id,
        starter_name=run.actor_name,
        owner_name=run.owner,
        created_at=now,
    )
    record = Record(approval, _revision(approval, policy, 1, (call.args_text, summary, facts), now), now)
    _request(record, policy)
    return record


def ask_again(record: Record) -> None:
    """Voids an approval that was not used in time, and puts the same action to people once more."""
    approval, policy, old = record.approval, record.policy, record.revision
    record.add(EntryKind.VOID, via=Via.WORKFLOW, reason="not used in time")
    approval.revision += 1
    record.revision = _revision(approval, policy, approval.revision, (old.args, old.summary, old.facts), record.now)
    approval.status = Status.WAITING
    approval.decided_at = approval.decided_by_id = None
    approval.decided_by_name = approval.decided_via = approval.reason = ""
    _request(record, policy)


def _revision(
    approval: Approval, policy: Policy, number: int, content: tuple[str, str, str], now: datetime
) -> Revision:
    args, summary, facts = content
    digest = action_digest(
        step=approval.action,
        args=args,
        summary=summary,
        facts=facts,
        risk=approval.risk,
        authority=policy.authority(),
    )
    return Revision(
        approval=approval,
        number=number,
        args=args,
        summary=summary,
        facts=facts,
        digest=digest,
        proposer_id=approval.starter_id,
        proposer_name=approval.starter_name,
        created_at=now,
    )


def _request(record: Record, policy: Policy) -> None:
    approval, revision = record.approval, record.revision
    approval.deadline_at = None if policy.deadline is None else record.now + policy.deadline
    record.add(
        EntryKind.REQUESTED,
        via=Via.WORKFLOW,
        actor_id=revision.proposer_id,
        actor_name=revision.proposer_name,
        data={"seal": revision_digest(revision)},
    )


# ---------------------------------------------------------------- without people


def give_earlier_answer(record: Record) -> bool:
    """After a no, the same is not asked again in the same run: the request gets the earlier answer."""
    approval = record.approval
    earlier = (
        Approval.objects.filter(
            run=approval.run_id,
            status=Status.REJECTED,
            revisions__number=F("revision"),
            revisions__digest=record.revision.digest,
        )
        .order_by("decided_at")
        .first()
    )
    if earlier is None:
        return False
    record.close(
        Status.REJECTED,
        via=Via.EARLIER,
        actor_id=earlier.decided_by_id,
        actor_name=earlier.decided_by_name,
        reason=earlier.reason,
        data={"approval": earlier.id},
    )
    return True


def pass_by_rule(record: Record, policy: Policy, arguments: dict[str, Any], facts: dict[str, Any]) -> None:
    """Approves what a rule of the policy lets pass, and notes which. In doubt, a person is asked.

    Rules see the arguments and the facts by name; a name that is both leaves a doubt."""
    values = {name: value for name, value in (arguments | facts).items() if name not in arguments or name not in facts}
    for line in policy.rule:
        if _passes(line.when, values):
            by = f"a rule of {record.approval.policy.name}"
            record.close(Status.APPROVED, via=Via.RULE, actor_name=by, data={"rule": line.when})
            return


def _passes(rule: str, values: dict[str, Any]) -> bool:
    try:
        return rules.parse(rule).passes(values)
    except rules.Unclear as doubt:
        log.info("the rule %r leaves it to a person: %s", rule, doubt, extra={"action": "rule_unclear"})
    except Exception:
        log.exception("the rule %r failed; a person is asked", rule, extra={"action": "rule_failed"})
    return False


# ---------------------------------------------------------------- policies


def version_of(name: str, policy: Policy, now: datetime) -> PolicyVersion:
    """The stored version with this content; made when a request first needs it."""
    spec = policy.spec()
    digest = spec_digest(spec)
    known = PolicyVersion.objects.filter(name=name, digest=digest).first()
    if known is not None:
        return known
    with connection.cursor() as cursor:
        # Versions are rare; this keeps two requests from giving out one number. Held to the end of the transaction.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"approvals policy {name}"])
    known = PolicyVersion.objects.filter(name=name, digest=digest).first()
    if known is not None:
        return known
    highest = PolicyVersion.objects.filter(name=name).aggregate(highest=Max("version"))["highest"] or 0
    return PolicyVersion.objects.create(
        name=name, version=highest + 1, digest=digest, spec=spec, groups=policy.groups, created_at=now
    )
