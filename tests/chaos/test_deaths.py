"""Deaths and what only looks like one, counted and timed, with real workers and default settings."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from journal import leases, runs
from tests import counts
from tests.chaos.farm import Farm
from tests.harness import Child, Service
from tests.waiting import wait_for
from tests.workflows import plain
from tests.workflows.returns_slow import marks, open_gate

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture
def service_of_plain(service: Service) -> Service:
    service.env["SIGNOFF_WORKFLOWS"] = "tests.workflows.plain"
    return service


@pytest.fixture
def farm(service_of_plain: Service) -> Iterator[Farm]:
    made = Farm(service_of_plain, threads=4)
    yield made
    made.close()


def holder_of(service: Service, run_id: str) -> int:
    query = "SELECT w.pid FROM journal_run r JOIN journal_worker w ON w.id = r.worker_id WHERE r.id = %s"
    return int(service.value(query, run_id))


def completed(service: Service, run_id: str, timeout: float = 30) -> None:
    query = "SELECT status FROM journal_run WHERE id = %s"
    wait_for(lambda: service.value(query, run_id) == "completed", timeout, f"run {run_id} completes")


def fresh(tmp_path: Path, number: int) -> Path:
    gates = tmp_path / str(number)
    gates.mkdir()
    return gates


def test_a_killed_worker_s_step_begins_elsewhere_within_seconds(
    service_of_plain: Service, farm: Farm, tmp_path: Path
) -> None:
    """Median at most 2 s, the worst of 50 at most 10 s. B12: whatever ends the process, no run stays `running`."""
    service, took = service_of_plain, []
    farm.add()
    for number in range(counts.of(50, at_least=5)):
        farm.add()
        wait_for(lambda: len(service.json("list_workers")) == 2, 20, "the next worker is there")
        gates = fresh(tmp_path, number)
        run = runs.start(plain.three_steps, str(gates))
        wait_for(lambda gates=gates: marks(gates, "second"), 20, "the step begins")  # type: ignore[misc]
        farm.kill(holder_of(service, run.id))
        began = time.monotonic()
        wait_for(lambda gates=gates: len(marks(gates, "second")) == 2, 20, "it begins again")  # type: ignore[misc]
        took.append(time.monotonic() - began)
        open_gate(gates, "second")
        completed(service, run.id)
        assert len(marks(gates, "first")) == 1
    print(json.dumps({"kills": len(took), "median_s": statistics.median(took), "worst_s": max(took)}))
    assert statistics.median(took) <= 2
    assert max(took) <= 10


@pytest.mark.parametrize("where", ["in the step", "between its return and its event"])
def test_a_zombie_writes_nothing_and_learns_it(service_of_plain: Service, tmp_path: Path, where: str) -> None:
    """Stopped for longer than the lease while another finishes, then let go."""
    service = service_of_plain
    workers = [service.start_worker(), service.start_worker()]
    workflow, place = (
        (plain.three_steps, "second") if where == "in the step" else (plain.held_after_its_step, "encoded")
    )
    run = runs.start(workflow, str(tmp_path))
    wait_for(lambda: marks(tmp_path, place), 20, "the run is where it is to be stopped")
    zombie = next(worker for worker in workers if worker.pid == holder_of(service, run.id))
    zombie.pause()
    open_gate(tmp_path, place)
    completed(service, run.id, timeout=leases.LEASE + 20)
    history = service.json("show_run", run.id)["events"]
    zombie.proceed()
    wait_for(lambda: "this one lets go of it" in zombie.output(), 20, "the zombie learns it")
    assert service.json("show_run", run.id)["events"] == history
    assert service.value("SELECT freed_by FROM journal_run WHERE id = %s", run.id) == "stale"
    assert service.json("verify_journal")["broken"] == []
    wait_for(lambda: len(service.json("list_workers")) == 2, 20, "it goes on as a new worker")


def test_a_rolling_restart_under_load_strands_and_doubles_nothing(service_of_plain: Service, tmp_path: Path) -> None:
    """A11, A12, B10: old workers are asked to go while new ones come, all of one name, and runs keep starting."""
    service, chance = service_of_plain, Random(counts.SEED)
    workers: list[Child] = [service.start_worker(), service.start_worker()]
    started: list[tuple[str, Path]] = []
    for number in range(counts.of(200, at_least=30)):
        gates = fresh(tmp_path, number)
        open_gate(gates, "second")
        started.append((runs.start(plain.three_steps, str(gates)).id, gates))
        time.sleep(chance.uniform(0, 0.1))
        if number % 10 == 9:
            old = workers.pop(0)
            old.terminate()
            workers.append(service.start_worker(wait=False))
            assert old.wait(30) == 0
    for run_id, gates in started:
        completed(service, run_id, timeout=60)
        assert [len(marks(gates, place)) for place in ("first", "second", "third")] == [1, 1, 1]
    assert service.value("SELECT count(*) FROM journal_run WHERE deaths > 0") == 0


def test_a_stop_that_ends_in_a_kill_is_no_failure(service_of_plain: Service, tmp_path: Path) -> None:
    """B10: a container is stopped in the middle of a long step. The step begins again elsewhere, and has not failed."""
    service = service_of_plain
    workers = [service.start_worker(), service.start_worker()]
    run = runs.start(plain.three_steps, str(tmp_path))
    wait_for(lambda: marks(tmp_path, "second"), 20, "the step begins")
    stopped = next(worker for worker in workers if worker.pid == holder_of(service, run.id))
    stopped.terminate()
    wait_for(lambda: "shutdown" in stopped.output().lower(), 20, "it has heard")
    assert service.value("SELECT status FROM journal_run") == "running"
    stopped.kill()
    wait_for(lambda: len(marks(tmp_path, "second")) == 2, leases.LEASE + 1, "it begins again")
    open_gate(tmp_path, "second")
    completed(service, run.id)
    kinds = [event["kind"] for event in service.json("show_run", run.id)["events"]]
    assert kinds == ["run_started", *["step_completed"] * 3, "run_completed"]
    assert [len(marks(tmp_path, place)) for place in ("first", "second", "third")] == [1, 2, 1]


def terminated(service: Service, worker: Child) -> None:
    assert service.terminate_sessions(worker) > 0


def test_a_result_outlives_the_database_s_absence(service_of_plain: Service, tmp_path: Path) -> None:
    """A27: the connection is cut, and the server restarted, while a step is outside; its result is not lost."""
    service = service_of_plain
    worker = service.start_worker()
    run = runs.start(plain.slow_step, str(tmp_path), 20 if counts.FULL else 6)
    wait_for(lambda: marks(tmp_path, "takes"), 20, "the step begins")
    terminated(service, worker)
    service.restart_postgres()
    completed(service, run.id, timeout=60)
    assert len(marks(tmp_path, "takes")) == len(marks(tmp_path, "after")) == 1


def test_sessions_that_the_server_ends_because_they_idle_cost_nothing(
    service_of_plain: Service, tmp_path: Path
) -> None:
    """A27, A28: `idle_session_timeout`, shorter than the step. Nothing is executed twice, and bells are heard again."""
    service = service_of_plain
    service.rows(f"ALTER DATABASE {service.database} SET idle_session_timeout = '3s'")
    worker = service.start_worker()
    run = runs.start(plain.slow_step, str(tmp_path), 8)
    wait_for(lambda: marks(tmp_path, "takes"), 20, "the step begins")
    completed(service, run.id)
    assert len(marks(tmp_path, "takes")) == len(marks(tmp_path, "after")) == 1
    assert service.value("SELECT count(*) FROM journal_worker") == 1, "it was never taken for dead"
    assert worker.is_alive


def test_poison_is_blocked_and_its_neighbours_finish(service_of_plain: Service, farm: Farm, tmp_path: Path) -> None:
    """A run that kills its process, beside others in the same process, each of them slow enough to be hit."""
    service = service_of_plain
    neighbours = [runs.start(plain.slow_step, str(fresh(tmp_path, number)), 0.5).id for number in range(8)]
    bad = runs.start(plain.poison, str(tmp_path))
    for _ in range(2):
        farm.add()

    def keep_two_alive() -> bool:
        for pid in [pid for pid in farm.pids if _is_gone(pid)]:
            farm.reap(pid)
            farm.add()
        return bool(service.value("SELECT status FROM journal_run WHERE id = %s", bad.id) == "blocked")

    wait_for(keep_two_alive, 90, "the poison is blocked", every=0.1)
    for run_id in neighbours:
        completed(service, run_id)
    assert service.value("SELECT count(*) FROM journal_run WHERE status = 'blocked'") == 1
    shown = service.json("show_run", bad.id)
    assert shown["error"]["message"].startswith("its worker died 5 times while it held this run and nothing else")
    assert 6 <= len(marks(tmp_path, "poison")) <= 8, "two deaths among others, then five alone"


def _is_gone(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
