"""The returns example played through on a running service, by its commands."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from approvals.people import add_person
from tests.harness import Service
from tests.waiting import wait_for

STARTER, OWNER, REVIEWER = "clerk", "support-lead", "mara"


def add_people() -> None:
    """The people that the policy "refunds" speaks of, in the service at hand."""
    add_person(STARTER, groups=[], role="reviewer", password=None)
    add_person(OWNER, groups=[], role="reviewer", password=None)
    add_person(REVIEWER, groups=["finance"], role="reviewer", password=None)


def run_batch(service: Service, folder: Path) -> dict[str, Any]:
    """Start the batch on the files of a folder, as the clerk, and wait for its end, good or bad."""
    paths = {"returns": str(folder / "returns.csv"), "orders": str(folder / "orders.csv")}
    command = ("start_run", "returns_batch", "--input", json.dumps(paths), "--as", STARTER, "--wait", "--json")
    done = service.manage(*command, timeout=180)
    assert done.out, done.err
    return dict(json.loads(done.out))


def settle(service: Service, timeout: float = 180) -> None:
    """Wait until no run can go on by itself."""
    query = "SELECT count(*) FROM journal_run WHERE status IN ('ready', 'running')"
    wait_for(lambda: service.value(query) == 0, timeout=timeout, every=0.1, what="every run waits or has ended")


def decide_all(service: Service, waiting: list[dict[str, Any]], chance: Random) -> set[str]:
    """Decide all of these by one command, one in three with a no. Returns the invoices that got a yes."""
    verdicts = {request["id"]: "reject" if chance.random() < 1 / 3 else "approve" for request in waiting}
    lines = [
        {
            "id": request["id"],
            "revision": request["revision"],
            "verdict": verdicts[request["id"]],
            "as": REVIEWER,
            "reason": "does not fit" if verdicts[request["id"]] == "reject" else "",
        }
        for request in waiting
    ]
    outcomes = service.json("decide", "-", text="\n".join(json.dumps(line) for line in lines), timeout=180)
    assert len(outcomes) == len(lines)
    return {request["run_key"] for request in waiting if verdicts[request["id"]] == "approve"}


def invoice_runs(service: Service) -> list[dict[str, Any]]:
    """Key and status of every run that handles an invoice."""
    return service.rows("SELECT key, status FROM journal_run WHERE workflow = 'handle_return'")


def total(entries: list[dict[str, Any]]) -> Decimal:
    """What these ledger entries paid."""
    return sum((Decimal(entry["amount"]) for entry in entries), Decimal(0))
