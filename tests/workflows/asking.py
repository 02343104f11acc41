"""A run that goes on by a signal and then by a decision, and who answers it. Gates and marks are of returns_slow."""

from __future__ import annotations

from approvals import requires_approval
from approvals.decisions import decide
from approvals.models import Revision
from approvals.people import person_named
from journal import runs, step, wait_for_signal, workflow
from tests.agents.shop import OWNER, REVIEWER, STARTER
from tests.workflows.plain import mark
from tests.workflows.returns_slow import hold


@requires_approval(policy="refunds", summary=lambda gates: f"Leave a mark in {gates}")
@step
def approved_mark(gates: str) -> None:
    """Leaves a mark for each execution that was approved."""
    hold(gates, "approved", waits=False)


@workflow(owner=OWNER)
def asks_twice(gates: str) -> None:
    mark(gates, "asked")
    wait_for_signal("answer")
    mark(gates, "answered")
    approved_mark(gates)


def start(gates: str) -> str:
    return runs.start(asks_twice, gates, actor=person_named(STARTER)).id


def signal(run_id: str) -> None:
    runs.signal(run_id, "answer", 1)


def approve(run_id: str) -> None:
    """As the reviewer, who has seen it."""
    seen = Revision.objects.get(approval__run=run_id)
    digest = bytes(seen.digest).hex()
    reviewer = person_named(REVIEWER)
    decide(seen.approval_id, revision=seen.number, digest=digest, actor=reviewer, verdict="approve", via="browser")
