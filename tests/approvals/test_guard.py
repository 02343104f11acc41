"""A gated step: asked once, approved or not, used once, with what was approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from approvals import Rejected, require_approval, requires_approval
from approvals.errors import PolicyError
from approvals.guard import ApprovalGuard
from approvals.models import Approval, PolicyVersion
from approvals.verifying import verify
from journal import codec, runs, step, workflow
from journal.describing import describe_run
from journal.errors import NotInWorkflow, Tampered
from journal.hooks import GuardedCall, Pending
from journal.locking import lock_run
from journal.models import Run
from tests.approvals.scene import Scene, moved_clock


def test_a_request_waits_and_an_approval_runs_the_step_once(scene: Scene) -> None:
    approval = scene.start("100.00")
    assert scene.calls == []
    assert (approval.status, approval.summary, approval.action) == (
        "waiting",
        "Refund 100.00 for order 10482",
        "refund",
    )
    assert (approval.starter_name, approval.owner_name, approval.risk) == ("clerk", "lead", "medium")
    assert approval.deadline_at is not None
    assert approval.deadline_at - approval.created_at == timedelta(hours=48)
    (wait,) = scene.run(approval).waits.all()
    assert (wait.kind, wait.reference, wait.due_at) == ("approval", approval.id, approval.deadline_at)

    scene.decide(approval, "mara")
    assert scene.result(approval) == "refunded 100.00"
    approval.refresh_from_db()
    assert scene.calls == [(approval.idempotency_key, "10482", Decimal("100.00"))]
    assert approval.used_at is not None
    assert (approval.status, approval.decided_by_name, approval.decided_via) == ("approved", "mara", "browser")
    assert scene.kinds(approval) == [
        ("requested", "", "clerk"),
        ("vote", "approve", "mara"),
        ("verdict", "approved", "mara"),
        ("used", "", ""),
    ]
    assert verify(scene.run(approval)) == []


def test_the_run_s_history_names_the_approval_and_its_digest(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara")
    scene.work()
    events = {event["kind"]: event for event in describe_run(scene.run(approval))["events"]}
    digest = bytes(approval.revisions.get().digest).hex()
    for kind in ("approval_requested", "step_started"):
        data = events[kind]["data"]
        assert (data["approval"], data["digest"], data["revision"]) == (approval.id, digest, 1)
        assert (data["policy"], data["policy_version"]) == ("refunds", 1)
    assert events["step_started"]["data"]["by"] == "mara"


def test_a_rejection_raises_with_its_reason_and_the_step_never_runs(scene: Scene) -> None:
    reason = 'no: "twice"\n\tsecond line 🙂'
    approval = scene.start()
    scene.decide(approval, "mara", "reject", reason=reason)
    assert scene.result(approval) == f"not refunded: {reason} (mara)"
    assert scene.calls == []
    approval.refresh_from_db()
    assert (approval.status, approval.reason, approval.used_at) == ("rejected", reason, None)


def test_what_passes_by_rule_leaves_its_request_and_its_decision(scene: Scene) -> None:
    approval = scene.start("25.00", matched=True)
    assert runs.result(approval.run_id, timeout=0) == "refunded 25.00"
    assert len(scene.calls) == 1
    assert (approval.status, approval.decided_by_name, approval.decided_via) == (
        "approved",
        "a rule of refunds",
        "rule",
    )
    entries = list(approval.entries.order_by("n"))
    assert [(entry.kind, entry.via) for entry in entries] == [
        ("requested", "workflow"),
        ("verdict", "rule"),
        ("used", "workflow"),
    ]
    assert entries[1].data == '{"rule": "matched and amount <= 25.00"}'


@pytest.mark.parametrize(("amount", "matched"), [("25.01", True), ("1.00", False), ("-1.00", True), ("NaN", True)])
def test_what_no_rule_lets_pass_waits_for_a_person(scene: Scene, amount: str, matched: bool) -> None:
    assert scene.start(amount, matched=matched).status == "waiting"
    assert scene.calls == []


def test_the_digest_covers_what_is_shown(scene: Scene) -> None:
    digests = {
        bytes(scene.start(amount, order=order).revisions.get().digest)
        for amount, order in [("100.00", "1"), ("100.01", "1"), ("100.00", "2")]
    }
    assert len(digests) == 3


def test_facts_are_worked_out_once_and_kept_with_the_revision(scene: Scene) -> None:
    revision = scene.start("600.00").revisions.get()
    assert codec.decode(revision.facts) == {"large": True}
    assert codec.decode(revision.args) == {"order_id": "10482", "amount": Decimal("600.00"), "matched": False}


def test_facts_that_raise_leave_it_to_a_person(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    @requires_approval(policy="refunds", summary=lambda **_: "Pay", facts=lambda **_: {"x": 1 / 0})
    @step
    def pay(amount: int, matched: bool) -> None: ...

    @workflow(owner="lead")
    def paying() -> None:
        pay(1, matched=True)

    run = runs.start(paying, actor=scene.user("clerk"))
    scene.work()
    approval = Approval.objects.get(run=run.id)
    assert approval.status == "waiting"
    assert codec.decode(approval.revisions.get().facts) == {"facts": "could not be worked out"}
    assert "facts for refunds raised" in caplog.text


def test_a_fact_does_not_stand_in_for_an_argument_of_its_name(scene: Scene) -> None:
    @requires_approval(policy="refunds", summary=lambda **_: "Pay", facts=lambda **_: {"matched": True})
    @step
    def pay(amount: int, matched: bool) -> None: ...

    @workflow(owner="lead")
    def paying() -> None:
        pay(1, matched=False)

    run = runs.start(paying, actor=scene.user("clerk"))
    scene.work()
    assert Approval.objects.get(run=run.id).status == "waiting"


def test_after_a_no_the_same_is_not_asked_again_in_that_run(scene: Scene) -> None:
    @requires_approval(policy="refunds", summary=lambda amount: "Pay it")
    @step
    def pay(amount: Decimal) -> None: ...

    @workflow(owner="lead")
    def insisting() -> list[str]:
        answers = []
        for amount in (Decimal(100), Decimal("100.00"), Decimal("100.01")):
            try:
                pay(amount)
                answers.append("paid")
            except Rejected as no:
                answers.append(f"{no.reason} ({no.by})")
        return answers

    run = runs.start(insisting, actor=scene.user("clerk"))
    scene.work()
    first = Approval.objects.get(run=run.id)
    scene.decide(first, "mara", "reject", reason="never")
    scene.work()
    _, second, third = Approval.objects.filter(run=run.id).order_by("created_at")
    assert (second.status, second.decided_via, second.reason, second.decided_by_name) == (
        "rejected",
        "earlier",
        "never",
        "mara",
    )
    assert third.status == "waiting"
    scene.decide(third, "mara")
    scene.work()
    assert runs.result(run.id, timeout=0) == ["never (mara)", "never (mara)", "paid"]


def test_another_run_may_ask_for_what_was_rejected_in_this_one(scene: Scene) -> None:
    first = scene.start()
    scene.decide(first, "mara", "reject")
    assert scene.start().status == "waiting"


def test_two_identical_calls_are_two_approvals(scene: Scene) -> None:
    """CASES C14: each answer reaches exactly its call."""

    @requires_approval(policy="refunds", summary=lambda amount: "Pay it")
    @step
    def pay(amount: Decimal) -> str:
        return "paid"

    @workflow(owner="lead")
    def twice() -> list[str]:
        return [pay(Decimal(5)), pay(Decimal(5))]

    run = runs.start(twice, actor=scene.user("clerk"))
    for count in (1, 2):
        scene.work()
        approvals = list(Approval.objects.filter(run=run.id).order_by("created_at"))
        assert [approval.status for approval in approvals] == ["approved"] * (count - 1) + ["waiting"]
        scene.decide(approvals[-1], "mara")
    scene.work()
    assert runs.result(run.id, timeout=0) == ["paid", "paid"]
    assert len({approval.idempotency_key for approval in Approval.objects.filter(run=run.id)}) == 2


def test_a_request_pins_the_version_of_its_policy(scene: Scene, settings: Any, tmp_path: Any) -> None:
    """CASES C17: what is asked for is decided under what it was asked under."""
    before = scene.start()
    changed = tmp_path / "policies.toml"
    changed.write_text(settings.SIGNOFF_POLICIES.read_text().replace('"finance"', '"support"', 1))
    settings.SIGNOFF_POLICIES = changed
    after = scene.start()
    assert (before.policy.version, before.policy.groups) == (1, ["finance"])
    assert (after.policy.version, after.policy.groups) == (2, ["support"])
    scene.decide(before, "mara")
    scene.decide(after, "sam")
    assert scene.result(before) == scene.result(after) == "refunded 100.00"
    assert PolicyVersion.objects.filter(name="refunds").count() == 2


def test_an_approval_not_used_in_time_is_asked_again(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara")
    with moved_clock(timedelta(hours=73)):
        scene.work()
        approval.refresh_from_db()
        assert (approval.status, approval.revision, approval.decided_at) == ("waiting", 2, None)
        assert scene.run(approval).status == "waiting"
        assert scene.calls == []
        scene.decide(approval, "tomas")
        assert scene.result(approval) == "refunded 100.00"
    assert [kind for kind, _, _ in scene.kinds(approval)] == [
        "requested",
        "vote",
        "verdict",
        "void",
        "requested",
        "vote",
        "verdict",
        "used",
    ]
    assert len(scene.calls) == 1
    assert verify(scene.run(approval)) == []


def test_an_approval_counts_from_the_decision_not_from_the_resume(scene: Scene) -> None:
    """CASES A30: decided in time, resumed after the deadline."""
    approval = scene.start()
    with moved_clock(timedelta(hours=47, minutes=59)):
        scene.decide(approval, "mara")
    with moved_clock(timedelta(hours=50)):
        assert scene.result(approval) == "refunded 100.00"


def test_a_used_approval_starts_nothing_else(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara")
    scene.work()
    approval.refresh_from_db()
    with pytest.raises(IntegrityError), transaction.atomic():
        Approval.objects.filter(pk=approval.pk).update(used_at=None)
    entry = approval.entries.get(kind="used")
    entry.pk, entry.n = None, entry.n + 1
    with pytest.raises(IntegrityError), transaction.atomic():
        entry.save(force_insert=True)


def _resolve(approval: Approval, reference: str, **changes: Any) -> Any:
    """Asks the guard as the engine would for the call of `approval`."""
    with transaction.atomic():
        call = GuardedCall(
            run=lock_run(approval.run_id),
            generation=approval.generation,
            branch=approval.branch,
            path=approval.path,
            attempt=1,
            step=approval.action,
            args_text="{}",
            args_digest=b"",
            arguments={},
            idempotency_key=approval.idempotency_key,
        )
        return ApprovalGuard("refunds", "").resolve(replace(call, **changes), reference, use=True)


def test_an_approval_is_for_its_own_call_and_once(scene: Scene) -> None:
    """AUTHORITY 2: one idempotency key, one start. What is granted are the stored arguments, not the caller's."""
    mine, other = scene.start(order="1"), scene.start(order="2")
    scene.decide(mine, "mara")
    with pytest.raises(Tampered, match=f"approval {mine.id} is for another call"):
        _resolve(other, mine.id)
    for changes in ({"idempotency_key": "x"}, {"path": "9"}, {"branch": 1}, {"generation": 1}):
        with pytest.raises(Tampered, match="is for another call"):
            _resolve(mine, mine.id, **changes)
    with pytest.raises(Tampered, match="approval 0000-0000-0000 is gone"):
        _resolve(mine, "0000-0000-0000")
    assert isinstance(_resolve(other, other.id), Pending)
    granted = _resolve(mine, mine.id)
    assert codec.decode(granted.args_text)["order_id"] == "1"
    with pytest.raises(Tampered, match="can no longer be used: it was used before"):
        _resolve(mine, mine.id)


