"""What authors' code does to an engine: open transactions, generators, threads, odd errors, loops that swallow all."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection, transaction

from approvals import requires_approval
from journal import (
    NotInWorkflow,
    Retry,
    context,
    current_step,
    now,
    progress,
    registry,
    runs,
    sleep,
    sleep_until,
    statements,
    step,
    sweeping,
    wait_for_signal,
    workflow,
)
from journal.clock import db_now
from journal.models import Event, Run, Wait
from journal.runner import execute_claimed
from journal.verifying import verify_run
from tests.journal.inprocess import TestHolder, finished
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def events(run_id: str) -> list[tuple[str, str]]:
    return list(Event.objects.filter(run_id=run_id).order_by("seq").values_list("kind", "name"))


# ---------------------------------------------------------------- transactions and connections


def leaves_atomic() -> None:
    transaction.atomic().__enter__()


def leaves_autocommit_off() -> None:
    transaction.set_autocommit(False)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@pytest.mark.parametrize("leave", [leaves_atomic, leaves_autocommit_off])
def test_a_step_that_leaves_a_transaction_open_fails_and_the_thread_works_on(leave: Any) -> None:
    @step
    def bad() -> str:
        leave()
        return "x"

    @step
    def good() -> str:
        return "fine"

    @workflow
    def first() -> str:
        return bad()

    @workflow
    def second() -> str:
        return good()

    one, other = runs.start(first), runs.start(second)
    TestHolder().work()
    assert finished(one.id).error == {
        "type": "TransactionLeftOpen",
        "message": "The step left a transaction open; what it wrote in it is rolled back.",
        "path": "1",
    }
    assert runs.result(other.id, timeout=0) == "fine"
    assert not connection.in_atomic_block


def test_an_error_of_the_engine_s_own_write_is_not_the_step_s_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge went through and its append is refused: the author's fallback must not run too."""
    calls: list[str] = []

    @step
    def charge() -> str:
        calls.append("charge")
        return "paid"

    @step
    def fallback() -> str:
        calls.append("fallback")
        return "other way"

    @workflow
    def pays() -> str:
        try:
            return charge()
        except Exception:  # noqa: BLE001 - the author's
            return fallback()

    run = runs.start(pays)
    real = statements.rows

    def refusing(sql: str, params: Any) -> Any:
        if "INSERT INTO journal_event" in sql and calls:
            raise DataError("the write is refused")
        return real(sql, params)

    monkeypatch.setattr(statements, "rows", refusing)
    TestHolder().work()
    monkeypatch.undo()
    assert calls == ["charge"]
    blocked = Run.objects.get(pk=run.id)
    assert blocked.status == "blocked"
    assert blocked.blocked is not None
    assert "the engine could not write" in blocked.blocked["reason"]


# ---------------------------------------------------------------- frames that live on


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python tells of the refused step
def test_a_generator_that_is_left_open_does_nothing_in_another_run() -> None:
    """ENGINE 16: what stands in its `finally` happens neither on the suspend nor inside somebody else's run."""
    done: list[str] = []
    left_in_its_run: list[bool] = []

    @step
    def cleanup() -> None:
        done.append(current_step().run_id)

    @step
    def busy() -> None: ...

    def pages() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            left_in_its_run.append(context.in_workflow())
            cleanup()

    @workflow
    def reads() -> None:
        rows = pages()
        for _ in rows:
            wait_for_signal("more")

    @workflow
    def other() -> None:
        cycles = [[] for _ in range(50_000)]  # type: ignore[var-annotated]
        del cycles
        gc.collect()
        busy()

    holder = TestHolder()
    reading = runs.start(reads)
    holder.work()
    assert left_in_its_run == [True]
    beside = runs.start(other)
    holder.work()
    assert events(beside.id) == [("run_started", "other"), ("step_completed", "busy"), ("run_completed", "")]
    assert done == []
    runs.signal(reading.id, "more")
    holder.work()
    runs.signal(reading.id, "more")
    holder.work()
    assert runs.get(reading.id).status == "completed"
    assert done == [reading.id]


def test_a_body_that_swallows_its_suspension_for_ever_sleeps_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("journal.execution.STUCK_AFTER", 20)
    release = threading.Event()

    class Enough(BaseException): ...

    def pause(seconds: float) -> None:
        if release.is_set():
            raise Enough
        threading.Event().wait(0.01)

    monkeypatch.setattr("journal.execution.time.sleep", pause)

    @workflow
    def never_gives_up() -> None:
        while not release.is_set():
            try:  # noqa: SIM105
                wait_for_signal("go")
            except:  # noqa: E722 - the fault that is tested
                pass

    run = runs.start(never_gives_up)

    def work() -> None:
        try:
            TestHolder().work()
        finally:
            connection.close()

    stuck = threading.Thread(target=work)
    stuck.start()
    wait_for(lambda: Run.objects.get(pk=run.id).status == "waiting", what="the run sleeps")
    release.set()
    stuck.join(10)
    assert not stuck.is_alive()


