"""An approval put back, seal and all, to what it once was: its run's own history gives that away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from approvals import Rejected, require_approval
from approvals.deadlines import expire_due
from approvals.errors import Altered
from approvals.models import Approval
from approvals.verifying import verify
from journal import runs, step, workflow
from journal.hooks import WaitDue
from journal.models import Message
from tests.approvals.scene import Scene, meddle, moved_clock

COLUMNS = (
    "status", "revision", "deadline_at", "decided_at", "decided_by_id", "decided_by_name", "decided_via", "reason",
    "used_at", "void_reason", "count", "head",
)  # fmt: skip


def kept(approval: Approval) -> Callable[[], None]:
    """Remembers the rows of an approval as they are; the function puts them back."""
    approval.refresh_from_db()
    count = approval.count
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS kept")
        cursor.execute("CREATE TABLE kept AS SELECT * FROM approvals_approval")

    def put_back() -> None:
        meddle(
            f"DELETE FROM approvals_entry WHERE approval_id = '{approval.id}' AND n > {count}",
            f"UPDATE approvals_approval a SET {', '.join(f'{name} = k.{name}' for name in COLUMNS)}"
            f" FROM kept k WHERE k.id = a.id AND a.id = '{approval.id}'",
            "DROP TABLE kept",
        )

    return put_back


def found(scene: Scene, approval: Approval) -> str:
    return "\n".join(verify(scene.run(approval)))


def test_a_used_approval_put_back_to_unused_is_found(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara")
    put_back = kept(approval)
    scene.work()
    assert len(scene.calls) == 1
    assert found(scene, approval) == ""
    put_back()
    approval.refresh_from_db()
    assert (approval.status, approval.used_at) == ("approved", None)
    assert "step_started" in found(scene, approval)


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_an_answer_that_the_run_has_taken_put_back_to_waiting_is_found(scene: Scene, verdict: str) -> None:
    approval = scene.start()
    put_back = kept(approval)
    scene.decide(approval, "mara", verdict)
    scene.work()
    assert found(scene, approval) == ""
    put_back()
    assert ("step_started" if verdict == "approve" else "step_refused") in found(scene, approval)


@pytest.mark.parametrize("decided_again", [True, False])
def test_a_rejection_put_back_before_the_run_looked_is_found(scene: Scene, decided_again: bool) -> None:
    """Its message was delivered, and nothing in the record was said by then."""
    approval = scene.start()
    put_back = kept(approval)
    scene.decide(approval, "mara", "reject")
    assert found(scene, approval) == ""
    put_back()
    if decided_again:
        approval.refresh_from_db()
        scene.decide(approval, "tomas")
        assert scene.result(approval) == "refunded 100.00"
    (line,) = verify(scene.run(approval))
    assert line.startswith(f"approval {approval.id}: its run was told of")


def test_a_deadline_put_back_is_found(scene: Scene) -> None:
    approval = scene.start()
    put_back = kept(approval)
    with moved_clock(timedelta(days=3)):
        expire_due(WaitDue(approval.run_id, approval.generation, approval.branch, approval.path, approval.id))
        scene.work()
    approval.refresh_from_db()
    assert approval.status == "expired"
    assert found(scene, approval) == ""
    put_back()
    assert found(scene, approval)


def test_what_was_granted_put_back_to_waiting_is_found(scene: Scene) -> None:
    """require_approval: the grant is an event of its own."""
    paid: list[int] = []

    @step
    def pay() -> None:
        paid.append(1)

    @workflow(owner="lead")
    def holds_a_permit() -> None:
        permit = require_approval(pay.call(), policy="refunds", summary="Pay")
        require_approval(pay.call(), policy="refunds", summary="Pay again")
        permit.run()

    run = runs.start(holds_a_permit, actor=scene.user("clerk"))
    scene.work()
    approval = Approval.objects.get(run=run.id)
    put_back = kept(approval)
    scene.decide(approval, "mara")
    scene.work()
    assert found(scene, approval) == ""
    Message.objects.filter(run=run.id).delete()
    put_back()
    assert "approval_granted" in found(scene, approval)


def test_what_was_withdrawn_put_back_to_waiting_is_found(scene: Scene) -> None:
    @step
    def plain() -> None:
        raise AssertionError

    @workflow(owner="lead")
    def changes_its_mind() -> str:
        require_approval(plain.call(), policy="refunds", summary="Look")
        return "done without it"

    run = runs.start(changes_its_mind, actor=scene.user("clerk"))
    scene.work()
    approval = Approval.objects.get(run=run.id)
    scene.decide(approval, "mara")
    put_back = kept(approval)
    scene.work()
    assert found(scene, approval) == ""
    put_back()
    assert "the run has ended" in found(scene, approval)


def test_a_decision_on_altered_rows_that_were_mended_is_reported_once(scene: Scene) -> None:
    approval = scene.start()
    put_back = kept(approval)
    meddle("UPDATE approvals_approval SET risk = 'low'")
    for _ in range(3):
        with pytest.raises(Altered):
            scene.decide(approval, "mara")
    meddle("UPDATE approvals_approval SET risk = 'medium'")
    put_back()
    (line,) = verify(scene.run(approval))
    assert "or found altered" in line


def test_an_ordinary_history_has_nothing_to_find(scene: Scene) -> None:
    """A rule's yes, the earlier no, an approval that was asked for again: none of them is sent to the run."""

    @workflow(owner="lead")
    def insists(times: int) -> list[str]:
        answers = []
        for _ in range(times):
            try:
                answers.append(scene_refund())
            except Rejected as no:
                answers.append(no.by)
        return answers

    @step
    def pay() -> str:
        return "paid"

    def scene_refund() -> str:
        return require_approval(pay.call(), policy="open", summary="Pay").run()

    by_rule = scene.start("5.00", matched=True)
    assert found(scene, by_rule) == ""
    run = runs.start(insists, 2, actor=scene.user("clerk"))
    scene.work()
    first = Approval.objects.get(run=run.id)
    scene.decide(first, "mara", reason="fine")
    with moved_clock(timedelta(hours=2)):
        scene.work()
        first.refresh_from_db()
        assert (first.status, first.revision) == ("waiting", 2)
        assert found(scene, first) == ""
        scene.decide(first, "mara", "reject")
        scene.work()
    said: Any = runs.result(run.id, timeout=0)
    assert said == ["mara", "mara"]
    assert found(scene, first) == ""