def test_what_was_open_when_the_run_ended_is_withdrawn(scene: Scene) -> None:
    @requires_approval(policy="refunds", summary=lambda amount: "Pay it")
    @step
    def pay(amount: Decimal) -> None: ...

    @workflow(owner="lead")
    def changes_its_mind() -> str:
        require_approval(plain.call(), policy="refunds", summary="Look")
        return "done without it"

    @step
    def plain() -> None:
        raise AssertionError

    run = runs.start(changes_its_mind, actor=scene.user("clerk"))
    scene.work()
    approval = Approval.objects.get(run=run.id)
    assert approval.summary == "Look"
    scene.decide(approval, "mara")
    assert scene.result(approval) == "done without it"
    approval.refresh_from_db()
    assert (approval.status, approval.void_reason, approval.used_at) == ("approved", "the run has ended", None)
    assert verify(Run.objects.get(pk=run.id)) == []


def test_an_authority_is_for_one_call_once(scene: Scene) -> None:
    paid: list[Decimal] = []

    @step
    def pay(amount: Decimal) -> str:
        paid.append(amount)
        return f"paid {amount}"

    @workflow(owner="lead")
    def careful() -> str:
        permit = require_approval(pay.call(Decimal("7.50")), policy="refunds", summary="Pay 7.50")
        answer = permit.run()
        try:
            permit.run()
        except NotInWorkflow:
            return answer
        return "twice"

    run = runs.start(careful, actor=scene.user("clerk"))
    scene.work()
    approval = Approval.objects.get(run=run.id)
    assert paid == []
    scene.decide(approval, "mara")
    assert scene.result(approval) == "paid 7.50"
    assert paid == [Decimal("7.50")]
    approval.refresh_from_db()
    assert approval.used_at is not None


def test_decorators_in_the_wrong_order_are_explained() -> None:
    with pytest.raises(TypeError, match=r"pay is not a step: @requires_approval stands above @step"):

        @step
        @requires_approval(policy="refunds", summary=lambda: "Pay")  # type: ignore[arg-type]
        def pay() -> None: ...


def test_an_unknown_policy_is_refused_when_the_module_is_loaded() -> None:
    with pytest.raises(PolicyError, match=r"policy.refundz: there is no such policy"):
        requires_approval(policy="refundz", summary=lambda: "Pay")


def test_a_gated_step_keeps_its_types(scene: Scene) -> None:
    @requires_approval(policy="refunds", summary=lambda amount: "Pay")
    @step
    def pay(amount: Decimal) -> int:
        return int(amount)

    paid: int = pay.unguarded(Decimal(5))
    assert paid == 5
    with pytest.raises(NotInWorkflow):
        pay(Decimal(5))
    with pytest.raises(TypeError):
        pay.unguarded("5", 6)  # type: ignore[call-arg, arg-type]
