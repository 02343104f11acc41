"""The interleavings of ENGINE.md, forced: the test holds one side until the other is seen waiting, or in between."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.db import OperationalError, connection, transaction

from journal import bells, leases, runs, statements, step, wait_for_signal, workflow
from journal.clock import db_now
from journal.errors import LeaseLost
from journal.loading import load
from journal.locking import lock_run
from journal.models import Event, Message, Run, Worker
from journal.runner import execute_claimed
from journal.states import EventKind
from journal.writer import Draft, Writer
from tests.journal.colliding import Session, arriving, hindered
from tests.journal.inprocess import TestHolder
from tests.journal.test_starting import _lock_waits, in_thread
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="waits_for_go")
def waits_for_go() -> object:
    return wait_for_signal("go")


def claimed(holder: TestHolder) -> tuple[str, Writer]:
    """A run that `holder` has claimed and loaded."""
    run = runs.start(waits_for_go)
    claim = holder.claim()
    assert claim is not None
    assert claim[0] == run.id
    return run.id, load(*claim, holder).writer


def test_a_zombie_s_append_waits_for_the_claim_and_writes_nothing() -> None:
    """ENGINE 7: checked in an INSERT … SELECT, the epoch fences nothing; here the append waits for the row."""
    old, new = TestHolder("old"), TestHolder("new")
    run_id, zombie = claimed(old)
    in_claim, commit = threading.Event(), threading.Event()

    def claim_again() -> None:
        with transaction.atomic():
            leases.free_runs_of(old.row.pk)
            assert new.claim() == (run_id, 2)
            in_claim.set()
            commit.wait(10)

    claiming = in_thread(claim_again)
    in_claim.wait(10)
    outcome: list[BaseException | None] = []

    def append() -> None:
        try:
            zombie.append(Draft(EventKind.STEP_COMPLETED, "1", "ghost", 1, "{}", True, '{"result":1}'))
            outcome.append(None)
        except LeaseLost as lost:
            outcome.append(lost)

    ghost = in_thread(append)
    wait_for(lambda: _lock_waits() == 1, what="the zombie waits for the row")
    commit.set()
    claiming.join(10)
    ghost.join(10)
    assert isinstance(outcome[0], LeaseLost)
    assert not Event.objects.filter(name="ghost").exists()


def test_a_released_run_takes_nothing_from_its_old_holder_before_the_next_claim() -> None:
    old = TestHolder()
    run_id, zombie = claimed(old)
    leases.declare_dead(old.row.pk, "suspected")
    with pytest.raises(LeaseLost):
        zombie.append(Draft(EventKind.STEP_COMPLETED, "1", "ghost", 1, "{}", True, '{"result":1}'))
    assert Run.objects.get(pk=run_id).freed_by == "suspected"


@pytest.mark.parametrize("first", ["signal", "suspend"])
def test_a_signal_against_the_suspend_is_never_lost(first: str) -> None:
    """ENGINE 12, both orders: the second is seen waiting for the run's row, and sees then what the first did."""
    holder, run = TestHolder(), runs.start(waits_for_go)
    claim = holder.claim()
    assert claim is not None
    if first == "signal":
        signal = arriving(run.id)
        suspend = Session(lambda: execute_claimed(*claim, holder))
        signal.go_on(when_waiting=1)
        signal.end()
    else:
        hindering = hindered(run.id)
        suspend = Session(lambda: execute_claimed(*claim, holder))
        wait_for(lambda: _lock_waits() == 1, what="the suspend has the row")
        sender = Session(lambda: runs.signal(run.id, "go", 7))
        hindering.go_on(when_waiting=2)
        hindering.end()
        assert sender.outcome() is None
    assert suspend.outcome() is None
    while (woken := holder.claim()) is not None:
        execute_claimed(*woken, holder)
    assert runs.result(run.id, timeout=0) == 7
    epoch = 1 if first == "signal" else 2
    assert Run.objects.get(pk=run.id).epoch == epoch, "it goes to sleep only if the signal has not come yet"


def test_two_senders_to_the_same_two_runs_do_not_deadlock() -> None:
    """ENGINE 13: the first firing of the delivery trigger locks all runs of its transaction in the order of ids.

    Each sends to a third run between the two, which a gate holds until both wait at their COMMIT: senders that lock in
    the order of sending then have one of the two and want the other."""
    one, other, between, beside = (runs.start(waits_for_go).id for _ in range(4))
    TestHolder().work()
    gates = [Gate(between), Gate(beside)]
    errors: list[BaseException] = []

    def send(ids: list[str]) -> None:
        try:
            with transaction.atomic():
                for run_id in ids:
                    runs.signal(run_id, "noise")
        except OperationalError as error:
            errors.append(error)

    senders = [in_thread(lambda: send([one, between, other])), in_thread(lambda: send([other, beside, one]))]
    wait_for(lambda: _lock_waits() == 2, what="both senders wait at their commit")
    for gate in gates:
        gate.open()
    for thread in senders:
        thread.join(30)
    assert errors == []
    assert Run.objects.get(pk=one).inbox_count == Run.objects.get(pk=other).inbox_count == 2


class Gate:
    """Holds a run's row until it is opened."""

    def __init__(self, run_id: str) -> None:
        self._locked, self._go = threading.Event(), threading.Event()
        self._thread = in_thread(lambda: self._hold(run_id))
        assert self._locked.wait(10)

    def _hold(self, run_id: str) -> None:
        with transaction.atomic():
            lock_run(run_id)
            self._locked.set()
            self._go.wait(20)

    def open(self) -> None:
        self._go.set()
        self._thread.join(10)


