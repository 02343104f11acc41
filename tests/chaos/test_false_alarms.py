"""What only looks like a death, fifty times each, in the middle of a step. Only in `make chaos` (conftest.py):
tests/journal/test_worker_death.py tries each of them once, with and without bells."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from journal import leases, runs
from tests.chaos.test_deaths import completed, fresh, holder_of, service_of_plain, terminated
from tests.harness import Child, Service
from tests.waiting import wait_for
from tests.workflows import plain
from tests.workflows.returns_slow import marks

__all__ = ["service_of_plain"]

pytestmark = pytest.mark.timeout(7200)


ALARMS: dict[str, Callable[[Service, Child], None]] = {
    "stopped for 3 s": lambda service, worker: _stopped(worker),
    "all sessions terminated": lambda service, worker: terminated(service, worker),
    "PostgreSQL restarted": lambda service, worker: service.restart_postgres(),
}


def _stopped(worker: Child) -> None:
    worker.pause()
    time.sleep(3)  # the time itself is what is tried
    worker.proceed()


@pytest.mark.parametrize("alarm", ALARMS)
def test_false_alarms_begin_no_step_twice(service_of_plain: Service, tmp_path: Path, alarm: str) -> None:
    """Each fifty times in `make chaos`, in the middle of a step that takes longer than the suspicion."""
    service = service_of_plain
    workers = {worker.pid: worker for worker in (service.start_worker(), service.start_worker())}
    for number in range(50):
        gates = fresh(tmp_path, number)
        run = runs.start(plain.slow_step, str(gates), leases.GRACE + 3)
        wait_for(lambda gates=gates: marks(gates, "takes"), 20, "the step begins")  # type: ignore[misc]
        ALARMS[alarm](service, workers[holder_of(service, run.id)])
        completed(service, run.id)
        assert len(marks(gates, "takes")) == 1


def test_a_step_that_holds_the_gil_is_no_death(service_of_plain: Service, tmp_path: Path) -> None:
    service = service_of_plain
    for _ in range(2):
        service.start_worker()
    for number in range(50):
        gates = fresh(tmp_path, number)
        completed(service, runs.start(plain.gil_step, str(gates), 5).id)
        assert len(marks(gates, "gil")) == 1
