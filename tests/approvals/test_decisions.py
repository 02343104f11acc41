"""Who decides, when, and what the others are told."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from approvals import queries, requires_approval
from approvals.closing import withdraw_open
from approvals.decisions import decide
from approvals.errors import (
    AlreadyDecided,
    DeadlinePassed,
    InRun,
    InTransaction,
    NotPermitted,
    ReasonRequired,
    ReasonTooLong,
    Superseded,
    UnknownApproval,
    UnknownChoice,
    Withdrawn,
)
from approvals.models import Approval, Entry
from approvals.verifying import verify
from approvals.waking import wake
from journal import runs, step, workflow
from journal.locking import lock_run
from journal.models import Event, Message
from tests.approvals.scene import Scene, moved_clock


def test_second_approval_reports_the_first_decision(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara")
    with pytest.raises(AlreadyDecided, match=r"^Already approved by mara at \d\d:\d\d UTC\.$") as caught:
        scene.decide(approval, "tomas")
    assert (caught.value.by, caught.value.status, caught.value.own) == ("mara", "approved", False)
    with pytest.raises(AlreadyDecided, match="Already approved by mara"):
        scene.decide(approval, "tomas", "reject")


def test_the_same_decision_again_is_quietly_the_same(scene: Scene) -> None:
    """CASES C3: said twice by one person it is one decision."""
    approval = scene.start()
    first = scene.decide(approval, "mara")
    second = scene.decide(approval, "mara")
    assert (first.is_repeated, second.is_repeated, second.status) == (False, True, "approved")
    assert second.at == first.at
    scene.work()
    assert scene.decide(approval, "mara").is_repeated
    assert Counter(kind for kind, _, _ in scene.kinds(approval))["vote"] == 1
    assert Message.objects.filter(run=approval.run_id).count() == 1


def test_no_reason_is_an_empty_one(scene: Scene) -> None:
    first, second = scene.start(), scene.start()
    assert scene.decide(first, "mara", reason=None).status == "approved"
    with pytest.raises(ReasonRequired):
        scene.decide(second, "mara", "reject", reason=None)


def test_changing_one_s_mind_after_the_verdict_is_answered_with_the_verdict(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara")
    with pytest.raises(AlreadyDecided, match=r"^You already approved this at"):
        scene.decide(approval, "mara", "reject")
    assert scene.result(approval) == "refunded 100.00"


def test_what_a_rule_decided_is_said_so(scene: Scene) -> None:
    approval = scene.start("5.00", matched=True)
    with pytest.raises(AlreadyDecided, match="Already approved by a rule of refunds at"):
        scene.decide(approval, "mara")


# ---------------------------------------------------------------- who

REFUSED = [
    ("clerk", "You started this run, so somebody else has to decide (four eyes)."),
    ("lead", "You own this workflow, so somebody else has to decide (four eyes)."),
    ("sam", "You are not in finance, the group that decides this."),
    ("olga", "You are not in finance, the group that decides this."),
    ("vera", "Your role does not let you decide."),
]


@pytest.mark.parametrize(("name", "why"), REFUSED)
def test_who_may_not_decide_is_told_why_and_it_is_kept(scene: Scene, name: str, why: str) -> None:
    """CASES C20: one policy function on every path, and the refusal is recorded, holding nothing up."""
    approval = scene.start()
    ways = [(via, verdict) for via in ("browser", "command") for verdict in ("approve", "reject")]
    for via, verdict in ways * 3:
        with pytest.raises(NotPermitted) as caught:
            scene.decide(approval, name, verdict, via=via, authenticated_by=f"by {via}")
        assert str(caught.value) == why
    approval.refresh_from_db()
    assert approval.status == "waiting"
    refused = approval.entries.filter(kind="refused").order_by("n")
    assert [(entry.via, entry.verdict) for entry in refused] == ways
    for entry in refused:
        assert (entry.actor_name, entry.reason, entry.authenticated_by) == (name, why, f"by {entry.via}")
    assert queries.detail(scene.user(name), approval).standing.why == why
    assert not queries.detail(scene.user(name), approval).can_decide
    scene.decide(approval, "mara")
    assert scene.result(approval) == "refunded 100.00"
    assert verify(scene.run(approval)) == []


def test_a_superuser_is_kept_apart_like_anybody(scene: Scene) -> None:
    """CASES C20: no owner's or admin's shortcut."""
    approval = scene.start()
    clerk = scene.user("clerk")
    clerk.is_superuser = clerk.is_staff = True
    clerk.save()
    with pytest.raises(NotPermitted, match="four eyes"):
        scene.decide(approval, "clerk")
    olga = scene.user("olga")
    olga.is_superuser = True
    olga.save()
    with pytest.raises(NotPermitted, match="not in finance"):
        scene.decide(approval, "olga")


def test_the_approval_s_message_cannot_be_sent_by_signal(scene: Scene) -> None:
    """CASES C20: the raw signal is no way around; the run wakes, looks at the row, and sleeps on."""
    approval = scene.start()
    for name in ("decision", "approval", approval.id, "approve"):
        runs.signal(approval.run_id, name, {"approval": approval.id, "verdict": "approve"}, actor=scene.user("clerk"))
    scene.work()
    assert scene.run(approval).status == "waiting"
    assert not Message.objects.exclude(kind="signal").exists()


def test_a_forged_wake_up_decides_nothing(scene: Scene) -> None:
    """AUTHORITY 1: the message says that there is something to look at, and nothing else."""
    approval = scene.start()
    with transaction.atomic():
        lock_run(approval.run_id)
        wake(approval)
    scene.work()
    assert scene.run(approval).status == "waiting"
    assert scene.calls == []


@pytest.mark.parametrize("actor", [None, ""])
def test_four_eyes_fails_closed_when_the_starter_is_not_known(scene: Scene, actor: Any) -> None:
    approval = scene.start(actor=actor)
    for name in ("mara", "tomas", "lead"):
        with pytest.raises(NotPermitted, match=r"Nobody can decide this: .* nobody knows who started the run"):
            scene.decide(approval, name)


def test_four_eyes_fails_closed_when_the_owner_is_gone(scene: Scene) -> None:
    approval = scene.start()
    lead = scene.user("lead")
    lead.is_active = False
    lead.save()
    with pytest.raises(NotPermitted, match=r"Nobody can decide this: .* the owner, lead, is not an active person here"):
        scene.decide(approval, "mara")
    lead.is_active = True
    lead.save()
    scene.decide(approval, "mara")


def test_a_service_may_start_what_a_person_decides(scene: Scene) -> None:
    scene.decide(scene.start(actor="nightly import"), "mara")


def test_a_service_with_a_person_s_name_is_that_person(scene: Scene) -> None:
    run = runs.start(scene.handle, "1", 5, False, actor="mara")
    scene.work()
    approval = Approval.objects.get(run=run.id)
    assert approval.starter_id is None
    with pytest.raises(NotPermitted, match="You started this run"):
        scene.decide(approval, "mara")


def test_rights_are_those_of_the_moment_of_deciding(scene: Scene) -> None:
    """CASES C21: the page was open before the group was left, or the account closed."""
    approval = scene.start()
    mara, tomas = scene.user("mara"), scene.user("tomas")
    assert queries.detail(mara, approval).can_decide
    mara.groups.remove(*mara.groups.filter(name="finance"))
    with pytest.raises(NotPermitted, match="You are not in finance"):
        scene.decide(approval, "mara")
    tomas.is_active = False
    tomas.save()
    with pytest.raises(NotPermitted, match="Your account is not active"):
        scene.decide(approval, "tomas")
    with pytest.raises(NotPermitted, match="You are not signed in"):
        decide(approval.id, revision=1, digest="", actor=AnonymousUser(), verdict="approve", via="browser")


# ---------------------------------------------------------------- what, when


def test_an_id_that_is_none_is_said_to_be_unknown(scene: Scene) -> None:
    """CASES C16"""
    approval = scene.start()
    for other in ("0000-0000-0000", "nonsense", "", approval.run_id):
        with pytest.raises(UnknownApproval, match="There is no request"):
            decide(other, revision=1, digest="", actor=scene.user("mara"), verdict="approve", via="browser")


def test_an_id_may_be_typed_by_hand(scene: Scene) -> None:
    approval = scene.start()
    digest = bytes(approval.revisions.get().digest).hex().upper()
    typed = approval.id.lower().replace("-", " ")
    assert decide(typed, revision=1, digest=digest, actor=scene.user("mara"), verdict="approve", via="browser")


@pytest.mark.parametrize("seen", [{"revision": 0}, {"revision": 2}, {"digest": "00" * 32}, {"digest": ""}], ids=str)
def test_only_what_was_seen_is_decided(scene: Scene, seen: dict[str, Any]) -> None:
    approval = scene.start()
    with pytest.raises(Superseded, match="revision 1") as caught:
        scene.decide(approval, "mara", **seen)
    assert caught.value.current == 1
    approval.refresh_from_db()
    assert approval.status == "waiting"


def test_an_old_revision_is_not_decided(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara")
    with moved_clock(timedelta(hours=73)):
        scene.work()
        with pytest.raises(Superseded, match="Revision 1 is not the current one; look at revision 2"):
            scene.decide(approval, "tomas")


@pytest.mark.parametrize("reason", ["", "  \n\t"])
def test_a_rejection_needs_a_reason(scene: Scene, reason: str) -> None:
    approval = scene.start()
    with pytest.raises(ReasonRequired, match="A rejection needs a reason"):
        scene.decide(approval, "mara", "reject", reason=reason)


def test_a_reason_is_kept_whole_or_refused(scene: Scene) -> None:
    """CASES C18: quotes, lines, emoji and what no database holds."""
    approval = scene.start()
    with pytest.raises(ReasonTooLong, match=r"10,001 characters; the limit is 10,000"):
        scene.decide(approval, "mara", "reject", reason="x" * 10_001)
    scene.decide(approval, "mara", "reject", reason="NUL \0, half \ud800, whole \ud83d\ude00\n'second' \"line\"")
    approval.refresh_from_db()
    assert approval.reason == "NUL \ufffd, half \ufffd, whole \U0001f600\n'second' \"line\""


@pytest.mark.parametrize("verdict", ["", "approved", "APPROVE", "ask_changes", "take_back", "yes"])
def test_other_words_are_no_verdicts(scene: Scene, verdict: str) -> None:
    approval = scene.start()
    with pytest.raises(UnknownChoice, match="there are: approve, reject"):
        scene.decide(approval, "mara", verdict)


def test_after_the_deadline_the_decision_itself_enters_the_end(scene: Scene) -> None:
    approval = scene.start()
    with moved_clock(timedelta(hours=48)):
        with pytest.raises(DeadlinePassed, match=r"The deadline passed at .* rejected by default"):
            scene.decide(approval, "mara")
        approval.refresh_from_db()
        assert (approval.status, approval.decided_via) == ("expired", "deadline")
        assert scene.result(approval) == "not refunded: nobody decided in time"
        with pytest.raises(DeadlinePassed):
            scene.decide(approval, "sam")
    assert scene.calls == []
    assert verify(scene.run(approval)) == []


def test_the_sweep_enters_the_end_when_nobody_comes(scene: Scene) -> None:
    """CASES C5: the history says which of the two it was."""
    approval = scene.start()
    with moved_clock(timedelta(hours=48, seconds=1)):
        scene.work()
    approval.refresh_from_db()
    assert approval.status == "expired"
    assert scene.kinds(approval) == [("requested", "", "clerk"), ("verdict", "expired", "")]
    assert scene.result(approval) == "not refunded: nobody decided in time"
    refused = Event.objects.get(run=approval.run_id, kind="step_refused")
    assert refused.data is not None
    assert "Expired" in refused.data


def test_just_before_the_deadline_counts(scene: Scene) -> None:
    approval = scene.start()
    with moved_clock(timedelta(hours=47, minutes=59)):
        scene.decide(approval, "mara")
    with moved_clock(timedelta(hours=99)):
        assert scene.decide(approval, "mara").is_repeated
        with pytest.raises(AlreadyDecided):
            scene.decide(approval, "tomas")


def test_what_nobody_needs_any_more_is_said_to_be_withdrawn(scene: Scene) -> None:
    approval = scene.start()
    with transaction.atomic():
        withdraw_open(lock_run(approval.run_id))
    approval.refresh_from_db()
    assert approval.status == "withdrawn"
    with pytest.raises(Withdrawn, match=r"Withdrawn at .*: the run has ended\."):
        scene.decide(approval, "mara")
    assert verify(scene.run(approval)) == []


def test_the_policy_may_want_a_reason_of_those_who_approve(scene: Scene) -> None:
    @requires_approval(policy="open", summary=lambda: "Open the door")
    @step
    def door() -> str:
        return "open"

    @workflow
    def opening() -> str:
        return door()

    run = runs.start(opening)
    scene.work()
    approval = Approval.objects.get(run=run.id)
    assert (approval.risk, approval.deadline_at) == ("high", None)
    with pytest.raises(ReasonRequired, match="This policy wants a reason"):
        scene.decide(approval, "mara")
    scene.decide(approval, "mara", reason="it is hot")
    assert scene.result(approval) == "open"


# ---------------------------------------------------------------- where


def test_deciding_inside_a_transaction_is_refused(scene: Scene) -> None:
    approval = scene.start()
    with pytest.raises(InTransaction), transaction.atomic():
        scene.decide(approval, "mara")
    approval.refresh_from_db()
    assert (approval.status, approval.count) == ("waiting", 1)


def test_a_run_cannot_decide(scene: Scene) -> None:
    """AUTHORITY 13: neither its workflow nor its steps; not its own request, nor another's."""
    approval = scene.start()
    said: dict[str, Any] = {"revision": 1, "digest": "", "actor": scene.user("mara"), "verdict": "approve"}

    @step
    def sly() -> str:
        try:
            decide(approval.id, via="command", **said)
        except InRun:
            return "refused in a step"
        return "decided"

    @workflow
    def slyer() -> tuple[str, str]:
        try:
            decide(approval.id, via="command", **said)
        except InRun:
            return "refused in a workflow", sly()
        return "decided", "decided"

    run = runs.start(slyer)
    scene.work()
    assert runs.result(run.id, timeout=0) == ("refused in a workflow", "refused in a step")
    approval.refresh_from_db()
    assert approval.status == "waiting"


def test_nobody_decides_in_the_name_of_a_rule(scene: Scene) -> None:
    approval = scene.start()
    for via in ("rule", "deadline", "workflow", "slack"):
        with pytest.raises(ValueError, match="nobody decides via"):
            scene.decide(approval, "mara", via=via)


# ---------------------------------------------------------------- looking


def test_looking_changes_nothing(scene: Scene) -> None:
    """CASES C1, C7: reading is no decision, however often, by whoever, also after the deadline."""
    approval = scene.start()
    before = (Approval.objects.values().get(pk=approval.pk), Entry.objects.count(), Message.objects.count())
    with moved_clock(timedelta(hours=49)):
        for name in ("mara", "clerk", "sam", "olga"):
            user = scene.user(name)
            for _ in range(5):
                found = queries.find(user, approval.id)
                if found is not None:
                    queries.detail(user, found)
                list(queries.waiting_for(user))
                list(queries.decided(user))
                queries.counts(user)
        verify(scene.run(approval))
    after = (Approval.objects.values().get(pk=approval.pk), Entry.objects.count(), Message.objects.count())
    assert after == before