def test_durable_calls_in_another_thread_are_refused() -> None:
    @step
    def effect(n: int) -> int:
        return n

    @workflow
    def threads() -> str:
        async def many() -> None:
            await asyncio.gather(*(asyncio.to_thread(effect, n) for n in range(3)))

        try:
            asyncio.run(many())
        except NotInWorkflow as refused:
            return str(refused)
        return "done"

    run = runs.start(threads)
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == "durable calls work only in the workflow's own thread"
    assert events(run.id) == [("run_started", "threads"), ("run_completed", "")]


def test_a_durable_call_in_a_summary_is_refused() -> None:
    done: list[str] = []

    @step
    def effect() -> str:
        done.append("effect")
        return "x"

    @requires_approval(policy="refunds", summary=lambda amount: f"Refund {amount} {effect()}")
    @step
    def pays(amount: int) -> None: ...

    @workflow
    def asks() -> None:
        pays(1)

    run = runs.start(asks)
    TestHolder().work()
    error = finished(run.id).error
    assert error is not None
    assert error["type"] == "NotInWorkflow"
    assert done == []


# ---------------------------------------------------------------- code that changes


def test_code_that_no_longer_asks_for_an_approval_blocks_and_executes_nothing() -> None:
    done: list[str] = []

    def pays(amount: int) -> None:
        done.append("paid")

    @workflow(name="paying")
    def gated() -> None:
        requires_approval(policy="refunds", summary=lambda amount: "Pay")(step(name="pays")(pays))(1)

    run = runs.start(gated)
    TestHolder("code-a").work()
    assert runs.get(run.id).status == "waiting"
    registry._workflows.clear()

    @workflow(name="paying")
    def ungated() -> None:
        step(name="pays")(pays)(1)

    Run.objects.filter(pk=run.id).update(status="ready")
    TestHolder("code-b").work()
    blocked = Run.objects.get(pk=run.id)
    assert blocked.status == "blocked"
    assert done == []


def test_the_line_of_history_is_under_the_seal() -> None:
    """One integer set by SQL would repeat everything, under other idempotency keys."""
    done: list[str] = []

    @step
    def pays() -> None:
        done.append(current_step().idempotency_key)

    @workflow
    def pays_and_waits() -> None:
        pays()
        wait_for_signal("go")

    for column in ("generation", "branch"):
        done.clear()
        run = runs.start(pays_and_waits)
        holder = TestHolder()
        holder.work()
        Run.objects.filter(pk=run.id).update(**{column: 1})
        assert verify_run(Run.objects.get(pk=run.id)) != []
        Run.objects.filter(pk=run.id).update(status="ready")
        holder.work()
        assert Run.objects.get(pk=run.id).status == "blocked"
        assert len(done) == 1


# ---------------------------------------------------------------- time, retries, errors


