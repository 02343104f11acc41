"""A running Signoff with a browser before it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tests.harness import Service, Web

EXPECTED = ("the server responded with a status of 4", "net::ERR_", "htmx:sendError", "htmx:afterRequest")


class Site:
    """What a browser test has at hand; made by the fixture `running`."""

    PASSWORD = "a long enough password"
    PEOPLE = (
        ("mara", "finance", "reviewer"),
        ("tomas", "finance", "reviewer"),
        ("clerk", "finance", "reviewer"),
        ("support-lead", "finance", "reviewer"),
        ("olga", "", "operator"),
    )
    ADD_PEOPLE = (
        "from approvals.people import add_person\n"
        f"for name, group, role in {PEOPLE!r}:\n"
        f"    add_person(name, groups=[group], role=role, password={PASSWORD!r})\n"
    )
    """For `manage.py shell`: one process for all of them."""

    def __init__(self, service: Service, web: Web, browser: Browser) -> None:
        self.service = service
        self.web = web
        self.browser = browser
        self.contexts: list[BrowserContext] = []
        self.problems: list[str] = []
        """What any page complained about: errors of scripts, refusals by the content security policy."""

    def is_settled(self) -> bool:
        found = self.service.rows("SELECT status, count(*) AS n FROM journal_run GROUP BY status")
        by_status = {row["status"]: row["n"] for row in found}
        moving = sum(by_status.get(status, 0) for status in ("ready", "running"))
        return bool(moving == 0 and by_status.get("waiting", 0) > 0)

    def open(self, name: str = "mara", path: str = "/", **options: Any) -> Page:
        """A page of that path, signed in by the form as that person, in a browser of their own."""
        context = self.browser.new_context(**options)
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.goto(self.web.url + path)
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(self.PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(self.web.url + path)
        return page

    def _note(self, kind: str, text: str) -> None:
        # Refusals and a lost connection are shown by the page; the browser and htmx log them all the same.
        if kind == "error" and not any(words in text for words in EXPECTED):
            self.problems.append(text)

    def waiting(self) -> list[dict[str, Any]]:
        """The requests that wait, the most urgent first, as in the inbox."""
        return self.service.rows(
            "SELECT a.id, a.run_id, a.summary, r.key FROM approvals_approval a JOIN journal_run r ON r.id = a.run_id"
            " WHERE a.status = 'waiting' ORDER BY a.deadline_at, a.id"
        )

    def status(self, approval_id: str) -> str:
        return str(self.service.value("SELECT status FROM approvals_approval WHERE id = %s", approval_id))

    def close(self) -> None:
        """Closes the browser's pages; they must not have complained."""
        for context in self.contexts:
            context.close()
        self.contexts.clear()
        problems, self.problems = self.problems, []
        assert not problems, problems
