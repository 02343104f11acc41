"""The returns batch on the real files, while workers are killed, the database restarts and the broker goes away.

`make chaos SECONDS=… SEED=…` runs it long; CI runs a small one. Kills hit workers that hold a step.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, InterfaceError, connection

from approvals.decisions import decide
from approvals.errors import Refusal
from approvals.models import Approval
from tests import counts
from tests.agents.shop import REVIEWER, STARTER, add_people, total
from tests.chaos.farm import Farm
from tests.chaos.servers import Redis
from tests.harness import Service
from tests.oracles import returns_oracle
from tests.waiting import wait_for
from tests.workflows.outside import CREATE

SECONDS = float(os.environ.get("SIGNOFF_TEST_CHAOS_SECONDS", "20"))
WORKERS, THREADS = 3, 8
KILL_EVERY = 2.0
SILENCE = 15.0
"""Seconds within which something must go on."""

pytestmark = pytest.mark.timeout(int(SECONDS) * 4 + 600)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def farm(service: Service, redis: Redis) -> Iterator[Farm]:
    service.broker = redis.url
    service.env["SIGNOFF_WORKFLOWS"] = "tests.workflows.returns_chaos"
    # The batch is 768 calls of the outside; they take as long as the kills are to last.
    service.env["SIGNOFF_TEST_SLOWEST"] = str(max(0.3, 2 * SECONDS * WORKERS * THREADS / 768))
    service.rows(CREATE)
    add_people()
    made = Farm(service, threads=THREADS)
    for _ in range(WORKERS):
        made.add()
    yield made
    made.close()


def test_every_run_ends_as_it_would_have(service: Service, farm: Farm, redis: Redis, real_data: Path) -> None:
    expected = returns_oracle.verdicts(real_data / "returns.csv", real_data / "orders.csv")
    paths = {"returns": str(real_data / "returns.csv"), "orders": str(real_data / "orders.csv")}
    service.json("start_run", "returns_batch", "--input", json.dumps(paths), "--as", STARTER)
    stop = threading.Event()
    reviewer = threading.Thread(target=review, args=(stop,))
    reviewer.start()
    try:
        kills = disturb(service, farm, redis, Random(counts.SEED))
        watch_to_the_end(service, farm, len(expected))
    finally:
        stop.set()
        reviewer.join(30)
    check_calls(service, kills)
    check_ledger(service, expected)
    assert service.json("verify_journal", timeout=300)["broken"] == []


def review(stop: threading.Event) -> None:
    """Decides everything that waits, one in three with a no, as long as the test lasts."""
    chance = Random(counts.SEED)
    while not stop.wait(0.2):
        try:
            mara = get_user_model()._default_manager.get(username=REVIEWER)
            for approval in Approval.objects.filter(status="waiting").select_related("run")[:50]:
                digest = bytes(approval.revisions.get(number=approval.revision).digest).hex()
                verdict = "reject" if chance.random() < 1 / 3 else "approve"
                decide(
                    approval,
                    revision=approval.revision,
                    digest=digest,
                    actor=mara,
                    verdict=verdict,
                    reason="by the script",
                    via="command",
                )
        except (DatabaseError, InterfaceError, Refusal):
            pass  # the database is down, or a decision's answer was lost: it is looked at again
        finally:
            connection.close()


def disturb(service: Service, farm: Farm, redis: Redis, chance: Random) -> int:
    """Kills a worker that holds a step every two seconds; the rest of the disturbances in between."""
    began, kills = time.monotonic(), 0
    plan = [
        (0.2, redis.stop),
        (0.35, redis.start),
        (0.5, service.restart_postgres),
        (0.6, redis.stop),
        (0.75, redis.start),
    ]
    while time.monotonic() - began < SECONDS:
        while plan and time.monotonic() - began > plan[0][0] * SECONDS:
            plan.pop(0)[1]()
        due = began + (kills + chance.random()) * KILL_EVERY  # at a random instant of each two seconds
        time.sleep(max(0.05, due - time.monotonic()))
        victim = one_that_holds_a_step(service, farm, chance)
        if victim:
            farm.kill(victim)
            farm.add()
            kills += 1
    for _, left in plan:
        left()
    return kills


def one_that_holds_a_step(service: Service, farm: Farm, chance: Random) -> int | None:
    """A worker that is inside a call of the outside at this moment."""
    found = try_rows(service, "SELECT DISTINCT pid FROM outside_calls WHERE ended_at IS NULL ORDER BY pid")
    alive = [row["pid"] for row in found if row["pid"] in farm.pids]
    return chance.choice(alive) if alive else None


def watch_to_the_end(service: Service, farm: Farm, invoices: int) -> None:
    """Waits for the end of every run; something must go on all the time."""
    last, changed_at = -1, time.monotonic()

    def over() -> bool:
        nonlocal last, changed_at
        (row,) = try_rows(
            service,
            "SELECT count(*) FILTER (WHERE ended_at IS NOT NULL) AS ended, coalesce(sum(seq), 0)::int AS events "
            "FROM journal_run",
        ) or [{"ended": -1, "events": last}]
        if row["events"] != last:
            last, changed_at = row["events"], time.monotonic()
        assert time.monotonic() - changed_at < SILENCE, f"nothing went on for {SILENCE} s:\n{farm.logs()[-4000:]}"
        return bool(row["ended"] == invoices + 1)

    wait_for(over, timeout=SECONDS * 3 + 300, every=0.2, what="every run ends")


def try_rows(service: Service, query: str) -> list[dict[str, Any]]:
    """The rows, or none while the database is away."""
    try:
        return service.rows(query)
    except Exception:  # noqa: BLE001 - psycopg's, while it restarts
        return []


def check_calls(service: Service, kills: int) -> None:
    """No call begins for a position that has its outcome; what is repeated is what kills cut short."""
    (row,) = service.rows(
        "SELECT count(*) AS calls, count(ended_at) AS ended, count(*) FILTER (WHERE too_late) AS too_late, "
        "count(DISTINCT (run, path)) AS positions, count(DISTINCT key) AS keys FROM outside_calls"
    )
    row["kills"] = kills
    row["bound"] = kills * THREADS
    print(json.dumps({"seed": counts.SEED, "seconds": SECONDS, **row}))
    assert row["too_late"] == 0
    assert row["keys"] == row["positions"]
    assert row["calls"] - row["positions"] <= kills * THREADS
    if SECONDS >= 100:
        assert kills >= 40


def check_ledger(service: Service, expected: dict[str, Any]) -> None:
    """Runs, requests and ledger agree with each other and with the independent computation."""
    statuses = service.rows("SELECT status, count(*) AS n FROM journal_run GROUP BY status")
    assert statuses == [{"status": "completed", "n": len(expected) + 1}]
    yes = {row["key"] for row in service.rows(
        "SELECT r.key FROM approvals_approval a JOIN journal_run r ON r.id = a.run_id WHERE a.status = 'approved'"
    )}  # fmt: skip
    assert {invoice for invoice, verdict in expected.items() if verdict.by_rule} <= yes
    ledger = service.json("returns_ledger")
    assert {entry["invoice"]: Decimal(entry["amount"]) for entry in ledger} == {
        invoice: expected[invoice].amount for invoice in yes
    }
    assert len(ledger) == len(yes)
    assert total(ledger) == sum((expected[invoice].amount for invoice in yes), Decimal(0))
    assert service.value("SELECT count(*) FROM approvals_approval") == len(expected)
    assert service.value("SELECT count(*) FROM approvals_approval WHERE status = 'approved' AND used_at IS NULL") == 0
