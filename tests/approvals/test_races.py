"""Decisions at once: forced with a second session that holds a lock until the others are seen waiting for it."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import F

from approvals import decisions
from approvals.deadlines import expire_due
from approvals.decisions import Outcome
from approvals.errors import AlreadyDecided, DeadlinePassed
from approvals.models import Approval, Entry
from approvals.verifying import verify
from journal.hooks import WaitDue
from journal.locking import lock_run
from journal.models import Message
from tests.approvals.scene import Racer, Scene, another_session, locked_run, moved_clock
from tests.journal.colliding import deadlocked, overtaken
from tests.waiting import wait_for


def test_of_two_at_once_one_wins_and_the_other_is_told(scene: Scene) -> None:
    """CASES C3: both are seen waiting for the same lock before either goes on."""
    approval = scene.start()
    with locked_run(approval, waiters=2) as both_wait:
        racers = [
            Racer(lambda: scene.decide(approval, "mara", "approve")),
            Racer(lambda: scene.decide(approval, "tomas", "reject")),
        ]
        both_wait()
    outcomes = [racer.outcome() for racer in racers]
    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    (lost,) = [outcome for outcome in outcomes if isinstance(outcome, AlreadyDecided)]
    approval.refresh_from_db()
    assert won.status == lost.status == approval.status
    assert lost.by == approval.decided_by_name
    assert lost.at == approval.decided_at == won.at
    assert Entry.objects.filter(approval=approval, kind="verdict").count() == 1
    assert Message.objects.filter(run=approval.run_id).count() == 1
    scene.work()
    assert len(scene.calls) == (1 if won.choice == "approve" else 0)


def test_twenty_at_once_make_one_decision(scene: Scene) -> None:
    """CASES C3: approve and reject, by two people, ten times each, in parallel."""
    approval = scene.start()
    with locked_run(approval, waiters=12) as many_wait:  # more would only wait for the pool
        said = [("mara", "approve"), ("tomas", "reject"), ("mara", "reject"), ("tomas", "approve")] * 5
        racers = [Racer(partial(scene.decide, approval, who, verdict)) for who, verdict in said]
        many_wait()
    outcomes = [racer.outcome() for racer in racers]
    approval.refresh_from_db()
    winner = (approval.decided_by_name, {"approved": "approve", "rejected": "reject"}[approval.status])
    for (who, verdict), outcome in zip(said, outcomes, strict=True):
        if (who, verdict) == winner:
            assert isinstance(outcome, Outcome), outcome
        else:
            assert isinstance(outcome, AlreadyDecided), outcome
            assert (outcome.by, outcome.status, outcome.own) == (winner[0], approval.status, who == winner[0])
    assert [outcome.is_repeated for outcome in outcomes if isinstance(outcome, Outcome)].count(False) == 1
    assert [kind for kind, _, _ in scene.kinds(approval)] == ["requested", "vote", "verdict"]
    scene.work()
    assert len(scene.calls) == (1 if winner[1] == "approve" else 0)
    assert verify(scene.run(approval)) == []


def test_a_decision_that_waited_past_the_deadline_is_late(scene: Scene) -> None:
    """ENGINE 28: the deadline is compared with the clock after the locks, not before."""
    approval = scene.start()
    with ExitStack() as late:
        with locked_run(approval, waiters=1) as it_waits:
            racer = Racer(lambda: scene.decide(approval, "mara"))
            it_waits()
            late.enter_context(moved_clock(timedelta(hours=48)))
        assert isinstance(racer.outcome(), DeadlinePassed)
    approval.refresh_from_db()
    assert approval.status == "expired"


@pytest.mark.parametrize("how", ["deadlock detected", "could not serialize access"])
@pytest.mark.parametrize("what", ["decision", "deadline"])
def test_what_is_broken_off_is_done_again_and_nobody_sees_it(
    scene: Scene, caplog: pytest.LogCaptureFixture, what: str, how: str
) -> None:
    """A26: another session takes the locks in the wrong order, or changes what the call has to see as it was."""
    approval = scene.start()
    same = Approval.objects.filter(pk=approval.pk)
    due = WaitDue(approval.run_id, approval.generation, approval.branch, approval.path, approval.id)
    call = (lambda: scene.decide(approval, "mara")) if what == "decision" else (lambda: expire_due(due))
    with ExitStack() as late, caplog.at_level("WARNING", logger="journal.reconnecting"):
        if what == "deadline":
            late.enter_context(moved_clock(timedelta(hours=49)))
        if how == "deadlock detected":
            outcome = deadlocked(
                call, hold=lambda: list(same.select_for_update(of=("self",))), cross=lambda: lock_run(approval.run_id)
            )
        else:
            outcome = overtaken(call, change=lambda: same.update(summary=F("summary")))
        assert how in caplog.text, "nothing collided"
        assert not isinstance(outcome, Exception), outcome
        expire_due(due)  # the other may still have had the run when the sweep did it again
    approval.refresh_from_db()
    assert approval.status == ("approved" if what == "decision" else "expired")
    assert Entry.objects.filter(approval=approval, kind="verdict").count() == 1
    assert Message.objects.filter(run=approval.run_id).count() == 1


def test_a_session_that_is_cut_off_in_the_middle_loses_no_decision(scene: Scene) -> None:
    """A27, in the web process: its session is ended while it waits for the run's lock."""
    approval = scene.start()
    with another_session() as session:
        session.execute("SELECT id FROM journal_run WHERE id = %s FOR NO KEY UPDATE", [approval.run_id])
        racer = Racer(lambda: scene.decide(approval, "mara"))
        wait_for(lambda: _cut_off_who_waits(), what="the decision waits for the run's lock")
    outcome = racer.outcome()
    assert isinstance(outcome, Outcome), outcome
    assert not outcome.is_repeated
    assert Entry.objects.filter(approval=approval, kind="vote").count() == 1


def _cut_off_who_waits() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def test_a_commit_whose_answer_is_lost_loses_no_decision(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A27: the commit may or may not have happened; said again, it is the same decision."""
    approval = scene.start()
    real = decisions._decide
    fell: list[int] = []

    def falls_after_commit(*args: Any) -> Any:
        answer = real(*args)
        if not fell:
            fell.append(1)
            raise OperationalError("server closed the connection unexpectedly")
        return answer

    monkeypatch.setattr(decisions, "_decide", falls_after_commit)
    assert scene.decide(approval, "mara").is_repeated
    assert Entry.objects.filter(approval=approval, kind="vote").count() == 1


def test_a_decision_holds_up_nobody_but_its_own_run(scene: Scene) -> None:
    first, second = scene.start(order="1"), scene.start(order="2")
    with locked_run(first, waiters=1) as it_waits:
        racer = Racer(lambda: scene.decide(first, "mara"))
        it_waits()
        scene.decide(second, "mara")
    assert isinstance(racer.outcome(), Outcome)
