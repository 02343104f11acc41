"""In a real browser, on a real service: what waits is seen, decided, and the run goes on before one's eyes."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from config.home import BASE_DIR
from journal import times
from tests.pages.site import Site
from tests.waiting import wait_for

WIDE = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 2}
SOON = 2_000
"""Milliseconds in which an approved run shows that it is completed."""


def see_it_completed(page: Page, site: Site, run_id: str) -> None:
    """The run's page, opened before the decision, shows the end by itself."""
    expect(page.locator(".badge", has_text="Completed")).to_be_visible(timeout=SOON)
    expect(page.locator("#announcer")).to_have_text("Completed")
    assert site.service.value("SELECT status FROM journal_run WHERE id = %s", run_id) == "completed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """docs/images with SIGNOFF_PICTURES=1; else nowhere that lasts: pictures differ with the fonts of a machine."""
    return BASE_DIR / "docs" / "images" if os.environ.get("SIGNOFF_PICTURES") else tmp_path


def take(page: Page, folder: Path, name: str) -> None:
    page.wait_for_load_state("networkidle")
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png")
    assert (folder / f"{name}.png").stat().st_size > 10_000


def test_the_pages_can_be_pictured(site: Site, folder: Path) -> None:
    """The first of these tests: it shows an inbox from which nobody has decided anything yet."""
    shown = next(found for found in site.waiting() if found["key"] == "C700211")
    for name, options in (("inbox", WIDE), ("inbox-dark", {**WIDE, "color_scheme": "dark"}), ("inbox-phone", PHONE)):
        page = site.open("mara", "/" if options is PHONE else f"/inbox/{shown['id']}/", **options)
        expect(page.get_by_role("link", name=shown["summary"]).first).to_be_visible()
        take(page, folder, name)
    page = site.open("mara", f"/approvals/{shown['id']}/", **WIDE)
    take(page, folder, "approval")
    page.goto(f"{site.web.url}/runs/{shown['run_id']}/?step=1")
    take(page, folder, "run")
    page = site.open("olga", "/runs/", **WIDE)
    take(page, folder, "runs")


def test_by_mouse(site: Site) -> None:
    found = site.waiting()[0]
    run_page = site.open("mara", f"/runs/{found['run_id']}/", **WIDE)
    expect(run_page.locator(".badge", has_text="Waiting for a person")).to_be_visible()

    page = site.open("mara", "/", **WIDE)
    expect(page.get_by_role("heading", name=found["summary"])).to_be_visible()
    page.get_by_role("link", name=re.compile(re.escape(site.waiting()[1]["summary"]))).click()
    expect(page.get_by_role("heading", name=site.waiting()[1]["summary"])).to_be_visible()
    page.get_by_role("link", name=re.compile(re.escape(found["summary"]))).click()
    expect(page.get_by_role("heading", name=found["summary"])).to_be_visible()
    page.get_by_role("button", name="Approve and run refund").click()

    outcome = page.locator("[data-outcome]", has_text="You approved this in the browser")
    expect(outcome).to_be_visible()
    expect(outcome).to_be_focused()
    see_it_completed(run_page, site, found["run_id"])
    assert site.status(found["id"]) == "approved"
    expect(page.locator(f"#row-{found['id']}")).to_have_count(0)


def test_by_keyboard_alone(site: Site) -> None:
    first, second = site.waiting()[:2]
    run_page = site.open("mara", f"/runs/{second['run_id']}/", **WIDE)
    page = site.open("mara", "/", **WIDE)
    page.keyboard.press("j")
    expect(page.locator(f"#row-{second['id']}")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=second["summary"])).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve and run refund")).to_be_focused()
    assert site.status(second["id"]) == "waiting"
    page.keyboard.press("Enter")
    expect(page.locator("[data-outcome]", has_text="You approved this in the browser")).to_be_visible()
    see_it_completed(run_page, site, second["run_id"])

    page.goto(f"{site.web.url}/inbox/{first['id']}/")
    page.keyboard.press("r")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("a j and an r are letters here")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-outcome]", has_text="You rejected this in the browser")).to_be_visible()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert site.status(first["id"]) == "rejected"
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keys")).to_be_hidden()


def test_without_script(site: Site) -> None:
    first, second = site.waiting()[:2]
    page = site.open("mara", "/", java_script_enabled=False, **WIDE)
    page.get_by_role("link", name=re.compile(re.escape(second["summary"]))).click()
    page.get_by_role("button", name="Approve and run refund").click()
    expect(page.locator("[data-outcome]", has_text="You approved this in the browser")).to_be_visible()
    assert site.status(second["id"]) == "approved"
    # Times name their zone until a script says them in the browser's.
    expect(page.locator("time[data-time=clock]").first).to_contain_text("UTC")

    page.goto(f"{site.web.url}/approvals/{first['id']}/")
    page.get_by_role("link", name="Reject").click()
    page.get_by_label("Reason").fill("not this one")
    page.get_by_role("button", name="Reject and do not run refund").click()
    expect(page.locator("[data-outcome]", has_text="You rejected this in the browser")).to_be_visible()
    assert site.status(first["id"]) == "rejected"
    page.goto(f"{site.web.url}/runs/{second['run_id']}/")
    wait_for(lambda: page.reload() and page.locator(".badge", has_text="Completed").count() == 1)


def test_on_a_phone(site: Site) -> None:
    found = site.waiting()[0]
    page = site.open("mara", "/", **PHONE)
    page.get_by_role("link", name=re.compile(re.escape(found["summary"]))).tap()
    page.wait_for_url(f"**/inbox/{found['id']}/")
    expect(page.locator(f"#row-{found['id']}")).to_be_hidden()
    button = page.get_by_role("button", name="Approve and run refund")
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    button.tap()
    expect(page.locator("[data-outcome]", has_text="You approved this in the browser")).to_be_visible()
    assert site.status(found["id"]) == "approved"


def test_what_somebody_else_decides_freezes_the_card_and_keeps_the_draft(site: Site) -> None:
    found = site.waiting()[0]
    page = site.open("mara", f"/approvals/{found['id']}/", **WIDE)
    page.get_by_role("link", name="Reject").click()
    page.get_by_label("Reason").fill("I was still writing")
    other = site.open("tomas", f"/approvals/{found['id']}/", **WIDE)
    other.get_by_role("button", name="Approve and run refund").click()
    expect(other.locator("[data-outcome]", has_text="You approved this in the browser")).to_be_visible()

    notice = page.locator("[data-dialog-notice]")
    expect(notice).to_contain_text("tomas approved this in the browser at")
    expect(page.get_by_role("button", name="Reject and do not run refund")).to_be_disabled()
    assert page.get_by_label("Reason").input_value() == "I was still writing"
    assert page.evaluate("document.activeElement.id") == "reason"


def test_a_poll_leaves_focus_place_and_typing_alone(site: Site) -> None:
    found = site.waiting()[0]
    page = site.open("mara", "/", viewport={"width": 1440, "height": 500})
    row = page.locator(f"#row-{site.waiting()[-1]['id']}")
    row.focus()
    place = page.evaluate("document.querySelector('.list > .scroll').scrollTop")
    assert place > 0
    other = site.open("tomas", f"/approvals/{found['id']}/", **WIDE)
    other.get_by_role("button", name="Approve and run refund").click()
    expect(page.locator(f"#row-{found['id']}")).to_have_count(0)
    expect(row).to_be_focused()
    assert page.evaluate("document.querySelector('.list > .scroll').scrollTop") > 0


def test_deciding_is_off_while_the_connection_is_lost(site: Site) -> None:
    page = site.open("mara", "/", **WIDE)
    button = page.get_by_role("button", name="Approve and run refund")
    expect(button).to_be_enabled()
    page.context.set_offline(True)
    expect(page.get_by_text("Deciding is off until it is back.")).to_be_visible(timeout=8_000)
    expect(button).to_be_disabled()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(button).to_be_enabled()
    expect(page.get_by_text("Deciding is off until it is back.")).to_be_hidden()


def test_a_session_that_ends_leads_to_signing_in_and_back(site: Site) -> None:
    """F2: a poll brings the whole sign-in page, the draft stays, nothing is decided by signing in."""
    found = site.waiting()[0]
    page = site.open("mara", f"/approvals/{found['id']}/", **WIDE)
    page.get_by_role("link", name="Reject").click()
    page.get_by_label("Reason").fill("half a sentence")
    site.service.rows("DELETE FROM django_session")
    page.wait_for_url("**/sign-in/**")
    page.get_by_label("Name").fill("mara")
    page.get_by_label("Password").fill(site.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**/approvals/{found['id']}/")
    assert site.status(found["id"]) == "waiting"
    page.get_by_role("link", name="Reject").click()
    expect(page.get_by_label("Reason")).to_have_value("half a sentence")


def test_an_approve_after_the_session_ended_is_not_recorded_and_says_so(site: Site) -> None:
    """F2."""
    found = site.waiting()[0]
    page = site.open("mara", f"/approvals/{found['id']}/", **WIDE)
    page.route("**/live?**", lambda route: route.fulfill(status=204))  # the click comes before any poll
    site.service.rows("DELETE FROM django_session")
    page.get_by_role("button", name="Approve and run refund").click()
    page.wait_for_url("**/sign-in/**")
    expect(page.get_by_text("Your decision was not recorded")).to_be_visible()
    page.get_by_label("Name").fill("mara")
    page.get_by_label("Password").fill(site.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**/approvals/{found['id']}/")
    expect(page.get_by_text("nothing was recorded")).to_be_visible()
    assert site.status(found["id"]) == "waiting"


def test_a_token_that_another_tab_changed_brings_a_page_of_its_own(site: Site) -> None:
    """F3."""
    found = site.waiting()[0]
    page = site.open("mara", f"/approvals/{found['id']}/", **WIDE)
    page.route("**/live?**", lambda route: route.fulfill(status=204))
    other_tab = page.context.new_page()
    other_tab.goto(site.web.url)
    other_tab.get_by_role("button", name="Sign out").click()
    other_tab.get_by_label("Name").fill("mara")
    other_tab.get_by_label("Password").fill(site.PASSWORD)
    other_tab.get_by_role("button", name="Sign in").click()
    other_tab.wait_for_url(site.web.url + "/")
    page.get_by_role("button", name="Approve and run refund").click()
    expect(page.get_by_role("heading", name="This page is out of date")).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)
    assert site.status(found["id"]) == "waiting"
    page.get_by_role("link", name="Open the page again").click()
    page.get_by_role("button", name="Approve and run refund").click()
    expect(page.locator("[data-outcome]", has_text="You approved this in the browser")).to_be_visible()


def test_times_are_said_in_the_browsers_zone(site: Site) -> None:
    """F7: server, database and browser are in different zones; the instant is the same."""
    found = site.waiting()[0]
    deadline = site.service.value("SELECT deadline_at FROM approvals_approval WHERE id = %s", found["id"])
    page = site.open("mara", f"/approvals/{found['id']}/", timezone_id="Pacific/Auckland", **WIDE)
    shown = page.locator("#approval-head time[data-time=clock]").first
    there = page.evaluate(
        "iso => new Date(iso).toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit'})", deadline.isoformat()
    )
    expect(shown).to_contain_text(there)
    assert shown.get_attribute("datetime") == deadline.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert "UTC" in (shown.get_attribute("title") or "")


def test_server_and_script_say_times_in_the_same_words(site: Site) -> None:
    """F7: what stands on the page before the script runs is what it says afterwards."""
    page = site.open("mara", "/", **WIDE)
    for seconds in (0, 59, 60, 3599, 3600, 3660, 7800, 86399, 86400, 88200, 151_200, 900_000):
        said = page.evaluate("milliseconds => window.signoffTimes.length(milliseconds)", seconds * 1000)
        assert said == times.length(timedelta(seconds=seconds))
    context = {"timezone_id": "UTC", **WIDE}
    page = site.open("mara", "/", **context)
    now = datetime.now(UTC)
    for apart in (timedelta(), timedelta(days=2), timedelta(days=-3), timedelta(days=40), timedelta(days=500)):
        said = page.evaluate("iso => window.signoffTimes.clock(Date.parse(iso), true)", times.stamp(now + apart))
        assert f"{said} UTC" == times.clock(now + apart, now, seconds=True)


def test_a_wrong_clock_in_the_browser_changes_no_countdown(site: Site) -> None:
    """F7: time left is counted from the server's clock."""
    page = site.open("mara", "/", **WIDE)
    page.clock.install(time=datetime(2001, 1, 1, tzinfo=UTC))
    page.goto(site.web.url)
    expect(page.locator("time[data-time=left]").first).to_contain_text(re.compile("1 d 23 h|2 d"))
    page.clock.resume()


def test_the_navigation_of_a_phone_opens_and_closes(site: Site) -> None:
    page = site.open("mara", "/", **PHONE)
    expect(page.get_by_role("link", name="Decided").first).to_be_hidden()
    page.get_by_text("Menu").tap()
    page.get_by_role("link", name="Decided").tap()
    page.wait_for_url("**/decided/")


def test_a_step_opens_in_place(site: Site) -> None:
    found = site.waiting()[0]
    page = site.open("mara", f"/runs/{found['run_id']}/", **WIDE)
    page.locator("#lane-1").click()
    expect(page.get_by_role("heading", name="1 propose")).to_be_visible()
    assert page.url.endswith("?step=1")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Input and result")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="1 propose")).to_be_visible()
