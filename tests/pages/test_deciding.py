"""The two forms that decide: what they answer, to whom, and what stays in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from approvals import requires_approval
from approvals.models import Approval, Entry
from journal import runs, step, workflow
from tests.approvals.scene import Racer, Scene, meddle, moved_clock
from tests.journal.inprocess import TestHolder

As = Callable[[str], Client]
HTMX = {"hx-request": "true", "hx-current-url": "http://testserver/"}


def form_of(approval: Approval, **more: Any) -> dict[str, Any]:
    revision = approval.revisions.get(number=approval.revision)
    return {"revision": revision.number, "digest": bytes(revision.digest).hex(), **more}


def post(client: Client, approval: Approval, act: str, form: dict[str, Any], **options: Any) -> Any:
    return client.post(f"/approvals/{approval.id}/{act}", form, **options)


def status(approval: Approval) -> str:
    approval.refresh_from_db()
    return approval.status


def test_approving_leads_back_with_a_message(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    answer = post(as_user("mara"), approval, "approve", form_of(approval), follow=True)
    assert answer.redirect_chain == [(f"/approvals/{approval.id}/", 302)]
    assert "Approved." in answer.text
    assert "You approved this in the browser" in answer.text
    assert status(approval) == "approved"
    assert scene.result(approval) == "refunded 100.00"


def test_from_the_inbox_it_leads_back_to_the_inbox(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    answer = post(as_user("mara"), approval, "approve", form_of(approval, place="inbox"))
    assert answer["Location"] == f"/inbox/{approval.id}/"


def test_rejecting_needs_a_reason_and_gets_it(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    client = as_user("mara")
    answer = post(client, approval, "reject", form_of(approval, reason="  "))
    assert answer.status_code == 422
    assert "A rejection needs a reason." in answer.text
    assert status(approval) == "waiting"
    post(client, approval, "reject", form_of(approval, reason="not ours <b>"))
    assert status(approval) == "rejected"
    assert scene.result(approval) == "not refunded: not ours <b> (mara)"
    assert "not ours &lt;b&gt;" in client.get(f"/approvals/{approval.id}/").text


def test_a_refused_form_keeps_what_was_typed(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    typed = "x" * 10_001
    answer = post(as_user("mara"), approval, "reject", form_of(approval, reason=typed))
    assert answer.status_code == 422
    assert typed in answer.text


def test_the_dialog_gets_its_form_again(scene: Scene, as_user: As) -> None:
    """With htmx the same form comes as a part, into the dialog that it was in."""
    approval = scene.start()
    answer = post(as_user("mara"), approval, "reject", form_of(approval), headers=HTMX)
    assert answer.status_code == 422
    assert answer["HX-Retarget"] == "#dialog-content"
    assert "<html" not in answer.text
    assert "A rejection needs a reason." in answer.text


def test_with_htmx_the_card_itself_comes_back(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    answer = post(as_user("mara"), approval, "approve", form_of(approval, place="inbox"), headers=HTMX)
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert 'id="approval"' in answer.text
    assert "signoff:decided" in answer["HX-Trigger"]
    assert "Approved." in answer.text


# ---------------------------------------------------------------- who may not, and what came first


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("clerk", 403, "You started this run, so somebody else has to decide (four eyes)."),
        ("lead", 403, "You own this workflow, so somebody else has to decide (four eyes)."),
        ("olga", 403, "You are not in finance, the group that decides this."),
        ("vera", 403, "Your role does not let you decide."),
        ("sam", 403, "You cannot open this request."),
    ],
)
@pytest.mark.parametrize("act", ["approve", "reject"])
def test_those_who_may_not_are_told_why(scene: Scene, as_user: As, name: str, code: int, says: str, act: str) -> None:
    """C20: the sentence on the page is the one that guards the POST."""
    approval = scene.start()
    answer = post(as_user(name), approval, act, form_of(approval, reason="please"))
    assert answer.status_code == code
    assert says in answer.text
    assert status(approval) == "waiting"
    if name != "sam":
        page = as_user(name).get(f"/approvals/{approval.id}/")
        assert says in page.text
        assert "data-decides" not in page.text


def test_a_lost_race_shows_the_decision_that_won(scene: Scene, as_user: As) -> None:
    """C3: never "forbidden", never "ok"."""
    approval = scene.start()
    form = form_of(approval, reason="I disagree")
    post(as_user("tomas"), approval, "approve", form)
    answer = post(as_user("mara"), approval, "reject", form)
    assert answer.status_code == 409
    assert "Your decision was not recorded" in answer.text
    assert "Already approved by tomas at" in answer.text
    assert "I disagree" in answer.text
    assert status(approval) == "approved"


def test_the_same_decision_by_the_same_person_is_quietly_fine(scene: Scene, as_user: As) -> None:
    """C3: a double click."""
    approval = scene.start()
    form, client = form_of(approval), as_user("mara")
    assert post(client, approval, "approve", form).status_code == 302
    answer = post(client, approval, "approve", form, follow=True)
    assert answer.status_code == 200
    assert "You already approved this at" in answer.text
    assert Entry.objects.filter(approval=approval, kind="vote").count() == 1


def test_twenty_posts_at_once_make_one_decision(scene: Scene, as_user: As) -> None:
    """C3."""
    approval = scene.start()
    form = form_of(approval, reason="now")

    def click(name: str, act: str) -> tuple[str, str, int, str]:
        answer = post(as_user(name), approval, act, form, headers=HTMX)
        return name, act, answer.status_code, answer.text

    pairs = [("mara", "approve"), ("tomas", "reject"), ("mara", "approve"), ("tomas", "approve")] * 5
    racers = [Racer(lambda pair=pair: click(*pair)) for pair in pairs]  # type: ignore[misc]
    outcomes = [racer.outcome() for racer in racers]
    assert not [each for each in outcomes if isinstance(each, Exception)]
    entry = Entry.objects.get(approval=approval, kind="verdict")
    won = {"approved": "approve", "rejected": "reject"}[entry.verdict]
    for name, act, code, text in outcomes:
        if (name, act) == (entry.actor_name, won):
            assert code == 200
        else:
            assert code == 409
            assert f"{entry.verdict} " in text
    assert Entry.objects.filter(approval=approval, kind="vote").count() == 1
    scene.work()
    assert len(scene.calls) == (1 if won == "approve" else 0)


def test_an_old_revision_is_refused_and_names_the_current_one(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    form = form_of(approval) | {"revision": 7}
    answer = post(as_user("mara"), approval, "approve", form)
    assert answer.status_code == 409
    assert "Revision 7 is not the current one; look at revision 1." in answer.text
    form = form_of(approval) | {"digest": "0" * 64}
    assert post(as_user("mara"), approval, "approve", form).status_code == 409
    assert status(approval) == "waiting"


def test_after_the_deadline_nothing_is_recorded(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    with moved_clock(timedelta(hours=49)):
        answer = post(as_user("mara"), approval, "approve", form_of(approval))
    assert answer.status_code == 410
    assert "The deadline passed at" in answer.text
    assert status(approval) == "expired"


@pytest.mark.parametrize(
    "form",
    [{}, {"revision": "x", "digest": "0" * 64}, {"revision": 1, "digest": "zz"}, {"revision": -1, "digest": "0" * 64}],
)
def test_a_broken_form_decides_nothing(scene: Scene, as_user: As, form: dict[str, Any]) -> None:
    approval = scene.start()
    assert post(as_user("mara"), approval, "approve", form).status_code == 400
    assert status(approval) == "waiting"


def test_an_altered_request_shows_nothing_of_itself(scene: Scene, as_user: As) -> None:
    """AUTHORITY 15: not shown again with the tampered text, and no button."""
    approval = scene.start()
    form = form_of(approval)
    meddle(f"UPDATE approvals_revision SET summary = 'Refund 1.00, harmless' WHERE approval_id = '{approval.id}'")
    page = as_user("mara").get(f"/approvals/{approval.id}/")
    assert page.status_code == 200
    assert "It was changed from outside Signoff" in page.text
    assert "harmless" not in page.text
    assert "data-decides" not in page.text
    assert post(as_user("mara"), approval, "approve", form).status_code == 409
    assert status(approval) == "waiting"


def test_the_poll_says_nothing_until_something_changes(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    client = as_user("mara")
    page = client.get(f"/approvals/{approval.id}/").text
    begin = f"/approvals/{approval.id}/live"
    poll = begin + page.partition(begin)[2].partition('"')[0].replace("&amp;", "&")
    assert client.get(poll, headers=HTMX).status_code == 204
    post(as_user("tomas"), approval, "approve", form_of(approval))
    answer = client.get(poll, headers=HTMX)
    assert answer.status_code == 200
    assert "tomas approved this in the browser" in answer.text
    assert "data-deciding-off" in answer.text


def test_a_page_that_shows_another_revision_cannot_decide(scene: Scene, as_user: As) -> None:
    """The poll turns deciding off until the current one was looked at."""
    approval = scene.start()
    answer = as_user("mara").get(f"/approvals/{approval.id}/live?seen=1.0.waiting&revision=0", headers=HTMX)
    assert "Revision 1 arrived" in answer.text
    assert "data-deciding-off" in answer.text
    assert "data-decides" not in answer.text
    assert "every 2s" not in answer.text


def test_a_critical_action_asks_for_its_name_and_a_reason(scene: Scene, as_user: As) -> None:
    """Never one click: what is about to run has to be typed."""
    dropped: list[str] = []

    @requires_approval(policy="danger", summary=lambda table: f"Drop {table}")
    @step
    def drop_table(table: str) -> None:
        dropped.append(table)

    @workflow
    def clean_up(table: str) -> None:
        drop_table(table)

    run = runs.start(clean_up, "legacy_tokens", actor=scene.user("clerk"))
    scene.holder = TestHolder()
    scene.work()
    approval = Approval.objects.get(run=run.id)
    client = as_user("mara")
    page = client.get(f"/approvals/{approval.id}/").text
    assert "data-decides" not in page
    assert "Critical risk" in page
    assert "Type <span" in client.get(f"/approvals/{approval.id}/approve").text
    answer = post(client, approval, "approve", form_of(approval, confirmation="drop_tabl", reason="old"))
    assert answer.status_code == 422
    assert "Type drop_table to approve." in answer.text
    answer = post(client, approval, "approve", form_of(approval, confirmation="drop_table"))
    assert answer.status_code == 422
    assert status(approval) == "waiting"
    assert (
        post(client, approval, "approve", form_of(approval, confirmation="drop_table", reason="old")).status_code == 302
    )
    scene.work()
    assert dropped == ["legacy_tokens"]


@pytest.mark.parametrize("act", ["approve", "reject"])
def test_a_stranger_s_attempt_is_refused_and_kept(scene: Scene, as_user: As, act: str) -> None:
    """C20: one policy for all ways, and the refusal is in the record, also of somebody who may not even see it."""
    approval = scene.start()
    answer = post(as_user("sam"), approval, act, form_of(approval, reason="let me"))
    assert answer.status_code == 403
    assert status(approval) == "waiting"
    entry = Entry.objects.get(approval=approval, kind="refused")
    assert (entry.actor_name, entry.verdict, entry.via) == ("sam", act, "browser")
