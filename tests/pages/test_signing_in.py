"""Signing in and out, and coming back to where one was."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from tests.approvals.scene import Scene

As = Callable[[str], Client]
HTMX = {"hx-request": "true"}
PASSWORD = "a long enough password"

HOSTILE = [
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "http:///evil.example",
    "https:evil.example",
    "http://evil.example/",
    "https://testserver.evil.example/",
    "http://testserver@evil.example/",
    "javascript:alert(1)",
    "/\t/evil.example",
    "/\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    "%2f%2fevil.example",
    "//evil.example%2f..",
    "http:\\\\evil.example",
    "ftp://testserver/",
    "http://testserver/runs/",
    "runs/",
    "data:text/html,x",
    "/\x00/evil",
]


@pytest.fixture
def mara(scene: Scene) -> Scene:
    user = scene.user("mara")
    user.set_password(PASSWORD)
    user.save()
    return scene


def sign_in(client: Client, wanted: str | None = None, **more: str) -> str:
    form = {"username": "mara", "password": PASSWORD, **more}
    answer = client.post("/sign-in/", form if wanted is None else form | {"next": wanted})
    assert answer.status_code == 302, answer.content[:500]
    return answer["Location"]


def test_signing_in_leads_to_the_inbox(mara: Scene) -> None:
    assert sign_in(Client()) == "/"


@pytest.mark.parametrize("wanted", ["/runs/", "/runs/?tab=failed", "/approvals/7KQ2-M9XD-4T0B/"])
def test_signing_in_leads_back_to_the_page(mara: Scene, wanted: str) -> None:
    assert sign_in(Client(), wanted) == wanted


@pytest.mark.parametrize("wanted", HOSTILE)
def test_next_never_leads_elsewhere(mara: Scene, wanted: str) -> None:
    """F8: to a path of this host or to the inbox; the form does not even carry it along."""
    assert sign_in(Client(), wanted) == "/"
    page = Client().get("/sign-in/", {"next": wanted})
    assert "evil" not in page.text
    assert 'name="next"' not in page.text
    signed_in = Client()
    signed_in.force_login(mara.user("mara"))
    assert signed_in.get("/sign-in/", {"next": wanted})["Location"] == "/"


@pytest.mark.parametrize("wanted", [wanted for wanted in HOSTILE if wanted.isprintable()])  # as headers have to be
def test_the_page_that_htmx_names_never_leads_elsewhere(scene: Scene, wanted: str) -> None:
    """F8: HX-Current-URL is only a header."""
    for current in (wanted, f"http://evil.example{wanted}", f"http://testserver{wanted}"):
        answer = Client().get("/runs/live", headers={**HTMX, "hx-current-url": current})
        address = urlsplit(answer["HX-Redirect"])
        assert (address.scheme, address.netloc, address.path) == ("", "", "/sign-in/")
        for there in parse_qs(address.query).get("next", []):
            assert there.startswith("/")
            assert not there.startswith(("//", "/\\"))


def test_signing_out_is_a_post_and_leads_nowhere_else(as_user: As) -> None:
    """F8 on the way out."""
    client = as_user("mara")
    assert client.get("/sign-out/").status_code == 405
    assert client.get("/").status_code == 200
    answer = client.post("/sign-out/?next=//evil.example", {"next": "//evil.example"})
    assert answer["Location"] == "/sign-in/"
    assert client.get("/").status_code == 302


def test_a_wrong_password_says_so_and_keeps_the_name(mara: Scene) -> None:
    answer = Client().post("/sign-in/", {"username": "mara", "password": "no", "next": "/runs/"})
    assert answer.status_code == 200
    assert "Name and password do not fit." in answer.text
    assert 'value="mara"' in answer.text
    assert 'value="/runs/"' in answer.text


def test_a_poll_without_a_session_brings_the_whole_sign_in_page(scene: Scene) -> None:
    """F2: not the form of the sign-in page inside a cell of the table."""
    answer = Client().get("/runs/live?seen=x", headers={**HTMX, "hx-current-url": "http://testserver/runs/?tab=failed"})
    assert answer.status_code == 200
    assert answer.content == b""
    assert answer["HX-Redirect"] == "/sign-in/?next=%2Fruns%2F%3Ftab%3Dfailed"


def test_a_decision_without_a_session_is_not_recorded_and_comes_back_to_its_page(mara: Scene) -> None:
    """F2: with htmx and without; neither lost silently nor sent by signing in."""
    approval = mara.start()
    page = f"/approvals/{approval.id}/"
    form = {"revision": 1, "digest": bytes(approval.revisions.get().digest).hex()}
    for headers in ({**HTMX, "hx-current-url": f"http://testserver{page}"}, {"referer": f"http://testserver{page}"}):
        client = Client()
        answer = client.post(f"{page}approve", form, headers=headers)
        address = urlsplit(answer.get("HX-Redirect") or answer["Location"])
        query = parse_qs(address.query)
        assert query == {"next": [page], "lost": ["1"]}
        assert "Your decision was not recorded" in client.get(address.geturl()).text
        assert sign_in(client, page, lost="1") == page
        assert "nothing was recorded" in client.get(page).text
        approval.refresh_from_db()
        assert approval.status == "waiting"


def test_a_stale_token_brings_a_page_that_says_what_to_do(scene: Scene) -> None:
    """F3: clear words, a way back, what was typed; with htmx in place of the whole page."""
    approval = scene.start()
    page = f"/approvals/{approval.id}/"
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.user("mara"))
    typed = {"reason": "not <this> one", "csrfmiddlewaretoken": "x" * 64}
    for headers in ({**HTMX, "hx-current-url": f"http://testserver{page}"}, {"referer": f"http://testserver{page}"}):
        answer = client.post(f"{page}reject", typed, headers=headers)
        assert answer.status_code == 403
        assert "Nothing was recorded." in answer.text
        assert f'href="{page}"' in answer.text
        assert "not &lt;this&gt; one" in answer.text
        assert answer.get("HX-Retarget") == ("body" if "hx-request" in headers else None)
    hostile = client.post(f"{page}reject", typed, headers={"referer": "http://evil.example/x"})
    assert "evil" not in hostile.text
    assert 'href="/"' in hostile.text
    approval.refresh_from_db()
    assert approval.status == "waiting"
