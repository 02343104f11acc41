"""The page of a run: why it does not go on, and what its timeline says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from journal import timeline
from journal.models import Run, Worker
from tests.approvals.scene import Scene

As = Callable[[str], Client]
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def test_a_decided_run_without_a_worker_says_so_and_waits_for_nobody(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    client = as_user("mara")
    before = client.get(f"/runs/{approval.run_id}/")
    assert "Open the approval" in before.text
    assert "so far" in before.text
    scene.decide(approval, "mara")
    taken = client.get(f"/runs/{approval.run_id}/")
    assert "No live worker" not in taken.text
    Worker.objects.update(stopped_at=BEGIN)
    after = client.get(f"/runs/{approval.run_id}/?step=1")
    assert after.context["run"].status == "ready"
    assert f"No live worker has {after.context['run'].code}" in after.text
    assert "Open the approval" not in after.text
    assert "so far" not in after.text
    assert "Answered, waits for a worker" in after.text
    assert after.context["version"] != taken.context["version"] != before.context["version"]


@pytest.mark.parametrize(
    ("blocked", "said", "command"),
    [
        ({"reason": "the journal does not end where its row says", "path": ""}, "SIGNOFF_CHAIN_KEY", True),
        ({"reason": "its worker died 5 times while it held this run", "path": ""}, "changed code", False),
        ({"reason": "the input cannot be read: no such class", "path": ""}, "put the code back", False),
        ({"reason": "the engine failed: KeyError: 1", "path": ""}, "log", False),
    ],
)
def test_a_run_that_another_reason_blocks_shows_that_reason(
    scene: Scene, as_user: As, blocked: dict[str, Any], said: str, command: bool
) -> None:
    approval = scene.start()
    Run.objects.filter(pk=approval.run_id).update(status="blocked", blocked=blocked)
    shown = as_user("mara").get(f"/runs/{approval.run_id}/").text
    assert blocked["reason"][4:] in shown
    assert said in shown
    assert ("manage.py verify_journal" in shown) is command
    assert "The code differs" not in shown
    assert '<table class="difference">' not in shown
    assert "Code differs" not in as_user("mara").get("/runs/?tab=blocked").text


def test_a_difference_of_the_code_is_shown_as_one(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    call = {"path": "1", "kind": "step", "name": "refund", "args": None}
    blocked = {"reason": "the code asks for something else", "path": "1", "recorded": call, "asked": call}
    Run.objects.filter(pk=approval.run_id).update(status="blocked", blocked=blocked)
    shown = as_user("mara").get(f"/runs/{approval.run_id}/").text
    assert "The code differs from what this run has recorded" in shown
    assert '<table class="difference">' in shown


def test_the_counts_of_an_open_page_are_those_of_a_fresh_one(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    client = as_user("mara")
    assert client.get("/runs/live?part=nav").context["waiting_counts"]["waiting"] == "1"
    scene.decide(approval, "mara")
    assert client.get("/runs/live?part=nav").context["waiting_counts"]["waiting"] == "0"


def test_a_wait_is_never_drawn_shorter_than_a_step_that_took_less() -> None:
    for waited in (3, 34, 90_000):
        bars = [
            timeline.Bar(BEGIN, BEGIN + timedelta(seconds=0.2), "step"),
            timeline.Bar(BEGIN + timedelta(seconds=0.2), BEGIN + timedelta(seconds=waited), "person"),
        ]
        lanes = [timeline.Lane("1", "a", bars=bars[:1]), timeline.Lane("2", "b", bars=bars[1:])]
        drawn = timeline._drawn(lanes, BEGIN, False)
        assert drawn is not None
        assert bars[1].width > bars[0].width
        assert bars[1].width >= drawn.bands[0].width - 0.01
