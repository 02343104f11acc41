"""A worker that is killed at each place around a refund: how often the outside was touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.shop import REVIEWER, STARTER, add_people
from tests.harness import Child, Service
from tests.waiting import wait_for
from tests.workflows.returns_slow import marks, open_gate


@pytest.fixture
def slow(service: Service) -> Service:
    """The service with the workflows that can be held still."""
    service.env["SIGNOFF_WORKFLOWS"] = "agents.examples.returns,tests.workflows.returns_slow"
    add_people()
    return service


def start(service: Service, workflow: str, gates: Path, held: str, **more: Any) -> str:
    given = {"invoice": "C1", "amount": "30.00", "gates": str(gates), "held": held, **more}
    run: dict[str, Any] = service.json("start_run", workflow, "--input", json.dumps(given), "--as", STARTER)
    return str(run["id"])


def kill_while_held(service: Service, gates: Path, held: str) -> Child:
    """Kill the only worker at the place where it waits, open the gate, and start another."""
    (worker,) = service.children
    wait_for(lambda: len(marks(gates, held)) == 1, timeout=30, what=f"the worker is held {held} the call")
    worker.kill()
    open_gate(gates, held)
    return service.start_worker()


def status(service: Service, run_id: str) -> Any:
    return service.value("SELECT status FROM journal_run WHERE id = %s", run_id)


CALLS = {"before": (1, 2), "inside": (2, 2), "after": (1, 1)}
"""Where the worker is killed: calls that the ledger gets, executions of the step."""


@pytest.mark.parametrize("held", CALLS)
def test_a_worker_killed_around_the_call_leaves_one_refund(slow: Service, tmp_path: Path, held: str) -> None:
    calls, executions = CALLS[held]
    slow.start_worker()
    run_id = start(slow, "slow_return", tmp_path, held)
    kill_while_held(slow, tmp_path, held)
    wait_for(lambda: status(slow, run_id) == "completed", timeout=30, what="another worker finishes the run")
    (entry,) = slow.json("returns_ledger")
    assert (entry["invoice"], entry["amount"], entry["calls"]) == ("C1", "30.00", calls)
    assert len(marks(tmp_path, "before")) == executions
    assert len(marks(tmp_path, "lookup")) == 1


def test_an_approved_refund_whose_worker_is_killed_inside_the_call_is_executed_again_and_nobody_asked_again(
    slow: Service, tmp_path: Path
) -> None:
    slow.start_worker()
    run_id = start(slow, "slow_approved_return", tmp_path, "inside", matched=False)
    wait_for(lambda: status(slow, run_id) == "waiting", timeout=30, what="the run waits for a person")
    (request,) = slow.json("list_approvals", "--status", "waiting")
    slow.json("decide", request["id"], "approve", "--revision", str(request["revision"]), "--as", REVIEWER)
    kill_while_held(slow, tmp_path, "inside")
    wait_for(lambda: status(slow, run_id) == "completed", timeout=30, what="another worker finishes the run")
    (entry,) = slow.json("returns_ledger")
    assert (entry["invoice"], entry["amount"], entry["calls"]) == ("C1", "30.00", 2)
    assert len(marks(tmp_path, "lookup")) == 1
    assert [found["id"] for found in slow.json("list_approvals")] == [request["id"]]
