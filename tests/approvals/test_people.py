"""Roles, who sees what, and the demo's accounts."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import aauthenticate, authenticate
from django.contrib.auth.models import AnonymousUser, Group
from django.core.management import call_command
from django.test import RequestFactory

from approvals import queries
from approvals.demo_accounts import SignInBackend
from approvals.errors import NotInDevelopment
from approvals.seeding import PEOPLE, seed_people
from journal.access import visible
from journal.models import Run
from tests.approvals.scene import Scene, meddle


def test_people_see_what_concerns_them(scene: Scene) -> None:
    """DESIGN 8: a reviewer sees what concerns their groups; those who started or own a run see it too."""
    approval = scene.start(actor="tomas")
    sees = {name: queries.find(scene.user(name), approval.id) is not None for name in _names(scene)}
    assert sees == {
        "mara": True,  # in the group
        "tomas": True,  # started it
        "clerk": True,
        "lead": True,  # owns it; an operator besides
        "sam": False,  # in another group
        "vera": True,
        "olga": True,  # an operator
    }
    runs_seen = {name: visible(scene.user(name)).filter(pk=approval.run_id).count() for name in sees}
    assert runs_seen == {name: int(saw) for name, saw in sees.items()}
    assert queries.find(AnonymousUser(), approval.id) is None
    mara = scene.user("mara")
    mara.is_active = False
    assert queries.find(mara, approval.id) is None


def test_the_inbox_holds_what_a_person_can_decide(scene: Scene) -> None:
    approval = scene.start(actor="clerk")
    held = {name: list(queries.waiting_for(scene.user(name))) for name in _names(scene)}
    assert [name for name, found in held.items() if found] == ["mara", "tomas", "vera"]
    assert queries.counts(scene.user("mara")) == {"for_me": 1, "waiting": 1}
    assert queries.counts(scene.user("olga")) == {"for_me": 0, "waiting": 1}
    assert queries.counts(scene.user("sam")) == {"for_me": 0, "waiting": 0}
    scene.decide(approval, "mara")
    assert [one.id for one in queries.decided_by(scene.user("mara"))] == [approval.id]
    assert list(queries.decided_by(scene.user("tomas"))) == []
    assert queries.counts(scene.user("mara")) == {"for_me": 0, "waiting": 0}


def test_looking_at_one_costs_a_constant_number_of_queries(scene: Scene, django_assert_max_num_queries: Any) -> None:
    approval = scene.start()
    for name in ("clerk", "sam", "lead"):
        with pytest.raises(Exception, match="You"):
            scene.decide(approval, name)
    user = scene.user("mara")
    with django_assert_max_num_queries(8):
        found = queries.find(user, approval.id)
        assert found is not None
        detail = queries.detail(user, found)
        assert detail.can_decide
        assert detail.deciders == ["mara", "tomas"]
        assert detail.barred == [("starter", "clerk"), ("owner", "lead")]
        assert len(detail.entries) == 4
        assert detail.approval.run.workflow == "handle_return"


def test_a_request_that_was_altered_is_not_shown(scene: Scene) -> None:
    """AUTHORITY 15"""
    approval = scene.start()
    meddle("UPDATE approvals_revision SET summary = 'Refund 1.00'")
    detail = queries.detail(scene.user("mara"), approval)
    assert detail.is_altered
    assert not detail.can_decide
    assert (detail.revision, detail.entries, detail.digest) == (None, (), "")


def test_roles_are_there_after_a_migration_and_stay_as_they_are(scene: Scene) -> None:
    admin = Group.objects.get(name="role:admin")
    admin.permissions.clear()
    call_command("migrate", verbosity=0)
    assert admin.permissions.filter(codename="decide_approval").exists()
    assert Group.objects.filter(name__startswith="role:").count() == 4


# ---------------------------------------------------------------- the demo


@pytest.fixture
def home(transactional_db: None, settings: Any, tmp_path: Path) -> Path:
    settings.SIGNOFF_HOME = tmp_path / "home"
    return tmp_path / "home"


def test_the_demo_s_people_keep_their_passwords(home: Path) -> None:
    accounts = seed_people()
    assert [account.name for account in accounts] == [name for name, _, _ in PEOPLE]
    assert len({account.password for account in accounts}) == len(accounts)
    assert seed_people() == accounts
    (file,) = home.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for account in accounts:
        here = RequestFactory().post("/", REMOTE_ADDR="127.0.0.1")
        assert SignInBackend().authenticate(here, account.name, account.password).username == account.name


@pytest.mark.parametrize(
    "meta",
    [
        {"REMOTE_ADDR": "10.0.0.7"},
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "10.0.0.7"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=10.0.0.7"},
    ],
    ids=str,
)
def test_demo_accounts_work_from_this_machine_only(home: Path, meta: dict[str, Any]) -> None:
    """AUTHORITY 16"""
    account = seed_people()[0]
    request = RequestFactory().post("/", **meta)
    assert SignInBackend().authenticate(request, account.name, account.password) is None
    assert authenticate(request, username=account.name, password=account.password) is None
    assert SignInBackend().authenticate(None, account.name, account.password) is None
    assert async_to_sync(aauthenticate)(request, username=account.name, password=account.password) is None


def test_there_are_no_demo_accounts_in_production(home: Path, settings: Any) -> None:
    settings.PRODUCTION = True
    with pytest.raises(NotInDevelopment):
        seed_people()
    assert not home.exists()


def _names(scene: Scene) -> list[str]:
    assert Run.objects.exists()
    return ["mara", "tomas", "clerk", "lead", "sam", "vera", "olga"]