def test_a_time_that_was_read_is_written_before_a_step_goes_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a crash in the step would be followed by another time under the same idempotency key."""
    calls: list[tuple[str, datetime]] = []

    class Crash(BaseException): ...

    @step
    def pays(at: datetime) -> None:
        calls.append((current_step().idempotency_key, at))
        if len(calls) == 1:
            raise Crash

    @workflow
    def pays_now() -> None:
        pays(now())

    run = runs.start(pays_now)
    holder = TestHolder()
    claim = holder.claim()
    assert claim is not None
    with monkeypatch.context() as patch, pytest.raises(Crash):  # noqa: PT012 - the patch is for the crash only
        patch.setattr("journal.exceptions.record", lambda error: (_ for _ in ()).throw(error))
        execute_claimed(*claim, holder)
    Run.objects.filter(pk=run.id).update(status="ready", worker=None)
    holder.work()
    assert len(calls) == 2
    assert calls[0] == calls[1]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e12, -1e12])
def test_a_duration_that_cannot_be_leaves_no_trace(bad: float) -> None:
    @step
    def after() -> str:
        return "went on"

    @workflow
    def tries() -> str:
        for call in (lambda: sleep(bad), lambda: wait_for_signal("x", timeout=bad), lambda: wait_for_signal("a\0b")):
            with pytest.raises(ValueError, match=r"long|cannot be stored"):
                call()
        with pytest.raises(ValueError, match="9999"):
            sleep_until(datetime.max.replace(tzinfo=UTC))
        said = after()
        sleep(0.01)
        return said

    run = runs.start(tries)
    holder = TestHolder()
    while Run.objects.get(pk=run.id).status not in ("completed", "failed", "blocked"):
        holder.work()
    assert runs.result(run.id, timeout=0) == "went on"


def test_retries_are_checked_and_never_overflow() -> None:
    for bad in ({"only": [ValueError]}, {"never": ("x",)}):
        with pytest.raises(TypeError):
            Retry(**bad)
    for wrong in ({"first": float("nan")}, {"longest": 1e12}, {"factor": float("inf")}, {"jitter": 1}):
        with pytest.raises(ValueError, match=r"from|jitter"):
            Retry(**wrong)
    pause = Retry(max_attempts=5000, longest=60, jitter=0).pause_after(4000, ConnectionError())
    assert pause == 60


class Unreadable(Exception):
    @property
    def args(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no args")

    def __str__(self) -> str:
        raise SystemExit


@dataclass
class Detail:
    n: int


class WithDetail(Exception):
    def __init__(self, detail: object) -> None:
        super().__init__("detailed")
        self.detail = detail


def test_errors_that_cannot_be_looked_at_are_recorded_all_the_same() -> None:
    @dataclass
    class Local:
        n: int

    raising: dict[str, BaseException] = {
        "unreadable": Unreadable(),
        "local": WithDetail(Local(1)),
        "missing": FileNotFoundError(2, "No such file or directory", "x.csv"),
    }

    @step(retry=Retry(max_attempts=1))
    def fails(which: str) -> None:
        raise raising[which]

    @step(retry=Retry(max_attempts=1))
    def returns_local() -> object:
        return Local(1)

    @workflow
    def catches() -> list[str]:
        said = []
        for which in raising:
            try:
                fails(which)
            except Exception as error:  # noqa: BLE001 - the author's
                said.append(type(error).__name__)
        try:
            returns_local()
        except Exception as error:  # noqa: BLE001
            said.append(type(error).__name__)
        wait_for_signal("go")
        return said

    run = runs.start(catches)
    holder = TestHolder()
    holder.work()
    runs.signal(run.id, "go")
    holder.work()
    assert runs.result(run.id, timeout=0) == ["StepFailed", "WithDetail", "FileNotFoundError", "Undecodable"]


def test_a_real_missing_file_is_caught_by_its_type() -> None:
    @step(retry=Retry(max_attempts=1))
    def opens() -> None:
        open("/nowhere/at/all")  # noqa: PTH123, SIM115

    @workflow
    def catches() -> str:
        try:
            opens()
        except FileNotFoundError as error:
            return str(error.filename)
        return "no"

    run = runs.start(catches)
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == "/nowhere/at/all"


def test_progress_is_a_note_and_fails_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("journal.reconnecting.PATIENCE", 0.1)
    real = statements.rows

    def cut(sql: str, params: Any) -> Any:
        if "progress = " in sql and "ended_at" not in sql:
            raise OperationalError("the connection fell")
        return real(sql, params)

    @workflow
    def notes() -> str:
        progress("half")
        return "done"

    run = runs.start(notes)
    monkeypatch.setattr(statements, "rows", cut)
    TestHolder().work()
    monkeypatch.undo()
    assert runs.result(run.id, timeout=0) == "done"


# ---------------------------------------------------------------- sweeps


def test_woken_runs_that_nobody_can_claim_stop_no_timer() -> None:
    """ENGINE 24: two hundred runs of a version that is gone; their rows of waits stay until a claim."""

    @workflow(name="old")
    def old() -> None:
        sleep(0)

    @workflow
    def fresh() -> str:
        sleep(0.05)
        return "woke"

    holder = TestHolder()
    for number in range(210):
        run = runs.start(old, key=str(number))
        Wait.objects.create(
            run_id=run.id, generation=0, branch=0, path="1", kind="timer", name="sleep",
            since=datetime(2020, 1, 1, tzinfo=UTC), due_at=datetime(2020, 1, 1, tzinfo=UTC),
        )  # fmt: skip
    registry._workflows.pop("old")
    run = runs.start(fresh)
    holder.work()
    time.sleep(0.06)
    sweeping.wake_due()
    holder.work()
    assert runs.result(run.id, timeout=0) == "woke"


def test_a_claim_is_forgotten_by_its_epoch_not_by_its_run() -> None:
    """A run suspended in one thread and claimed again in another of the same worker is held by its newer claim."""

    @workflow
    def waits() -> None:
        wait_for_signal("go")

    holder = TestHolder()
    run = runs.start(waits)
    claim = holder.claim()
    assert claim == (run.id, 1)
    Run.objects.update(claimed_at=datetime(2020, 1, 1, tzinfo=UTC))
    sweeping.release_forgotten(holder.row.pk, [(run.id, 1)], db_now())
    assert Run.objects.get(pk=run.id).status == "running"
    sweeping.release_forgotten(holder.row.pk, [(run.id, 0)], db_now())
    assert Run.objects.get(pk=run.id).status == "ready"
