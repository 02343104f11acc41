"""Replay: recorded outcomes come back, the first call without one is executed, and nothing is executed twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import connection

from journal import (
    NotInWorkflow,
    Retry,
    current_run,
    current_step,
    now,
    random,
    registry,
    runs,
    sleep,
    step,
    uuid4,
    wait_for_signal,
    workflow,
)
from journal.describing import describe_run, waiting_for
from journal.errors import StepFailed, WaitTimeout
from journal.models import Event, Run
from tests.journal.inprocess import TestHolder, finished

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_completes_and_its_result_comes_back_typed() -> None:
    calls = []

    @step
    def price(code: str) -> Decimal:
        calls.append(current_step().path)
        return Decimal("9.90")

    @workflow
    def order(code: str) -> Decimal:
        return price(code) + price(code)

    run = runs.start(order, "A1", key="order-1")
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == Decimal("19.80")
    assert calls == ["1", "2"]
    assert [event["kind"] for event in describe_run(Run.objects.get(pk=run.id))["events"]] == [
        "run_started",
        "step_completed",
        "step_completed",
        "run_completed",
    ]


def test_a_signal_wakes_a_run_and_earlier_steps_are_not_executed_again() -> None:
    calls = []

    @step
    def before() -> str:
        calls.append("before")
        return "x"

    @step
    def after(payload: object) -> str:
        calls.append("after")
        return f"got {payload}"

    @workflow
    def waits() -> str:
        before()
        return after(wait_for_signal("go"))

    run = runs.start(waits)
    holder = TestHolder()
    holder.work()
    assert Run.objects.get(pk=run.id).status == "waiting"
    runs.signal(run.id, "other", 1)
    assert holder.work() == 0
    runs.signal(run.id, "go", {"n": Decimal(1)})
    holder.work()
    assert runs.result(run.id, timeout=0) == "got {'n': Decimal('1')}"
    assert calls == ["before", "after"]


def test_a_signal_before_the_wait_is_kept() -> None:
    @workflow
    def waits() -> object:
        return wait_for_signal("go")

    run = runs.start(waits)
    runs.signal(run.id, "go", 1, key="k")
    runs.signal(run.id, "go", 2, key="k")
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == 1


def test_time_and_chance_are_the_same_on_replay() -> None:
    seen = []

    @workflow
    def draws() -> None:
        seen.append((now(), uuid4(), random().random()))
        sleep(0.05)
        seen.append((now(), uuid4(), random().random()))
        wait_for_signal("go", timeout=60)

    run = runs.start(draws)
    holder = TestHolder()
    holder.work()
    while Run.objects.get(pk=run.id).waits.filter(kind="timer").exists():
        holder.work()
    runs.signal(run.id, "go")
    holder.work()
    finished(run.id)
    assert len(set(seen)) == 2


def test_a_failed_step_is_retried_and_raises_what_it_raised() -> None:
    calls = []

    class Odd(Exception):
        def __init__(self, *, code: int) -> None:
            super().__init__(f"code {code}")
            self.code = code

    @step(retry=Retry(max_attempts=2, first=0.01))
    def flaky() -> None:
        calls.append(current_step().attempt)
        raise ValueError("no")

    @step(retry=Retry(max_attempts=1))
    def odd() -> None:
        raise Odd(code=3)

    @workflow
    def tries() -> str:
        try:
            flaky()
        except ValueError as error:
            said = str(error)
        try:
            odd()
        except StepFailed as error:
            return f"{said} {error}"
        return "no"

    run = runs.start(tries)
    holder = TestHolder()
    while Run.objects.get(pk=run.id).status not in ("completed", "failed"):
        holder.work()
    assert runs.result(run.id, timeout=0) == "no Odd: code 3"
    assert calls == [1, 2]


def test_a_wait_times_out_by_the_arrival_of_the_signal() -> None:
    @workflow
    def waits() -> object:
        try:
            return wait_for_signal("go", timeout=0.02)
        except WaitTimeout:
            return "late"

    run = runs.start(waits)
    holder = TestHolder()
    while Run.objects.get(pk=run.id).status != "completed":
        holder.work()
    assert runs.result(run.id, timeout=0) == "late"


def test_a_failed_run_names_the_position_its_error_came_from() -> None:
    @step(retry=Retry(max_attempts=1))
    def breaks() -> None:
        raise KeyError("missing")

    @workflow
    def fails() -> None:
        sleep(0)
        breaks()

    run = runs.start(fails)
    TestHolder().work()
    assert finished(run.id).error == {"type": "KeyError", "message": "'missing'", "path": "2"}
    with pytest.raises(KeyError):
        runs.result(run.id, timeout=0)


def test_the_first_run_sees_what_a_replay_sees() -> None:
    """Arguments and results are decoded copies: what a step does to its argument, and to what it returned, stays
    in the step."""
    seen: list[object] = []
    kept: list[list[int]] = []

    @step
    def adds(items: list[int]) -> list[int]:
        items.append(99)
        kept.append(items)
        return items

    @workflow
    def shares() -> list[object]:
        items = [1]
        result = adds(items)
        kept[0].append(98)
        result.append(100)
        again = adds(items)
        seen.append((list(items), list(result), list(again)))
        wait_for_signal("go")
        return [items, result, again]

    run = runs.start(shares)
    holder = TestHolder()
    holder.work()
    runs.signal(run.id, "go")
    holder.work()
    assert runs.result(run.id, timeout=0) == [[1], [1, 99, 100], [1, 99]]
    assert seen[0] == seen[1]


def test_each_position_has_its_own_idempotency_key_and_keeps_it() -> None:
    keys: list[str] = []

    @step(retry=Retry(max_attempts=2, first=0))
    def pays() -> None:
        keys.append(current_step().idempotency_key)
        if len(keys) == 1:
            raise ConnectionError("once")

    @workflow
    def pays_twice() -> None:
        pays()
        pays()

    first, second = runs.start(pays_twice), runs.start(pays_twice)
    holder = TestHolder()
    while Run.objects.exclude(status="completed").exists():
        holder.work()
    assert first.id != second.id
    assert len(keys) == 5
    assert len(set(keys)) == 4, "a retry has the key of its call, other calls and other runs have others"


def test_a_run_whose_code_no_worker_has_waits_for_one_and_says_so() -> None:
    """A9: it is claimed by nobody who cannot run it, and the others go on."""

    @workflow(version=2)
    def newer() -> str:
        return "ran"

    @workflow
    def known() -> str:
        return "ran"

    stranded, other = runs.start(newer), runs.start(known)
    registry._workflows["newer"].clear()
    old = TestHolder()
    assert old.work() == 1
    assert runs.get(other.id).status == "completed"
    (wait,) = waiting_for(Run.objects.get(pk=stranded.id))
    assert wait["kind"] == "worker"
    assert wait["detail"] == "no live worker has newer@2"
    registry.add_workflow(newer)
    assert TestHolder().work() == 1
    assert runs.get(stranded.id).status == "completed", "it goes on by itself with a worker that has the code"


def test_durable_calls_work_only_in_a_workflow_s_own_frame() -> None:
    @step
    def inner() -> str:
        return "plain"

    @step
    def outer() -> str:
        with pytest.raises(NotInWorkflow):
            sleep(1)
        with pytest.raises(NotInWorkflow):
            now()
        return inner()

    @workflow
    def nests() -> tuple[str, str]:
        return outer(), str(current_run().workflow)

    for call in (now, uuid4, random, lambda: sleep(1), lambda: wait_for_signal("x"), current_run, current_step):
        with pytest.raises(NotInWorkflow):
            call()
    assert inner() == "plain"
    run = runs.start(nests)
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == ("plain", "nests")
    assert Event.objects.filter(run_id=run.id, kind="step_completed").count() == 1


def test_an_async_step_is_run_to_its_end() -> None:
    @step
    async def waits(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    @workflow
    def awaits() -> int:
        return waits(1) + 1

    run = runs.start(awaits)
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == 3


@pytest.mark.parametrize("bad", [object(), float, {"x": [lambda: None]}])
def test_a_result_that_cannot_be_stored_fails_its_step_at_once(bad: object) -> None:
    """A19: clear, and not tried again."""
    calls: list[int] = []

    @step
    def returns_it() -> object:
        calls.append(1)
        return bad

    @workflow
    def stores() -> object:
        return returns_it()

    run = runs.start(stores)
    TestHolder().work()
    error = finished(run.id).error
    assert error is not None
    assert error["type"] == "Unstorable"
    assert "the result of returns_it" in error["message"]
    assert error["path"] == "1"
    assert calls == [1]


def test_odd_text_in_errors_and_labels_does_not_break_the_run() -> None:
    @step(retry=Retry(max_attempts=1))
    def shouts() -> None:
        raise ValueError("nul \0 and half \ud800")

    @workflow
    def odd() -> None:
        shouts()

    run = runs.start(odd)
    TestHolder().work()
    assert finished(run.id).error == {"type": "ValueError", "message": "nul � and half ?", "path": "1"}
    with pytest.raises(ValueError, match="cannot be stored"):
        runs.start(odd, key="a\0b")
    with pytest.raises(ValueError, match="cannot be stored"):
        runs.start(odd, labels={"a": "\ud800"})


def test_replay_every_step_goes_from_the_top_after_each_call() -> None:
    passes: list[int] = []
    done: list[str] = []

    @step
    def effect(name: str) -> str:
        done.append(name)
        return name

    @workflow
    def three() -> list[object]:
        passes.append(1)
        return [effect("a"), now().isoformat(), uuid4(), effect("b"), effect("c")]

    holder = TestHolder()
    holder.replays_every_step = True
    run = runs.start(three)
    holder.work()
    assert done == ["a", "b", "c"]
    assert len(passes) == 3, "from the top after a and after b; nothing is asked for after c"
    assert finished(run.id).seq == 1 + 5 + 1


@pytest.mark.parametrize("due", ["10000-01-01 11:59:59+00", "infinity"])
def test_a_run_that_waits_beyond_the_calendar_can_be_shown(due: str, capsys: pytest.CaptureFixture[str]) -> None:
    @workflow
    def patient(until: datetime) -> None:
        sleep(3_600)

    far = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12)))
    run = runs.start(patient, far)
    TestHolder().work()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE journal_wait SET due_at = %s WHERE run_id = %s", [due, run.id])
    described = describe_run(Run.objects.get(pk=run.id))
    assert described["waiting_for"][0]["until"] == datetime(9999, 12, 31, tzinfo=UTC).isoformat()
    assert described["events"][0]["data"]["args"] == {"until": far.isoformat()}
    call_command("show_run", run.id)
    assert "until 9999" in capsys.readouterr().out
