"""Replay: recorded outcomes come back, the first call without one is executed, and nothing is executed twice."""

from __future__ import annotations

from decimal import Decimal

import pytest

from journal import Retry, current_step, now, random, runs, sleep, step, uuid4, wait_for_signal, workflow
from journal.describing import describe_run
from journal.errors import StepFailed, WaitTimeout
from journal.models import Run
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
