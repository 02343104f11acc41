"""A decision against its deadline: one of them wins, the other is told, and the run is woken once. C5.

Whoever has got the run's lock looks at the clock then. A decision waits for the lock; a sweep, which never waits,
leaves a locked run to whoever has it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection

from approvals.deadlines import expire_due
from approvals.decisions import Outcome
from approvals.errors import DeadlinePassed
from approvals.models import Approval, Entry
from approvals.verifying import verify
from journal import leases, runs, sweeping
from journal.clock import db_now
from journal.hooks import WaitDue
from journal.models import Event, Message
from journal.runner import execute_claimed
from tests import counts
from tests.approvals.scene import Racer, Scene, another_session, locked_run, moved_clock
from tests.journal.inprocess import TestHolder
from tests.waiting import wait_for

OVER = timedelta(hours=48, seconds=1)
"""Past the deadline of the policy."""
RESULT = {"approved": "refunded 100.00", "expired": "not refunded: nobody decided in time"}


@contextmanager
def nobody_can_enter() -> Iterator[None]:
    """Whoever has something to enter into a record waits, with all the locks that he has, until the block ends."""
    with another_session() as session:
        session.execute("LOCK TABLE approvals_entry IN SHARE MODE")
        yield


def somebody_enters() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND query LIKE 'INSERT INTO \"approvals_entry\"%'"
        )
        return bool(cursor.fetchone()[0])


def sweep(job: Callable[[], object] = sweeping.wake_due) -> None:
    """A worker's sweep, which has to come back although somebody holds the run."""
    sweeping_up = Racer(job)
    sweeping_up.join(5)
    assert not sweeping_up.is_alive(), "the sweep waits for a lock"


def ended(scene: Scene, approval: Approval, status: str, via: str) -> None:
    """There is one verdict; it wakes the run once; and that goes on by it, although the first worker that takes it dies
    before it has looked, and the next one replays it at every step."""
    approval.refresh_from_db()
    assert (approval.status, approval.decided_via) == (status, via)
    assert approval.decided_at is not None
    assert approval.deadline_at is not None
    assert (approval.decided_at < approval.deadline_at) == (status == "approved"), "the verdict is not that of its time"
    assert Entry.objects.filter(approval=approval, kind="verdict").count() == 1
    assert Message.objects.filter(run=approval.run_id).count() == 1
    assert scene.run(approval).status == "ready"
    dies = TestHolder()
    assert dies.claim() == (approval.run_id, 2)
    leases.declare_dead(dies.row.pk, "proved")
    scene.holder.replays_every_step = True
    assert scene.result(approval) == RESULT[status]
    assert scene.run(approval).epoch == 3, "woken more than once"
    assert len(scene.calls) == (1 if status == "approved" else 0)
    (said,) = Event.objects.filter(run=approval.run_id, kind__in=["step_started", "step_refused"])
    assert said.data is not None
    assert ('"by":"mara"' if status == "approved" else "Expired") in said.data
    assert verify(scene.run(approval)) == []


def test_a_decision_that_has_the_lock_at_the_deadline_stands(scene: Scene) -> None:
    """It has looked at the clock in time and is about to enter its vote when the deadline comes and a sweep looks."""
    approval = scene.start()
    with ExitStack() as later:
        with nobody_can_enter():
            deciding = Racer(lambda: scene.decide(approval, "mara"))
            wait_for(somebody_enters, what="the decision has all its locks")
            later.enter_context(moved_clock(OVER))
            sweep()
            # One that looked just before the decision locked the run.
            sweep(lambda: expire_due(WaitDue(approval.run_id, 0, 0, "1", approval.id)))
        outcome = deciding.outcome()
        assert isinstance(outcome, Outcome), outcome
        assert outcome.status == "approved"
        sweep()
        ended(scene, approval, "approved", "browser")


def test_a_decision_that_waits_while_the_end_is_entered_is_late(scene: Scene) -> None:
    approval = scene.start()
    with moved_clock(OVER):
        with nobody_can_enter():
            ending = Racer(sweeping.wake_due)
            wait_for(somebody_enters, what="the sweep has all its locks")
            deciding = Racer(lambda: scene.decide(approval, "mara"))
            wait_for(lambda: _waits_for_the_run() == 1, what="the decision waits for the run")
        outcome = deciding.outcome()
        assert isinstance(outcome, DeadlinePassed), outcome
        assert outcome.at == approval.deadline_at
        assert ending.outcome() is None
        ended(scene, approval, "expired", "deadline")


def test_a_decision_that_waits_over_the_deadline_is_late_and_says_so_itself(scene: Scene) -> None:
    """It came in time, and gets the lock when that is past; the sweep has left the run to whoever had it."""
    approval = scene.start()
    with ExitStack() as later:
        with locked_run(approval, waiters=1) as it_waits:
            deciding = Racer(lambda: scene.decide(approval, "mara"))
            it_waits()
            later.enter_context(moved_clock(OVER))
            sweep()
        outcome = deciding.outcome()
        assert isinstance(outcome, DeadlinePassed), outcome
        sweep()
        ended(scene, approval, "expired", "deadline")


def _waits_for_the_run() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND query LIKE 'SELECT%journal_run%'"
        )
        return int(cursor.fetchone()[0])


def test_ten_sweeps_at_once_enter_one_end(scene: Scene) -> None:
    """B9: every worker sweeps."""
    approval = scene.start()
    with moved_clock(OVER):
        with nobody_can_enter():
            sweeps = [Racer(sweeping.wake_due) for _ in range(10)]
            wait_for(somebody_enters, what="one of them enters the end")
            wait_for(lambda: sum(each.is_alive() for each in sweeps) == 1, what="the others have passed by")
        assert [each.outcome() for each in sweeps] == [None] * 10
        ended(scene, approval, "expired", "deadline")


@pytest.mark.timeout(1800)
def test_decisions_against_deadlines_at_random_and_no_sweep(scene: Scene) -> None:
    """The deadline is looked at once, when its time comes, and nothing looks again: whichever wins wakes the run."""
    chance, came = random.Random(counts.SEED), Counter[str]()
    for number in range(counts.of(2000)):
        approval = scene.start(order=str(number))
        assert approval.deadline_at is not None
        ahead = 0.03
        left, at = approval.deadline_at - db_now(), time.monotonic() + ahead
        with moved_clock(left - timedelta(seconds=ahead)):
            deciding = Racer(partial(decides_at, scene, approval, at + chance.uniform(-ahead, 0.01)))
            _sleep_until(at + chance.uniform(0.001, 0.006))
            sweeping.wake_due()
            outcome = deciding.outcome()
            approval.refresh_from_db()
            came[f"{approval.status} by {approval.decided_via}"] += 1
            assert approval.decided_at is not None
            assert isinstance(outcome, Outcome if approval.decided_at < approval.deadline_at else DeadlinePassed)
            assert approval.status == ("approved" if isinstance(outcome, Outcome) else "expired")
            assert Entry.objects.filter(approval=approval, kind="verdict").count() == 1
            assert Message.objects.filter(run=approval.run_id).count() == 1
            assert scene.holder.claim() == (approval.run_id, 2)
            execute_claimed(approval.run_id, 2, scene.holder)
        assert runs.result(approval.run_id, timeout=0) == RESULT[approval.status]
        assert scene.holder.claim() is None
    print(dict(came))


def decides_at(scene: Scene, approval: Approval, moment: float) -> Outcome:
    _sleep_until(moment)
    return scene.decide(approval, "mara")


def _sleep_until(moment: float) -> None:
    time.sleep(max(0, moment - time.monotonic()))