def test_a_message_that_no_wait_wants_does_not_wake_the_run() -> None:
    run = runs.start(waits_for_go)
    TestHolder().work()
    runs.signal(run.id, "other")
    assert Run.objects.get(pk=run.id).status == "waiting"
    runs.signal(run.id, "go")
    assert Run.objects.get(pk=run.id).status == "ready"


def test_two_claims_at_once_get_two_runs_or_one() -> None:
    """A11: the same run is never claimed twice."""
    ids = {runs.start(waits_for_go).id for _ in range(20)}
    found: list[tuple[str, int]] = []

    def claim_all() -> None:
        holder = TestHolder()
        while claim := holder.claim():
            found.append(claim)

    for thread in [in_thread(claim_all) for _ in range(4)]:
        thread.join(20)
    assert sorted(found) == sorted((run_id, 1) for run_id in ids)


def test_a_claim_of_a_worker_that_was_just_declared_dead_gets_nothing() -> None:
    runs.start(waits_for_go)
    holder = TestHolder()
    leases.declare_dead(holder.row.pk, "stale")
    assert holder.claim() is None


def test_a_run_held_by_a_dead_worker_is_found_also_later() -> None:
    """The claim was committed just after the dead worker's runs had been freed."""
    holder = TestHolder()
    run_id, _ = claimed(holder)
    Worker.objects.filter(pk=holder.row.pk).update(death="stale")
    leases.sweep_dead(TestHolder().row.pk, may_suspect=False)
    assert Run.objects.get(pk=run_id).status == "ready"


class Cut(Exception):
    """The connection falls."""


def test_an_append_whose_commit_is_unknown_is_looked_up_before_it_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """ENGINE 9: the answer to the commit is lost. The event is there once, whichever way the commit went."""
    holder = TestHolder()
    for committed in (True, False):
        _run_id, writer = claimed(holder)
        real = statements.rows
        calls: list[str] = []

        def cut(sql: str, params: Any, real: Any = real, calls: Any = calls, committed: bool = committed) -> Any:
            if "INSERT INTO journal_event" in sql and not calls:
                calls.append(sql)
                if committed:
                    real(sql, params)
                raise OperationalError("the connection fell")
            return real(sql, params)

        monkeypatch.setattr(statements, "rows", cut)
        writer.append(Draft(EventKind.STEP_COMPLETED, "1", f"cut-{committed}", 1, "{}", True, '{"result":1}'))
        monkeypatch.undo()
        assert Event.objects.filter(name=f"cut-{committed}").count() == 1
        writer.append(Draft(EventKind.STEP_COMPLETED, "2", "next", 1, "{}", True, '{"result":1}'))


def test_unwinding_is_sticky(caplog: pytest.LogCaptureFixture) -> None:
    """ENGINE 16: a bare except and a finally swallow the suspension; nothing in them happens."""
    done: list[str] = []

    @step
    def effect() -> None:
        done.append("effect")

    @workflow
    def swallows() -> str:
        try:  # noqa: SIM105
            wait_for_signal("go")
        except:  # noqa: E722 - the fault that is tested
            pass
        try:
            effect()
        finally:
            return "thrown away"  # noqa: B012

    run = runs.start(swallows)
    holder = TestHolder()
    with caplog.at_level(logging.WARNING, logger="journal.runner"):
        holder.work()
    assert Run.objects.get(pk=run.id).status == "waiting"
    assert done == []
    assert "swallowed its suspension at" in caplog.text
    assert "test_races.py:" in caplog.text
    runs.signal(run.id, "go")
    holder.work()
    assert done == ["effect"]


def test_a_timer_and_a_signal_at_once_have_one_winner() -> None:
    """Both have come when the run looks: what counts is whether the signal arrived in time."""

    @workflow
    def either() -> object:
        return wait_for_signal("go", timeout=3600)

    holder = TestHolder()
    run = runs.start(either)
    holder.work()
    runs.signal(run.id, "go", "in time")
    late = Message.objects.get().arrived_at
    assert late is not None
    Message.objects.update(arrived_at=late + timedelta(hours=2))
    with _clock_moved("2 hours"):
        holder.work()
    assert Run.objects.get(pk=run.id).error == {
        "type": "WaitTimeout",
        "message": Run.objects.get(pk=run.id).error["message"],  # type: ignore[index]
        "path": "1",
    }


def test_the_clock_goes_on_while_a_long_history_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken up only then, it would be slow by that time: sleeps too short, signals that came in time too late."""
    slow = statements.LOAD_HISTORY.replace("WHERE e.run_id", "WHERE pg_sleep(0.3) IS NOT NULL AND e.run_id")
    monkeypatch.setattr(statements, "LOAD_HISTORY", slow)
    holder = TestHolder()
    runs.start(waits_for_go)
    claim = holder.claim()
    assert claim is not None
    began = db_now()
    anchor = load(*claim, holder).writer.anchor
    assert anchor.now() >= began + timedelta(seconds=0.3)


class _clock_moved:  # noqa: N801 - reads like a function
    """Moves the engine's one clock."""

    def __init__(self, by: str) -> None:
        self.by = by

    def __enter__(self) -> None:
        self._set(f"SELECT clock_timestamp() + interval '{self.by}'")

    def __exit__(self, *_: object) -> None:
        self._set("SELECT clock_timestamp()")

    def _set(self, body: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION journal_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $${body}$$"
            )


def test_bells_do_not_hold_up_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """ENGINE 34: a broker that accepts and never answers."""
    stuck = threading.Event()
    monkeypatch.setattr(current_app, "send_task", lambda *a, **k: stuck.wait(10))
    ringer = bells.Ringer()
    timer = threading.Timer(5, stuck.set)
    timer.start()
    for _ in range(100):
        ringer.ring()
    assert not stuck.is_set()
    timer.cancel()
    stuck.set()
