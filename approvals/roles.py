"""Roles: viewer, reviewer, operator, admin. Sets of Django permissions, each held by a group "role:NAME".

The prefix keeps them apart from the groups of people that policies name: nobody decides as "role:admin".
"""

from __future__ import annotations

ROLE_PREFIX = "role:"

_VIEW = ("approvals.view_approval", "journal.view_run")
_DECIDE = ("approvals.decide_approval",)

ROLES: dict[str, tuple[str, ...]] = {
    "viewer": _VIEW,
    "reviewer": _DECIDE,
    "operator": (*_VIEW, *_DECIDE),
    "admin": (*_VIEW, *_DECIDE),
}
"""A reviewer sees what concerns their groups, the others see everything. A viewer decides nothing."""


def role_group(role: str) -> str:
    return f"{ROLE_PREFIX}{role}"


def is_role(group: str) -> bool:
    return group.startswith(ROLE_PREFIX)
