"""The runs that the demo starts, and what the people who decide them are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.clients import SCRIPTED
from agents.examples.seed import start_demo_runs
from approvals.models import Approval
from journal import codec
from tests.agents.shop import REVIEWER, add_people, settle
from tests.harness import Service
from tests.oracles import returns_oracle
from tests.waiting import wait_for

DEMO = Path("agents/examples/demo")


@pytest.fixture
def demo(service: Service) -> Service:
    """The service with the demo's runs, each of them ended or waiting."""
    add_people()
    service.start_worker()
    start_demo_runs()
    start_demo_runs()
    wait_for(lambda: status_of(service, "demo-returns") == "completed", timeout=60, what="the batch is completed")
    settle(service)
    return service


def status_of(service: Service, key: str) -> Any:
    return service.value("SELECT status FROM journal_run WHERE key = %s", key)


def result_of(service: Service, key: str) -> Any:
    run_id = service.value("SELECT id FROM journal_run WHERE key = %s", key)
    return service.json("show_run", run_id)["result"]


def shown(invoice: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Summary, facts and arguments of the request for an invoice, as plain values."""
    revision = Approval.objects.get(run__key=invoice).revisions.get()
    return revision.summary, codec.plain(revision.facts), codec.plain(revision.args)


def test_the_demo_starts_once_and_asks_people_with_all_that_they_need(demo: Service) -> None:
    check_runs(demo)
    check_facts()
    check_descriptions()


def check_runs(demo: Service) -> None:
    """25 runs by the clerk; those wait that the oracle says."""
    expected = returns_oracle.verdicts(DEMO / "returns.csv", DEMO / "orders.csv")
    runs = demo.rows("SELECT workflow, key, actor_name FROM journal_run")
    assert sorted(run["key"] for run in runs) == sorted([*expected, "demo-returns"])
    assert {run["actor_name"] for run in runs} == {"clerk"}
    waiting = {approval.run.key for approval in Approval.objects.filter(status="waiting").select_related("run")}
    assert waiting == {invoice for invoice, verdict in expected.items() if not verdict.by_rule}
    assert {entry["invoice"] for entry in demo.json("returns_ledger")} == set(expected) - waiting


def check_facts() -> None:
    """What does not fit, and who wrote the proposal."""
    summary, facts, arguments = shown("C700212")
    assert summary == "Refund 1284.60 to an unknown customer for return C700212"
    assert facts["does not fit"] == ["no customer", "not goods: AMAZONFEE (Amazon's fee)", "above 500.00"]
    assert facts[f"Proposal ({SCRIPTED})"].startswith("Do not refund 1284.60 before somebody has looked into this")
    assert (arguments["amount"], arguments["matched"]) == ("1284.60", False)

    summary, facts, arguments = shown("C700203")
    assert summary == "Refund 64.00 to customer 20019 for return C700203"
    assert facts == {
        "does not fit": [],
        f"Proposal ({SCRIPTED})": "Refund 64.00: the customer bought all of it before.",
    }

    assert all(SCRIPTED in json.dumps(codec.plain(found.revisions.get().facts)) for found in Approval.objects.all())


def check_descriptions() -> None:
    """Odd characters are kept as they are; drawing them is the page's part."""
    descriptions = {line["description"] for invoice in ("C700208", "C700218") for line in shown(invoice)[2]["lines"]}
    assert descriptions == {
        "GIFT CARD \u202e00.5 HTROW\u202c PAPER",
        "FELT PEN SET \U0001f58a\ufe0f\U0001f308",
        "WAX\u200b SEAL\u200b KIT",
    }


def test_a_yes_refunds_and_a_no_leaves_a_sentence(demo: Service) -> None:
    requests = {request["run_key"]: request for request in demo.json("list_approvals", "--status", "waiting")}
    for invoice, verdict in (("C700203", "approve"), ("C700214", "reject")):
        words = ("--revision", "1", "--as", REVIEWER, "--reason", "Manual entries are not refunded")
        demo.json("decide", requests[invoice]["id"], verdict, *words)
        wait_for(lambda key=invoice: status_of(demo, key) == "completed", timeout=30, what=f"{invoice} is completed")  # type: ignore[misc]
    assert result_of(demo, "C700203").startswith("refunded 64.00, receipt R")
    assert result_of(demo, "C700214") == "not refunded: Manual entries are not refunded"
    calls = {entry["invoice"]: entry["calls"] for entry in demo.json("returns_ledger")}
    assert calls["C700203"] == 1
    assert "C700214" not in calls


def test_a_return_that_nobody_decides_in_time_is_not_refunded(service: Service, tmp_path: Path) -> None:
    policies = Path("agents/examples/policies.toml").read_text(encoding="utf-8")
    hasty = tmp_path / "policies.toml"
    hasty.write_text(policies.replace('deadline = "48h"', 'deadline = "1s"'), encoding="utf-8")
    service.env["SIGNOFF_POLICIES"] = str(hasty)
    add_people()
    service.start_worker()
    start_demo_runs()
    wait_for(
        lambda: service.value("SELECT count(*) FROM journal_run WHERE status = 'completed'") == 25,
        timeout=60,
        what="every run has ended",
    )
    assert result_of(service, "C700203") == "not refunded: nobody decided in time"
    assert len(service.json("returns_ledger")) == 8
