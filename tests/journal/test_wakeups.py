"""No wake-up is lost: whatever comes while a run goes to sleep, before it waits, before it has begun. A2, A3, A7."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial

import pytest
from django.db import transaction

from journal import WaitTimeout, runs, sleep, step, sweeping, wait_for_signal, workflow
from journal.clock import db_now
from journal.errors import RunEnded, UnknownRun
from journal.models import Event, Message, Run, Wait
from journal.runner import execute_claimed
from tests import counts
from tests.journal.colliding import Other, Session, arriving, hindered
from tests.journal.inprocess import TestHolder
from tests.journal.test_races import _clock_moved
from tests.journal.test_starting import _lock_waits, in_thread
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="wakeups.waits_for_go")
def waits_for_go() -> object:
    return wait_for_signal("go")


@workflow(name="wakeups.waits_a_moment")
def waits_a_moment() -> object:
    return wait_for_signal("go", timeout=0.03)


@workflow(name="wakeups.waits_half_an_hour")
def waits_half_an_hour() -> object:
    return wait_for_signal("go", timeout=1800)


def test_signals_against_suspends_at_random_and_no_sweep() -> None:
    """A3: sent in any instant of the run's first pass, the signal is there. Nothing sweeps in this test."""
    chance, holder = random.Random(counts.SEED), TestHolder()
    for _ in range(counts.of(2000)):
        run = runs.start(waits_for_go)
        claim = claimed(holder, run.id)
        pause = chance.uniform(0, 0.008)

        def send(run_id: str = run.id, pause: float = pause) -> None:
            time.sleep(pause)
            runs.signal(run_id, "go", 7)

        sender = in_thread(send)
        execute_claimed(*claim, holder)
        sender.join(10)
        works_off(holder)
        assert runs.result(run.id, timeout=0) == 7


# ---------------------------------------------------------------- timer against signal


def test_timers_against_signals_at_random_and_no_sweep() -> None:
    """The timer strikes once, and nothing looks again. A signal that arrived in time is taken, and no other."""
    chance, holder, came = random.Random(counts.SEED), TestHolder(), Counter[str]()
    for _ in range(counts.of(2000)):
        run = runs.start(waits_a_moment)
        execute_claimed(*claimed(holder, run.id), holder)
        due = Wait.objects.get().due_at
        assert due is not None
        at = time.monotonic() + (due - db_now()).total_seconds()
        sender = in_thread(partial(signals_at, run.id, at + chance.uniform(-0.01, 0.005)))
        _sleep_until(at + chance.uniform(0, 0.004))
        sweeping.wake_due()
        works_off(holder)
        sender.join(10)
        works_off(holder)
        message = Message.objects.filter(run=run.id).first()
        in_time = message is not None and message.arrived_at is not None and message.arrived_at <= due
        came["in time" if in_time else "late" if message else "refused"] += 1
        if in_time:
            assert runs.result(run.id, timeout=0) == 7
        else:
            with pytest.raises(WaitTimeout):
                runs.result(run.id, timeout=0)
        assert message is None or (message.taken_seq is None, message.fate) == (
            not in_time,
            None if in_time else "run_ended",
        )
        assert Run.objects.get(pk=run.id).epoch == 2, "it was woken once"
    print(dict(came))


def signals_at(run_id: str, moment: float) -> None:
    _sleep_until(moment)
    with suppress(RunEnded):
        runs.signal(run_id, "go", 7)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0, moment - time.monotonic()))


def claimed(holder: TestHolder, run_id: str) -> tuple[str, int]:
    claim = holder.claim()
    assert claim is not None
    assert claim[0] == run_id
    return claim


def works_off(holder: TestHolder) -> None:
    """Executes what is ready, and wakes nothing."""
    while (claim := holder.claim()) is not None:
        execute_claimed(*claim, holder)


def outcome_of(run_id: str) -> list[str]:
    return list(Event.objects.filter(run_id=run_id, path="1").order_by("seq").values_list("kind", flat=True))


