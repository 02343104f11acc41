"""Every address, for everybody: who sees what, and that looking changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from django.db import connection
from django.test import Client
from django.urls import URLPattern, get_resolver

from approvals.models import Approval
from tests.approvals.scene import Scene

As = Callable[[str], Client]

# mara may decide; sam is in another group; clerk started the run; olga and vera see everything.
OWN = ("mara", "clerk", "lead", "olga", "vera")
STRANGER = "sam"

LISTS = ("/", "/?scope=all", "/inbox/live", "/decided/", "/runs/", "/runs/live")
OF_ONE = (
    "/inbox/{approval}/",
    "/approvals/{approval}/",
    "/approvals/{approval}/?view=json",
    "/approvals/{approval}/live",
    "/approvals/{approval}/approve",
    "/approvals/{approval}/reject",
    "/approvals/{approval}/1.json",
    "/runs/{run}/",
    "/runs/{run}/?step=1",
    "/runs/{run}/live",
    "/runs/{run}/events/1/args.json",
)


def addresses(approval: Approval) -> list[str]:
    return [*LISTS, *(path.format(approval=approval.id, run=approval.run_id) for path in OF_ONE)]


def test_the_lists_above_name_every_address() -> None:
    """A new page has to be added here, and is then tried with everybody."""

    def names(patterns: Sequence[object]) -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                yield str(pattern.name)
            else:
                yield from names(pattern.url_patterns)  # type: ignore[attr-defined]

    tried = {
        "inbox", "inbox_live", "inbox_item", "decided", "approval", "approval_live", "approve", "reject",
        "approval_arguments", "runs", "runs_live", "run", "run_live", "event_body",
    }  # fmt: skip
    assert set(names(get_resolver().url_patterns)) == tried | {"login", "logout"}


def test_nobody_sees_anything_without_signing_in(scene: Scene) -> None:
    for address in addresses(scene.start()):
        answer = Client().get(address)
        assert answer.status_code == 302, address
        assert answer["Location"].startswith("/sign-in/?next="), address


@pytest.mark.parametrize("name", OWN)
def test_those_whom_it_concerns_see_everything_of_it(scene: Scene, as_user: As, name: str) -> None:
    approval = scene.start()
    client = as_user(name)
    for address in addresses(approval):
        assert client.get(address).status_code in (200, 204), address


def test_a_stranger_sees_that_it_is_not_theirs_and_nothing_else(scene: Scene, as_user: As) -> None:
    approval = scene.start(order="order-of-others")
    client = as_user(STRANGER)
    for address in addresses(approval):
        answer = client.get(address)
        expected = (200, 204) if address in LISTS or address.endswith("/live") else (403,)
        if address.startswith("/runs/") and address not in LISTS:
            expected = (403,)
        assert answer.status_code in expected, (address, answer.status_code)
        assert b"order-of-others" not in answer.content, address


def test_a_reviewer_of_another_group_cannot_post_either(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    digest = bytes(approval.revisions.get().digest).hex()
    form = {"revision": 1, "digest": digest, "reason": "mine now"}
    for act in ("approve", "reject"):
        assert as_user(STRANGER).post(f"/approvals/{approval.id}/{act}", form).status_code == 403
    approval.refresh_from_db()
    assert approval.status == "waiting"


def test_what_does_not_exist_is_not_found(scene: Scene, as_user: As) -> None:
    client = as_user("olga")
    gone = "0000-0000-0000"
    for path in OF_ONE:
        address = path.format(approval=gone, run=gone)
        assert client.get(address).status_code in (404, 204), address
    assert client.post(f"/approvals/{gone}/approve", {"revision": 1, "digest": "0" * 64}).status_code == 404


def test_an_id_is_found_as_people_type_it(scene: Scene, as_user: As) -> None:
    approval = scene.start()
    typed = approval.id.lower().replace("-", "")
    assert as_user("mara").get(f"/approvals/{typed}/")["Location"] == f"/approvals/{approval.id}/"
    typed = approval.run_id.lower().replace("-", "")
    assert as_user("mara").get(f"/runs/{typed}/")["Location"] == f"/runs/{approval.run_id}/"


def everything_stored() -> dict[str, str]:
    """A digest of each table but those of sessions and sign-ins."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
            " AND (table_name LIKE 'journal%%' OR table_name LIKE 'approvals%%' OR table_name LIKE 'auth%%'"
            " OR table_name LIKE 'agents%%')"
        )
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '')) FROM \"{table}\" t"
            )
            found[table] = cursor.fetchone()[0]
    assert len(found) > 8
    return found


@pytest.mark.parametrize("name", ["mara", STRANGER, ""])
def test_looking_changes_nothing(scene: Scene, as_user: As, name: str) -> None:
    """C1: whoever follows a link, with whatever method reads: a mail scanner, a prefetch, a person. Five times each."""
    approval = scene.start()
    client = as_user(name) if name else Client()
    before = everything_stored()
    for address in [*addresses(approval), "/sign-in/", "/sign-out/"]:
        for _ in range(5):
            client.get(address)
            client.head(address)
            client.get(address, headers={"purpose": "prefetch", "hx-request": "true"})
        client.options(address)
    assert everything_stored() == before
    # The link is as good as before: the person whom it was sent to decides.
    digest = bytes(approval.revisions.get().digest).hex()
    assert (
        as_user("tomas").post(f"/approvals/{approval.id}/approve", {"revision": 1, "digest": digest}).status_code == 302
    )
    approval.refresh_from_db()
    assert approval.status == "approved"


def test_a_decision_needs_a_token(scene: Scene) -> None:
    """C1: POST alone is not enough."""
    approval = scene.start()
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.user("mara"))
    digest = bytes(approval.revisions.get().digest).hex()
    assert client.post(f"/approvals/{approval.id}/approve", {"revision": 1, "digest": digest}).status_code == 403
    approval.refresh_from_db()
    assert approval.status == "waiting"
