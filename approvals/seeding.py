"""The people of the demo. Their passwords are made once and kept in SIGNOFF_HOME, so that they stay what they were."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from approvals.demo_accounts import DEMO_GROUP
from approvals.errors import NotInDevelopment
from approvals.people import add_person

FILE = "demo-people.json"

PEOPLE = (
    ("mara", ("finance",), "reviewer"),
    ("tomas", ("finance", "support"), "reviewer"),
    ("sam", ("support",), "reviewer"),
    ("clerk", ("finance",), "reviewer"),  # starts the demo's runs, and so decides none of them
    ("support-lead", ("finance", "support"), "reviewer"),  # owns the demo's workflows, and so decides none of them
    ("olga", (), "operator"),
)


@dataclass(frozen=True)
class Account:
    name: str
    password: str
    groups: tuple[str, ...]
    role: str


def seed_people() -> list[Account]:
    """Adds those who are not there yet. Raises NotInDevelopment elsewhere: their passwords lie in a file."""
    if settings.PRODUCTION:
        raise NotInDevelopment()
    path = Path(settings.SIGNOFF_HOME) / FILE
    passwords = _passwords(path)
    for name, groups, role in PEOPLE:
        if not get_user_model()._default_manager.filter(username=name).exists():
            user = add_person(name, groups=groups, role=role, password=passwords[name])
            user.groups.add(Group.objects.get_or_create(name=DEMO_GROUP)[0])
    return [Account(name, passwords[name], groups, role) for name, groups, role in PEOPLE]


def _passwords(path: Path) -> dict[str, str]:
    known: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    missing = {name: secrets.token_urlsafe(9) for name, _, _ in PEOPLE if name not in known}
    if missing:
        known |= missing
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(known, indent=1), encoding="utf-8")
        draft.replace(path)
    return known
