"""F4, F9: however much is stored, a page is bounded: in queries, in bytes, in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals import requires_approval
from approvals.models import Approval
from journal import runs, step, workflow
from tests.approvals.scene import Scene
from tests.journal.inprocess import TestHolder

As = Callable[[str], Client]
BIG = 8 * 1024 * 1024
PAGE_BYTES = 200_000
SECONDS = 2.0


def deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.fixture
def big_run(scene: Scene) -> str:
    """A run that was given, answered and asks for 8 MB of different shapes."""

    @step
    def answer(text: str) -> dict[str, Any]:
        return {
            "long": text[: 5 * 1024 * 1024],
            "keys": {f"key {number}": number for number in range(100_000)},
            "deep": deep(150),
        }

    @requires_approval(policy="refunds", summary=lambda **_: "Send all of it")
    @step
    def send(text: str, table: dict[str, Any]) -> None:
        """Nothing."""

    @workflow
    def large(text: str) -> None:
        send(text[:BIG], answer(text))

    started = runs.start(large, "x" * BIG, actor=scene.user("clerk"))
    TestHolder().work()
    assert Approval.objects.filter(run=started.id).exists()
    return started.id


def test_a_large_run_has_a_small_page(scene: Scene, as_user: As, big_run: str) -> None:
    """F4: preview, size and download; under two seconds."""
    approval = Approval.objects.get(run=big_run)
    client = as_user("mara")
    client.get("/runs/")  # templates are compiled once
    addresses = [
        "/",
        "/runs/",
        "/decided/",
        f"/runs/{big_run}/",
        f"/runs/{big_run}/?step=1",
        f"/runs/{big_run}/?step=2",
        f"/runs/{big_run}/live",
        f"/approvals/{approval.id}/",
        f"/approvals/{approval.id}/?view=json",
        f"/inbox/{approval.id}/",
        f"/approvals/{approval.id}/live",
    ]
    for address in addresses:
        begin = time.monotonic()
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert time.monotonic() - begin < SECONDS, address
        assert len(answer.content) < PAGE_BYTES, address
    page = client.get(f"/runs/{big_run}/?step=1").text
    assert "8.4 MB" in page
    assert f"/runs/{big_run}/events/2/data.json" in page
    whole = client.get(f"/runs/{big_run}/events/1/args.json")
    assert len(whole.content) > BIG
    card = client.get(f"/approvals/{approval.id}/").text
    assert "Only the first 4,000 of 8,388,608 characters are shown." in card
    assert "Read the rest before you decide" in card
    assert len(client.get(f"/approvals/{approval.id}/1.json").content) > BIG


def test_lists_never_read_what_runs_hold(scene: Scene, as_user: As, big_run: str) -> None:
    """F4: no payload, no arguments, no facts; not even for a moment."""
    client = as_user("mara")
    for address in ("/runs/", "/runs/live", "/decided/", "/inbox/live"):
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        for query in queries.captured_queries:
            for table in ("journal_payload", "journal_event", "approvals_revision", "approvals_entry"):
                assert table not in query["sql"], (address, query["sql"])


def test_a_poll_that_finds_nothing_reads_little(scene: Scene, as_user: As, big_run: str) -> None:
    client = as_user("mara")
    page = client.get(f"/runs/{big_run}/").text
    poll = page.partition(f'hx-get="/runs/{big_run}/live')[2].partition('"')[0].replace("&amp;", "&")
    with CaptureQueriesContext(connection) as queries:
        assert client.get(f"/runs/{big_run}/live{poll}").status_code == 204
    assert not any("journal_event" in query["sql"] for query in queries.captured_queries)
    assert len(queries) <= 8


@pytest.mark.parametrize("address", ["/", "/?scope=all", "/inbox/live", "/decided/", "/runs/", "/runs/live"])
def test_a_list_takes_as_many_queries_for_thirty_as_for_three(scene: Scene, as_user: As, address: str) -> None:
    """F9."""
    client = as_user("mara")
    counted = []
    for number in (3, 27):
        for at in range(number):
            made = scene.start(order=f"{number}-{at}", matched=at % 3 == 0, amount="10.00")
            assert made
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        counted.append(len(queries))
    assert counted[0] == counted[1]
    assert counted[1] <= 20


def test_a_runs_page_takes_as_many_queries_for_a_long_history(scene: Scene, as_user: As) -> None:
    """F9: paged newest first, and drawn from the newest."""

    @step
    def count(number: int) -> int:
        return number

    @workflow
    def counts(times: int) -> int:
        return sum(count(number) for number in range(times))

    holder = TestHolder()
    client = as_user("olga")
    counted, sizes = [], []
    for times in (5, 400):
        run = runs.start(counts, times)
        holder.work()
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(f"/runs/{run.id}/")
        counted.append(len(queries))
        sizes.append(len(answer.content))
    assert counted[0] == counted[1]
    assert sizes[1] < PAGE_BYTES
    assert f"before={402 - 40 + 1}" in answer.text
    older = client.get(f"/runs/{run.id}/?before=363").text
    assert "<td>362</td>" in older
    assert "<td>363</td>" not in older
    assert "before=323" in older


def test_pages_of_runs_neither_repeat_nor_skip(scene: Scene, as_user: As) -> None:
    """F6: by keyset, while new ones arrive in front."""

    @workflow
    def idle(number: int) -> int:
        return number

    client = as_user("olga")
    made = [runs.start(idle, number).id for number in range(120)]
    seen: list[str] = []
    address = "/runs/"
    while address:
        page = client.get(address).text
        seen += [
            part.partition('"')[0] for part in page.split('id="run-')[1:] if not part.startswith(("live", "s-live"))
        ]
        runs.start(idle, 1000 + len(seen))
        more = page.partition('id="older" rel="next" href="')[2].partition('"')[0]
        address = more.replace("&amp;", "&")
    assert sorted(seen) == sorted(made)
