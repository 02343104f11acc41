"""No wake-up is lost: whatever comes while a run goes to sleep, before it waits, before it has begun. A2, A3, A7."""

from __future__ import annotations

import random
import threading
import time

import pytest
from django.db import connection, transaction

from journal import runs, sleep, step, sweeping, wait_for_signal, workflow
from journal.models import Event, Message, Run
from journal.runner import execute_claimed
from tests import counts
from tests.journal.inprocess import TestHolder
from tests.journal.test_races import Gate
from tests.journal.test_starting import _lock_waits, in_thread
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="wakeups.waits_for_go")
def waits_for_go() -> object:
    return wait_for_signal("go")


@workflow(name="wakeups.waits_with_a_limit")
def waits_with_a_limit() -> object:
    return wait_for_signal("go", timeout=0.05)


def test_signals_against_suspends_at_random_and_no_sweep() -> None:
    """A3: sent in any instant of the run's first pass, the signal is there. Nothing sweeps in this test."""
    chance, holder = random.Random(counts.SEED), TestHolder()
    for _ in range(counts.of(2000)):
        run = runs.start(waits_for_go)
        claim = holder.claim()
        assert claim is not None
        pause = chance.uniform(0, 0.008)

        def send(run_id: str = run.id, pause: float = pause) -> None:
            time.sleep(pause)
            runs.signal(run_id, "go", 7)

        sender = in_thread(send)
        execute_claimed(*claim, holder)
        sender.join(10)
        while (again := holder.claim()) is not None:
            execute_claimed(*again, holder)
        assert runs.result(run.id, timeout=0) == 7


@pytest.mark.parametrize("first", ["timer", "signal"])
def test_a_timer_against_a_signal_both_ways(first: str) -> None:
    """Both wait for the run's row; the one that gets it first wakes the run, the other finds it woken."""
    holder = TestHolder()
    run = runs.start(waits_with_a_limit)
    holder.work()
    time.sleep(0.06)
    gate = Gate(run.id)
    signal = in_thread(lambda: runs.signal(run.id, "go", "late"))
    wait_for(lambda: _lock_waits() == 1, what="the signal waits for the row")
    if first == "timer":
        sweeping.wake_due()  # skips what is locked: the signal is first after all, or the next sweep is
    gate.open()
    signal.join(10)
    sweeping.wake_due()
    holder.work()
    assert Run.objects.get(pk=run.id).error is not None, "the signal arrived after the end of the time"
    assert Message.objects.get().fate == "run_ended"
    assert list(Event.objects.filter(run_id=run.id, path="1").values_list("kind", flat=True)) == [
        "signal_awaited",
        "signal_timed_out",
    ]


def test_a_signal_in_the_transaction_that_starts_the_run() -> None:
    """A3: start and signal in one request."""
    with transaction.atomic():
        run = runs.start(waits_for_go)
        runs.signal(run.id, "go", "together")
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == "together"


def test_one_signal_wakes_everybody_who_waits_while_others_come() -> None:
    """A2: runs that begin to wait while they are being signalled are signalled too."""
    holder, started = TestHolder(), [runs.start(waits_for_go) for _ in range(20)]
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                holder_of_thread.work()
        finally:
            connection.close()

    holder_of_thread = holder
    worker = threading.Thread(target=work)
    worker.start()
    for run in started:
        runs.signal(run.id, "go", 1)
    wait_for(lambda: Run.objects.filter(status="completed").count() == 20, what="all are released")
    stop.set()
    worker.join(10)


def test_what_came_is_applied_in_the_order_in_which_it_was_recorded() -> None:
    """A7: a step that ended before a signal stays before it, also when both are applied after a restart."""
    order: list[str] = []

    @step
    def first() -> str:
        order.append("step")
        return "step"

    @workflow
    def both() -> list[object]:
        return [first(), wait_for_signal("go"), wait_for_signal("go")]

    run = runs.start(both)
    runs.signal(run.id, "go", "one")
    runs.signal(run.id, "go", "two")
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == ["step", "one", "two"]
    kinds = Event.objects.filter(run_id=run.id).order_by("seq").values_list("kind", flat=True)
    assert [kind for kind in kinds if kind in ("step_completed", "signal_received")] == [
        "step_completed",
        "signal_received",
        "signal_received",
    ]


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
