"""F1: whatever a run was given, said, or raised is text on every page, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from django.db import connection
from django.test import Client

from approvals import Rejected, requires_approval
from approvals.models import Approval
from approvals.people import add_person
from journal import Retry, runs, set_labels, step, workflow
from journal.models import Run
from tests.approvals.scene import Scene
from tests.journal.inprocess import TestHolder

As = Callable[[str], Client]

NASTY = (
    '<script>alert("evil")</script><img src=x onerror="evil()"></script><svg onload=evil()>'
    '<a href="javascript:evil()">x</a>\' onclick=evil() x=\'" hx-get="/evil" hx-on:click="evil()"'
    "{{ evil }}{% evil %}<!--"
)


class Strict(HTMLParser):
    """Reads a page and objects to everything that could only come from the data."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.problems: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "iframe", "object", "embed", "base"):
            self.problems.append(tag)
        for name, value in attrs:
            if name.startswith(("on", "hx-on")) or name == "style":
                self.problems.append(f"{tag} {name}")
            if (value or "").strip().lower().startswith("javascript:"):
                self.problems.append(f"{tag} {name}={value}")
            if "evil" in (value or "") and name not in ("value", "href", "content"):
                self.problems.append(f"{tag} {name}={value}")
        if tag == "script" and not dict(attrs).get("src"):
            self.problems.append("script without a source")
        if tag == "svg" and "icon" not in (dict(attrs).get("class") or "") and dict(attrs).get("aria-hidden") != "true":
            self.problems.append("svg")

    def handle_comment(self, data: str) -> None:
        self.problems.append("comment")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def nasty_runs(scene: Scene) -> list[str]:
    """One run waits for approval, one has failed, one was rejected with such a reason, one is blocked."""
    add_person("nasty", groups=["finance"])

    @requires_approval(
        policy="refunds",
        summary=lambda text, **_: f"Do {text}",
        facts=lambda text, **_: {"does not fit": [text], text: text, "known": [text]},
    )
    @step
    def act(text: str, nested: dict[str, list[str]]) -> str:
        return text

    @step(retry=Retry(max_attempts=2, first=0, jitter=0))
    def fail(text: str) -> None:
        raise ValueError(text)

    @workflow(owner="lead")
    def wants(text: str) -> str:
        set_labels(title=text, other=text)
        try:
            return act(text, {text: [text]})
        except Rejected as no:
            return no.reason

    @workflow
    def fails(text: str) -> None:
        fail(text)

    holder = TestHolder()
    clerk = scene.user("clerk")
    found = [runs.start(wants, NASTY + mark, key=f"{NASTY}{mark}", actor=clerk).id for mark in ("1", "2", "3")]
    found.append(runs.start(fails, NASTY, actor=clerk).id)
    holder.work()
    rejected = Approval.objects.get(run=found[1])
    scene.decide(rejected, "mara", "reject", reason=NASTY)
    holder.work()
    difference = {
        "reason": NASTY,
        "path": "1",
        "line": NASTY,
        "recorded": {"path": NASTY, "kind": NASTY, "name": NASTY, "args": {NASTY: NASTY}},
        "asked": None,
        "code": {"recorded": NASTY, "at_hand": NASTY},
    }
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM journal_wait WHERE run_id = %s", [found[2]])
    Run.objects.filter(pk=found[2]).update(
        status="blocked", blocked=difference, progress=NASTY, actor_name=NASTY, owner=NASTY
    )
    return found


def test_nothing_that_a_run_says_is_markup(scene: Scene, as_user: As, nasty_runs: list[str]) -> None:
    """F1: in pages and in fragments alike."""
    client = as_user("olga")
    addresses = ["/", "/?scope=all", "/inbox/live?scope=all", "/decided/", "/runs/", "/runs/?tab=failed", "/runs/live"]
    for run_id in nasty_runs:
        addresses += [f"/runs/{run_id}/", f"/runs/{run_id}/?step=1", f"/runs/{run_id}/live"]
    for approval in Approval.objects.all():
        addresses += [
            f"/approvals/{approval.id}/",
            f"/approvals/{approval.id}/?view=json",
            f"/approvals/{approval.id}/live",
        ]
        addresses += [f"/inbox/{approval.id}/", f"/approvals/{approval.id}/reject"]
    said = 0
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, address
        page = Strict(answer.text)
        assert page.problems == [], address
        said += page.text.count('alert("evil")')
        policy = answer["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
    assert said > 40, "the text itself is shown"


def test_all_that_was_said_stands_in_an_inert_place(scene: Scene, as_user: As, nasty_runs: list[str]) -> None:
    """F1: htmx is told to keep its hands off the data, in case an escape is ever forgotten."""
    page = as_user("olga").get(f"/runs/{nasty_runs[0]}/").text
    for found in re.finditer(re.escape("&lt;script&gt;"), page):
        before = page[: found.start()]
        opened, closed = before.rfind("<bdi "), before.rfind("</bdi>")
        in_title = before.rfind("<title>") > before.rfind("</title>")
        assert in_title or opened > closed, page[found.start() - 200 : found.end()]


def test_downloads_are_files_and_never_pages(scene: Scene, as_user: As, nasty_runs: list[str]) -> None:
    """F1: the stored text as it is, which no browser shows as a page of this site."""
    approval = Approval.objects.get(run=nasty_runs[0])
    for address in (f"/runs/{nasty_runs[0]}/events/1/args.json", f"/approvals/{approval.id}/1.json"):
        answer = as_user("olga").get(address)
        assert answer["Content-Type"] == "application/json"
        assert answer["Content-Disposition"].startswith("attachment; ")
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert "evil" in answer.text


def test_a_hostile_address_is_text_too(scene: Scene, as_user: As) -> None:
    client = as_user("olga")
    for address in (
        "/runs/%3Cscript%3Eevil()%3C%2Fscript%3E/",
        "/approvals/%3Cimg%20onerror=evil()%3E/",
        "/%3Cscript%3E",
    ):
        answer = client.get(address)
        assert answer.status_code in (404, 301, 302), address
        assert Strict(answer.text).problems == [], address
    for query in ("?tab=%3Cscript%3E", "?after=%22%3E%3Cscript%3E", "?after=2026-01-01T00:00:00%2B00:00~%3Cb%3E"):
        assert Strict(client.get(f"/runs/{query}").text).problems == []
    run = scene.start().run_id
    for query in ("?step=%22%3E%3Cscript%3E", "?before=%3Cscript%3E", "?before=99999999999999999999"):
        assert Strict(client.get(f"/runs/{run}/{query}").text).problems == []
