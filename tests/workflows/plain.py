"""Workflows for tests with real workers. Gates and marks are those of returns_slow."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass

from journal import Retry, current_step, now, runs, sleep, step, uuid4, wait_for_signal, workflow
from tests.workflows.returns_slow import hold


@step
def mark(gates: str, place: str) -> str:
    """Leaves a mark for each execution."""
    hold(gates, place, waits=False)
    return place


@step
def held(gates: str, place: str) -> str:
    """Leaves a mark and waits for its gate."""
    hold(gates, place, waits=True)
    return current_step().idempotency_key


@step
def takes(gates: str, seconds: float) -> None:
    """Outside for a while."""
    hold(gates, "takes", waits=False)
    time.sleep(seconds)


@step
def holds_the_gil(gates: str, seconds: float) -> None:
    """In C code that never lets another thread run."""
    hold(gates, "gil", waits=False)
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@workflow
def three_steps(gates: str) -> list[str]:
    return [mark(gates, "first"), held(gates, "second"), mark(gates, "third")]


@workflow
def slow_step(gates: str, seconds: float) -> str:
    takes(gates, seconds)
    return mark(gates, "after")


@workflow
def gil_step(gates: str, seconds: float) -> str:
    holds_the_gil(gates, seconds)
    return mark(gates, "after")


@workflow
def steps_in_a_row(gates: str, count: int, seconds: float) -> int:
    for _ in range(count):
        takes(gates, seconds)
    return count


@workflow
def asks(gates: str) -> object:
    mark(gates, "asked")
    answer = wait_for_signal("answer")
    mark(gates, "answered")
    return answer


@workflow
def naps(gates: str, seconds: float) -> str:
    sleep(seconds)
    return mark(gates, "woke")


@workflow
def draws() -> list[str]:
    return [str(now()), str(uuid4())]


@step(retry=Retry(max_attempts=1))
def start_another(gates: str) -> str:
    return runs.start(naps, gates, 0, key="started by a step").id


@workflow
def starts(gates: str) -> str:
    return start_another(gates)


@dataclass
class SlowToRead:
    """A result that can be held still while the engine encodes it: after the step returned, before its event."""

    gates: str

    def __getattribute__(self, name: str) -> object:
        value = object.__getattribute__(self, name)
        if name == "gates":
            hold(str(value), "encoded", waits=True)
        return value


@step
def returns_slowly(gates: str) -> SlowToRead:
    hold(gates, "returns", waits=False)
    return SlowToRead(gates)


@workflow
def held_after_its_step(gates: str) -> str:
    returns_slowly(gates)
    return mark(gates, "after")


@step
def kills_its_worker(gates: str) -> None:
    """Poison: the process is gone, and nothing was said."""
    hold(gates, "poison", waits=False)
    os.kill(os.getpid(), signal.SIGKILL)


@workflow
def poison(gates: str) -> None:
    kills_its_worker(gates)