def test_a_timer_that_has_the_run_first_wakes_it_and_the_signal_is_late() -> None:
    """The sweep holds the row, the signal is seen waiting at its commit, and then the sweep commits."""
    holder, run = TestHolder(), runs.start(waits_half_an_hour)
    works_off(holder)
    with _clock_moved("1 hour"):
        timer = Other(sweeping.wake_due)
        signal = Session(lambda: runs.signal(run.id, "go", "late"))
        timer.go_on(when_waiting=1)
        timer.end()
        assert signal.outcome() is None
        works_off(holder)
    assert outcome_of(run.id) == ["signal_awaited", "signal_timed_out"]
    assert Message.objects.get().fate == "run_ended"
    assert Run.objects.get().epoch == 2, "it was woken once"


def test_a_signal_that_has_the_run_first_is_in_time_and_the_timer_passes_it_by() -> None:
    """The signal has arrived and is about to be committed when the time ends: the sweep, which never waits, wakes
    nothing. Whoever takes the run then looks an hour too late, and takes the signal."""
    holder, run = TestHolder(), runs.start(waits_half_an_hour)
    works_off(holder)
    signal = arriving(run.id)
    with _clock_moved("1 hour"):
        sweeping.wake_due()
        assert Run.objects.get().status == "waiting"
        signal.go_on(when_waiting=0)
        signal.end()
        sweeping.wake_due()
        works_off(holder)
    assert outcome_of(run.id) == ["signal_awaited", "signal_received"]
    assert runs.result(run.id, timeout=0) == 7
    assert Run.objects.get().epoch == 2, "it was woken once"


@pytest.mark.parametrize("first", ["the signal", "the end of the time"])
def test_a_signal_against_the_end_of_the_time_while_the_run_executes(first: str) -> None:
    """The run has read its inbox, and is about to write that nothing came; the one is seen waiting for the other."""
    read, go = threading.Event(), threading.Event()

    @workflow
    def looks() -> object:
        read.set()
        assert go.wait(20)
        return wait_for_signal("go", timeout=0)

    holder, run = TestHolder(), runs.start(looks)
    claim = claimed(holder, run.id)
    executing = Session(lambda: execute_claimed(*claim, holder))
    assert read.wait(10)
    if first == "the signal":
        signal = arriving(run.id)
        go.set()
        signal.go_on(when_waiting=1)
        signal.end()
    else:
        hindering = hindered(run.id)
        go.set()
        wait_for(lambda: _lock_waits() == 1, what="the end of the time is about to be written")
        sender = Session(lambda: runs.signal(run.id, "go", 7))
        hindering.go_on(when_waiting=2)
        hindering.end()
        assert sender.outcome() is None
    assert executing.outcome() is None
    taken = first == "the signal"
    assert outcome_of(run.id) == ["signal_awaited", "signal_received" if taken else "signal_timed_out"]
    assert Run.objects.get().status == ("completed" if taken else "failed")
    assert Message.objects.get().fate == (None if taken else "run_ended")


# ---------------------------------------------------------------- before the wait, before the run


def test_a_signal_in_the_transaction_that_starts_the_run_is_there_in_its_first_line() -> None:
    """A3: start and signal in one request, and a run that only asks whether something has come, and ends."""

    @workflow
    def asks_once() -> object:
        return wait_for_signal("go", timeout=0)

    holder = TestHolder()
    for _ in range(counts.of(1000)):
        with transaction.atomic():
            run = runs.start(asks_once)
            runs.signal(run.id, "go", "together")
        execute_claimed(*claimed(holder, run.id), holder)
        assert runs.result(run.id, timeout=0) == "together"


def test_what_has_come_already_is_taken_although_the_wait_is_over_before_it_begins() -> None:
    @workflow
    def came_too_late() -> object:
        return wait_for_signal("go", timeout=-60)

    run = runs.start(came_too_late)
    runs.signal(run.id, "go", "before")
    works_off(TestHolder())
    assert runs.result(run.id, timeout=0) == "before"


def test_signals_before_the_first_step_and_before_the_wait_are_kept_in_order() -> None:
    """A3, and one key twice: the same message, whatever it says the second time; a second wait does not get it."""

    @step
    def meanwhile() -> None:
        runs.signal(run.id, "go", "in the step")

    @workflow
    def waits_late() -> list[object]:
        meanwhile()
        return [wait_for_signal("go"), wait_for_signal("go"), wait_for_signal("go")]

    holder, run = TestHolder(), runs.start(waits_late)
    for said in ("before it has begun", "again"):
        runs.signal(run.id, "go", said, key="k")
    works_off(holder)
    assert Run.objects.get().status == "waiting", "the third wait has nothing to take"
    runs.signal(run.id, "go", "and again", key="k")
    assert Run.objects.get().status == "waiting", "nothing has come"
    runs.signal(run.id, "go", "last")
    works_off(holder)
    assert runs.result(run.id, timeout=0) == ["before it has begun", "in the step", "last"]


