"""A worker that dies, and one that only seems to: real Celery workers, killed, stopped, cut off."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from journal.states import RunStatus
from tests.harness import LOST, PGMQ, Child, Service
from tests.waiting import wait_for
from tests.workflows.returns_slow import marks, open_gate

MODULE = "tests.workflows.plain"


@pytest.fixture(params=[PGMQ, LOST], ids=["bells", "no-bells"])
def farm(service: Service, tmp_path: Path, request: pytest.FixtureRequest) -> Service:
    """The service with the test's workflows; once with doorbells, once with every one of them lost."""
    service.broker = request.param
    service.env["SIGNOFF_WORKFLOWS"] = MODULE
    return service


def start(farm: Service, name: str, *args: Any) -> str:
    return str(farm.json("start_run", name, "--input", json.dumps(args))["id"])


def status(farm: Service, run_id: str) -> str:
    return str(farm.value("SELECT status FROM journal_run WHERE id = %s", run_id))


def completed(farm: Service, run_id: str, timeout: float = 20) -> None:
    wait_for(lambda: status(farm, run_id) == RunStatus.COMPLETED, timeout, f"run {run_id} is {status(farm, run_id)}")


def holder(farm: Service, run_id: str, workers: list[Child]) -> Child:
    pid = farm.value(
        "SELECT w.pid FROM journal_run r JOIN journal_worker w ON w.id = r.worker_id WHERE r.id = %s", run_id
    )
    return next(worker for worker in workers if worker.pid == pid)


def test_a_run_goes_on_elsewhere_when_its_worker_is_killed_in_a_step(farm: Service, tmp_path: Path) -> None:
    workers = [farm.start_worker(), farm.start_worker()]
    run_id = start(farm, "three_steps", str(tmp_path))
    wait_for(lambda: marks(tmp_path, "second"), what="the second step begins")
    victim = holder(farm, run_id, workers)
    victim.kill()
    wait_for(lambda: len(marks(tmp_path, "second")) == 2, 5, "the second step begins again, elsewhere")
    open_gate(tmp_path, "second")
    completed(farm, run_id)
    assert len(marks(tmp_path, "first")) == 1, "a finished step was executed again"
    assert len(marks(tmp_path, "third")) == 1
    assert farm.value("SELECT freed_by FROM journal_run WHERE id = %s", run_id) == "proved"
    assert farm.json("verify_journal")["broken"] == []


def test_a_worker_stopped_for_three_seconds_keeps_its_run(farm: Service, tmp_path: Path) -> None:
    workers = [farm.start_worker(), farm.start_worker()]
    run_id = start(farm, "three_steps", str(tmp_path))
    wait_for(lambda: marks(tmp_path, "second"), what="the second step begins")
    stopped = holder(farm, run_id, workers)
    stopped.pause()
    wait_for_seconds(3)
    stopped.proceed()
    open_gate(tmp_path, "second")
    completed(farm, run_id)
    assert len(marks(tmp_path, "second")) == 1


def test_a_step_that_holds_the_gil_for_five_seconds_keeps_its_run(farm: Service, tmp_path: Path) -> None:
    farm.start_worker()
    farm.start_worker()
    run_id = start(farm, "gil_step", str(tmp_path), 5)
    completed(farm, run_id)
    assert len(marks(tmp_path, "gil")) == 1


def test_a_worker_whose_sessions_are_all_terminated_keeps_its_run(farm: Service, tmp_path: Path) -> None:
    workers = [farm.start_worker(), farm.start_worker()]
    run_id = start(farm, "slow_step", str(tmp_path), 8)
    wait_for(lambda: marks(tmp_path, "takes"), what="the step begins")
    assert farm.terminate_sessions(holder(farm, run_id, workers)) > 0
    completed(farm, run_id)
    assert len(marks(tmp_path, "takes")) == 1


def test_a_restart_of_the_database_in_a_step_doubles_nothing(farm: Service, tmp_path: Path) -> None:
    farm.start_worker()
    farm.start_worker()
    run_id = start(farm, "slow_step", str(tmp_path), 8)
    wait_for(lambda: marks(tmp_path, "takes"), what="the step begins")
    farm.restart_postgres()
    completed(farm, run_id)
    assert len(marks(tmp_path, "takes")) == 1
    assert farm.json("verify_journal")["broken"] == []


def test_sigterm_hands_the_run_over_when_the_step_at_hand_ends(farm: Service, tmp_path: Path) -> None:
    workers = [farm.start_worker(), farm.start_worker()]
    run_id = start(farm, "three_steps", str(tmp_path))
    wait_for(lambda: marks(tmp_path, "second"), what="the second step begins")
    leaving = holder(farm, run_id, workers)
    leaving.terminate()
    wait_for_seconds(1)
    assert leaving.is_alive, "it does not leave a step in the middle"
    open_gate(tmp_path, "second")
    completed(farm, run_id, timeout=2)
    leaving.wait(10)
    assert len(marks(tmp_path, "second")) == 1
    third = marks(tmp_path, "third")
    assert len(third) == 1
    assert third[0] != leaving.pid, "the worker that leaves began another step"


def test_waits_wake_by_signal_and_by_timer(farm: Service, tmp_path: Path) -> None:
    farm.start_worker()
    asking, napping = start(farm, "asks", str(tmp_path)), start(farm, "naps", str(tmp_path), 1)
    wait_for(lambda: status(farm, asking) == RunStatus.WAITING)
    said = farm.json("signal_run", asking, "answer", "--payload", '{"n": 1}')
    assert said["awaited"] is True
    completed(farm, asking)
    completed(farm, napping)
    assert farm.json("show_run", asking)["result"] == {"n": 1}
    assert len(marks(tmp_path, "asked")) == len(marks(tmp_path, "answered")) == len(marks(tmp_path, "woke")) == 1


def wait_for_seconds(seconds: float) -> None:
    """Time itself is what the test is about."""
    time.sleep(seconds)
