"""The main job on real input, with real workers and commands, against an independent computation."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from django.contrib.auth import get_user_model

from agents.examples.returns import STARTS_PER_STEP, returns_batch
from journal import runs
from tests.agents.shop import STARTER, add_people, decide_all, invoice_runs, run_batch, settle, total
from tests.harness import LOST, Service
from tests.oracles import returns_oracle
from tests.oracles.mutate import mutate
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(600)


def play_through(service: Service, folder: Path, seed: int) -> returns_oracle.Totals:
    """Start the batch twice, decide what waits, and compare runs, requests and ledger with the oracle."""
    expected = returns_oracle.verdicts(folder / "returns.csv", folder / "orders.csv")
    totals = returns_oracle.totals(expected)
    by_rule = {invoice for invoice, verdict in expected.items() if verdict.by_rule}
    add_people()
    service.start_worker()
    service.start_worker()

    for _ in range(2):
        batch = run_batch(service, folder)
        assert (batch["status"], batch["error"]) == ("completed", None)
        assert batch["result"] == {
            "invoices": totals.invoices,
            "matched": totals.matched,
            "amount": totals.amount,
            "different": [],
        }
        settle(service)
        assert sorted(run["key"] for run in invoice_runs(service)) == sorted(expected)

    ledger = service.json("returns_ledger")
    assert {entry["invoice"] for entry in ledger} == by_rule
    assert total(ledger) == Decimal(totals.by_rule_amount)
    waiting = service.json("list_approvals", "--status", "waiting")
    assert {request["run_key"] for request in waiting} == set(expected) - by_rule
    assert len(waiting) == len(expected) - len(by_rule)

    approved = decide_all(service, waiting, Random(seed))
    settle(service)
    assert {run["status"] for run in invoice_runs(service)} == {"completed"}
    ledger = service.json("returns_ledger")
    paid = by_rule | approved
    assert {entry["invoice"]: Decimal(entry["amount"]) for entry in ledger} == {
        invoice: expected[invoice].amount for invoice in paid
    }
    assert len(ledger) == len({entry["key"] for entry in ledger}) == len(paid)
    assert {entry["calls"] for entry in ledger} == {1}
    assert total(ledger) == sum((expected[invoice].amount for invoice in paid), Decimal(0))
    assert service.json("list_approvals", "--status", "waiting") == []
    assert service.manage("verify_journal", timeout=180).code == 0
    return totals


def test_the_real_files_are_refunded_as_the_oracle_says(service: Service, real_data: Path) -> None:
    totals = play_through(service, real_data, seed=1)
    assert totals == returns_oracle.Totals(384, 147, 83, "925.34", "114726.38")


def test_a_copy_with_twenty_rows_changed_is_refunded_as_the_oracle_says(
    service: Service, real_data: Path, tmp_path: Path
) -> None:
    service.broker = LOST  # and with every doorbell lost
    mutate(real_data, tmp_path, seed=2011)
    totals = play_through(service, tmp_path, seed=2)
    assert totals != returns_oracle.Totals(384, 147, 83, "925.34", "114726.38")


def test_a_bad_row_fails_the_batch_with_one_sentence_and_starts_nothing(
    service: Service, real_data: Path, tmp_path: Path
) -> None:
    mutate(real_data, tmp_path, seed=1, rows=0)
    orders = (tmp_path / "orders.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    orders[4999] = orders[4999].rpartition(",")[0] + "\n"
    (tmp_path / "orders.csv").write_text("".join(orders), encoding="utf-8", newline="")
    add_people()
    service.start_worker()
    batch = run_batch(service, tmp_path)
    assert batch["status"] == "failed"
    assert batch["error"]["message"] == f"{tmp_path / 'orders.csv'}, line 5000: has 7 fields, not 8"
    assert batch["error"]["path"] == "2"
    assert [event["attempt"] for event in batch["events"] if event["path"] == "2"][-1] == 1
    assert invoice_runs(service) == []


def test_a_batch_leaves_an_invoice_alone_that_already_has_a_run_with_another_input(
    service: Service, real_data: Path, tmp_path: Path
) -> None:
    mutate(real_data, tmp_path, seed=1, rows=0)
    returns = (tmp_path / "returns.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    few = [returns[0], *(row for row in returns if row.startswith(("C536379", "C536383", "C536391")))]
    (tmp_path / "returns.csv").write_text("".join(few), encoding="utf-8", newline="")
    add_people()
    service.start_worker()
    assert run_batch(service, tmp_path)["result"]["different"] == []
    few[2] = few[2].replace(",-1,", ",-2,")
    (tmp_path / "returns.csv").write_text("".join(few), encoding="utf-8", newline="")
    again = run_batch(service, tmp_path)
    assert again["status"] == "completed"
    assert again["result"]["different"] == ["C536383"]
    assert len(invoice_runs(service)) == 3


def test_a_worker_killed_while_it_starts_runs_leaves_each_invoice_with_one(service: Service, real_data: Path) -> None:
    add_people()
    worker = service.start_worker()
    clerk = get_user_model().objects.get(username=STARTER)
    batch = runs.start(returns_batch, str(real_data / "returns.csv"), str(real_data / "orders.csv"), actor=clerk)
    wait_for(lambda: len(invoice_runs(service)) > STARTS_PER_STEP + 10, timeout=60, what="the second step has begun")
    worker.kill()
    killed_at = len(invoice_runs(service))
    assert killed_at < 384

    service.start_worker()
    assert runs.result(batch.id, timeout=120).different == ()
    expected = returns_oracle.verdicts(real_data / "returns.csv", real_data / "orders.csv")
    assert sorted(run["key"] for run in invoice_runs(service)) == sorted(expected)
    assert service.value("SELECT count(*) FROM journal_run") == 385