def test_a_signal_to_a_run_that_is_over_or_was_never_begun_is_refused() -> None:
    """A3: the documented answers, which change nothing; also with a key that was good before."""
    run = runs.start(waits_for_go)
    runs.signal(run.id, "go", key="k")
    works_off(TestHolder())
    for key in (None, "k"):
        with pytest.raises(RunEnded, match=r"has ended \(completed\); it takes no more messages"):
            runs.signal(run.id, "go", key=key)
    with pytest.raises(UnknownRun, match="there is no run 7KQ2-M9XD-4T0B"):
        runs.signal("7KQ2-M9XD-4T0B", "go")
    assert Message.objects.count() == 1


def test_one_transaction_wakes_everybody_who_waits_or_begins_to_while_it_is_open() -> None:
    """A2: some runs wait already, some go to sleep meanwhile, some have not begun; nothing sweeps."""
    ids = [runs.start(waits_for_go).id for _ in range(30)]
    before, meanwhile = TestHolder(), TestHolder()
    for _ in range(10):
        execute_claimed(*claimed(before, ids.pop(0)), before)

    def sends() -> None:
        for run in Run.objects.all():
            runs.signal(run.pk, "go", 1)

    sender = Other(sends)
    for _ in range(10):
        execute_claimed(*claimed(meanwhile, ids.pop(0)), meanwhile)
    assert Run.objects.filter(status="waiting").count() == 20
    sender.go_on(when_waiting=0)
    sender.end()
    works_off(before)
    assert Run.objects.filter(status="completed").count() == 30


def test_what_is_applied_in_one_go_after_a_restart_is_applied_in_the_recorded_order() -> None:
    """A7: the step ends, its worker goes down before the wait, the signal comes; the next worker sees both at once. The
    code asks whether a signal was there before the step, and has to get the same answer."""
    executed: list[str] = []
    leaving, next_one = TestHolder(), TestHolder()

    @step
    def slow() -> str:
        executed.append("slow")
        leaving.draining = True
        return "step"

    @workflow
    def looks_twice() -> list[object]:
        seen: list[object] = []
        try:
            seen.append(wait_for_signal("go", timeout=0))
        except WaitTimeout:
            seen.append("nothing yet")
        return [*seen, slow(), wait_for_signal("go")]

    run = runs.start(looks_twice)
    execute_claimed(*claimed(leaving, run.id), leaving)
    assert Run.objects.get().status == "ready", "handed back between the step and the wait"
    runs.signal(run.id, "go", "signal")
    next_one.replays_every_step = True
    works_off(next_one)
    assert runs.result(run.id, timeout=0) == ["nothing yet", "step", "signal"]
    assert executed == ["slow"]
    kinds = list(Event.objects.order_by("seq").values_list("path", "kind"))
    assert kinds == [
        ("", "run_started"),
        ("1", "signal_awaited"),
        ("1", "signal_timed_out"),
        ("2", "step_completed"),
        ("3", "signal_awaited"),
        ("3", "signal_received"),
        ("", "run_completed"),
    ]


# ---------------------------------------------------------------- many sweeps


def test_many_sweeps_at_once_wake_each_run_once() -> None:
    """B9, A11: every worker sweeps; a due run is woken once and executed once."""
    done: list[int] = []

    @step
    def woke() -> None:
        done.append(1)

    @workflow
    def naps() -> None:
        sleep(0.05)
        woke()

    TestHolder()
    for _ in range(20):
        runs.start(naps)
    holders = [TestHolder() for _ in range(4)]
    holders[0].work()
    time.sleep(0.06)

    def sweep(holder: TestHolder) -> None:
        for _ in range(5):
            holder.work()

    for thread in [in_thread(lambda holder=holder: sweep(holder)) for holder in holders]:
        thread.join(30)
    assert Run.objects.filter(status="completed").count() == 20
    assert len(done) == 20
