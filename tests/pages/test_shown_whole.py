"""AUTHORITY 3: all fields count. Nobody approves on a page what that page did not show them to the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client

from approvals import requires_approval
from approvals.decisions import decide
from approvals.models import Approval
from journal import runs, step, workflow
from tests.approvals.scene import Scene
from tests.pages.test_deciding import form_of, post, status

As = Callable[[str], Client]
Ask = Callable[..., Approval]
TAIL = " AND A MILLION TO EVE"
WHY = "too long to be shown whole"


@pytest.fixture
def ask(scene: Scene) -> Ask:
    """A request with these arguments, this summary, these facts."""
    given: dict[str, Any] = {}

    @requires_approval(
        policy="refunds", summary=lambda **_: given.get("summary", "Pay"), facts=lambda **_: given.get("facts", {})
    )
    @step
    def pay(value: Any) -> None:
        scene.calls.append(("pay", str(value), Decimal(0)))

    @workflow(owner="lead")
    def pays() -> None:
        pay(given["value"])

    def asked(value: Any = "x", **more: Any) -> Approval:
        given.clear()
        given.update(more, value=value)
        run = runs.start(pays, actor=scene.user("clerk"))
        scene.work()
        return Approval.objects.get(run=run.id)

    return asked


def test_two_keys_that_read_alike_are_both_on_the_page(ask: Ask, as_user: As) -> None:
    approval = ask({1: Decimal("90000.0"), "1": Decimal("5.0")})
    for view in ("", "?view=json"):
        page = unescape(as_user("mara").get(f"/approvals/{approval.id}/{view}").text)
        assert "90000.0" in page
        assert '"5.0"' in page


@pytest.mark.parametrize("place", ["/approvals/{}/", "/approvals/{}/?view=json", "/inbox/{}/"])
@pytest.mark.parametrize(
    "asked",
    [
        {"value": "n" * 5_000 + TAIL},
        {"value": {str(number): "n" for number in range(2_000)} | {"last": TAIL}},
        {"value": [0] * 20_000 + [TAIL]},
        {"value": {f"{number} \u200b": number for number in range(2_500)} | {"last": TAIL}},
        {"facts": {"note": "n" * 5_000 + TAIL}},
        {"facts": {1: TAIL, "1": "n"}},
        {"facts": {"does not fit": [*(f"misfit {number}" for number in range(80)), "n" * 900 + TAIL]}},
        {"summary": "n" * 5_000 + TAIL},
    ],
    ids=["text", "keys", "list", "hidden characters", "fact", "facts by number", "misfits", "summary"],
)
def test_up_to_a_limit_all_of_it_is_on_the_page(ask: Ask, as_user: As, asked: dict[str, Any], place: str) -> None:
    approval = ask(**asked)
    client = as_user("mara")
    begin = time.monotonic()
    page = client.get(place.format(approval.id)).text
    assert time.monotonic() - begin < 2
    assert TAIL in unescape(page).replace("\\u200b", "")
    assert "Only the first" not in page
    assert WHY not in page
    post(client, approval, "approve", form_of(approval))
    assert status(approval) == "approved"


@pytest.mark.parametrize(
    "asked",
    [
        {"value": "n" * 70_000 + TAIL},
        {"value": ["n" * 40_000, "n" * 40_000 + TAIL]},
        {"facts": {"note": "n" * 70_000 + TAIL}},
        {"facts": {"does not fit": ["n" * 1_000] * 70}},
        {"summary": "n" * 70_000 + TAIL},
        {"summary": "\u00e4" * 20_000},
    ],
    ids=["text", "list", "fact", "misfits", "summary", "summary beyond ASCII"],
)
def test_beyond_it_the_browser_can_only_reject(scene: Scene, ask: Ask, as_user: As, asked: dict[str, Any]) -> None:
    approval = ask(**asked)
    client = as_user("mara")
    for place in ("/approvals/{}/", "/approvals/{}/?view=json", "/inbox/{}/", "/approvals/{}/live?revision=1"):
        page = client.get(place.format(approval.id)).text
        assert WHY in page, place
        assert "data-decides" not in page, place
        assert f"/approvals/{approval.id}/approve" not in page, place
        assert f"/approvals/{approval.id}/reject" in page, place
    form = client.get(f"/approvals/{approval.id}/approve")
    assert WHY in form.text
    assert "data-decides" not in form.text
    answer = post(client, approval, "approve", form_of(approval))
    assert answer.status_code == 422
    assert WHY in answer.text
    assert status(approval) == "waiting"
    assert "data-decides" in client.get(f"/approvals/{approval.id}/reject").text
    post(client, approval, "reject", form_of(approval, reason="who reads that?"))
    assert status(approval) == "rejected"
    scene.work()
    assert scene.calls == []


def test_by_command_it_can_be_approved(scene: Scene, ask: Ask) -> None:
    approval = ask("n" * 70_000)
    said = form_of(approval)
    decide(approval, actor=scene.user("mara"), verdict="approve", via="command", **said)
    assert status(approval) == "approved"
