"""What dead workers leave is taken up: once, from nobody who lives, and each run for itself. A11, A13, B9."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest
from django.db import connection

from journal import leases, runs, step, sweeping, workflow
from journal.clock import db_now
from journal.models import Run, Worker
from journal.runner import execute_claimed
from tests import counts
from tests.journal.colliding import Session
from tests.journal.inprocess import TestHolder
from tests.journal.test_races import Gate

pytestmark = pytest.mark.django_db(transaction=True)

executed: list[str] = []


@step(name="recovery.work")
def work(name: str) -> str:
    executed.append(name)
    return name


@workflow(name="recovery.works")
def works(name: str) -> str:
    return work(name)


@pytest.fixture(autouse=True)
def _forget() -> None:
    executed.clear()


def orphans(count: int) -> tuple[TestHolder, list[str]]:
    """Runs that one worker holds, in the order of their ids."""
    holder = TestHolder()
    for number in range(count):
        runs.start(works, str(number))
    return holder, sorted(claim[0] for claim in iter(holder.claim, None))


def status(run_id: str) -> str:
    return str(Run.objects.get(pk=run_id).status)


def test_a_run_that_is_locked_holds_up_the_recovery_of_no_other() -> None:
    """A13: the row is locked by somebody who hangs in a transaction; a sweep passes it by and finds it later."""
    dead, (first, locked, last) = orphans(3)
    gate = Gate(locked)
    sweeping_up = Session(lambda: leases.declare_dead(dead.row.pk, "proved"))
    sweeping_up.join(5)
    assert not sweeping_up.is_alive(), "it waits for the lock, and with it every worker's sweep"
    assert [status(first), status(locked), status(last)] == ["ready", "running", "ready"]
    gate.open()
    leases.sweep_dead(TestHolder().row.pk, may_suspect=False)
    assert Run.objects.get(pk=locked).freed_by == "proved"
    assert TestHolder().work() == 3


def test_a_forgotten_run_that_is_locked_holds_up_no_other() -> None:
    holder, (locked, free) = orphans(2)
    Run.objects.update(claimed_at="2020-01-01T00:00Z")
    gate = Gate(locked)
    sweeping_up = Session(lambda: sweeping.release_forgotten(holder.row.pk, [], db_now()))
    sweeping_up.join(5)
    assert not sweeping_up.is_alive()
    assert [status(locked), status(free)] == ["running", "ready"]
    gate.open()


def test_a_list_of_what_is_held_tells_nothing_of_what_was_claimed_since() -> None:
    """The sweep lists what it holds (nothing) and is held up for long; a slot claims; then the sweep goes on."""
    holder, (claimed,) = orphans(1)
    Run.objects.update(claimed_at="2021-01-01T00:00Z")
    sweeping.release_forgotten(holder.row.pk, [], datetime(2020, 12, 31, tzinfo=UTC))
    assert status(claimed) == "running"
    sweeping.release_forgotten(holder.row.pk, [], datetime(2021, 1, 2, tzinfo=UTC))
    assert status(claimed) == "ready"


def test_who_has_said_goodbye_does_not_die() -> None:
    """A neighbour's look at its process may come after both."""
    leaves = TestHolder()
    leases.retire(leaves.row.pk)
    leases.declare_dead(leaves.row.pk, "proved")
    assert Worker.objects.get(pk=leaves.row.pk).death is None


def test_what_a_leaving_worker_could_not_free_is_no_death() -> None:
    holder, (locked, free) = orphans(2)
    gate = Gate(locked)
    leases.retire(holder.row.pk)
    gate.open()
    leases.sweep_dead(TestHolder().row.pk, may_suspect=False)
    assert [status(locked), status(free)] == ["ready", "ready"]
    assert set(Run.objects.values_list("deaths", "freed_by")) == {(0, None)}


def test_one_bad_run_keeps_no_other_from_being_recovered() -> None:
    """A13: one is over its limit of deaths, the journal of one does not fit; each is blocked for itself."""
    dead, (first, poison, altered, last) = orphans(4)
    Run.objects.filter(pk=poison).update(is_alone=True, deaths=6, deaths_alone=leases.POISONED_AFTER - 1)
    Run.objects.filter(pk=altered).update(head=b"x" * 32)
    leases.declare_dead(dead.row.pk, "proved")
    TestHolder().work()
    assert [status(each) for each in (first, poison, altered, last)] == ["completed", "blocked", "blocked", "completed"]
    assert len(executed) == 2


def test_a_great_many_orphans_are_freed_by_the_worker_and_the_service_is_up_meanwhile() -> None:
    """A13: 20,000 of them."""
    count, seen, sweeper = counts.of(20_000), TestHolder(), TestHolder()
    _, (pattern,) = orphans(1)
    dead = [TestHolder().row.pk for _ in range(count // 200)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO journal_run SELECT (jsonb_populate_record(r, jsonb_build_object("
            " 'id', 'orphan-' || n, 'worker_id', (%s::int[])[1 + n %% cardinality(%s::int[])]))).*"
            " FROM journal_run r, generate_series(1, %s) n WHERE r.id = %s",
            [dead, dead, count, pattern],
        )
    Worker.objects.filter(pk__in=dead).update(death="stale")
    sweeping_up = Session(lambda: leases.sweep_dead(sweeper.row.pk, may_suspect=False))
    slowest = 0.0
    while sweeping_up.is_alive():
        began = time.monotonic()
        runs.signal(runs.start(works, "x").id, "go")
        seen.claim()
        slowest = max(slowest, time.monotonic() - began)
    assert sweeping_up.outcome() is None
    assert Run.objects.filter(pk__startswith="orphan", deaths=1, freed_by="stale").count() == count
    assert 0 < slowest < 1, "starting, signalling and claiming waited for the recovery"
    print(f"{count} orphans of {len(dead)} workers; meanwhile start, signal and claim took at most {slowest:.3f} s")


def test_sweeps_take_nothing_from_the_living_and_each_orphan_once() -> None:
    """A11, B9: every worker sweeps, all at once, while one of them executes."""
    began, go = threading.Event(), threading.Event()

    @step
    def slow() -> None:
        executed.append("slow")
        began.set()
        assert go.wait(20)

    @workflow
    def is_at_work() -> None:
        slow()

    alive = TestHolder()
    run = runs.start(is_at_work)
    held = alive.claim()
    assert held is not None
    working = Session(lambda: execute_claimed(*held, alive))
    assert began.wait(10)
    Run.objects.filter(pk=run.id).update(claimed_at="2020-01-01T00:00Z")
    dead, ids = orphans(20)
    Worker.objects.filter(pk=dead.row.pk).update(death="stale")

    def sweep() -> None:
        for _ in range(5):
            sweeping.wake_due()
            leases.sweep_dead(alive.row.pk, may_suspect=False)
            sweeping.release_forgotten(alive.row.pk, [held], db_now())

    for session in [Session(sweep) for _ in range(8)]:
        assert session.outcome() is None
    assert Run.objects.get(pk=run.id).epoch == 1
    assert status(run.id) == "running"
    assert set(Run.objects.filter(pk__in=ids).values_list("status", "deaths")) == {("ready", 1)}
    go.set()
    assert working.outcome() is None
    assert status(run.id) == "completed"
    TestHolder().work()
    assert executed.count("slow") == 1
    assert len(executed) == 21
