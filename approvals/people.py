"""People: accounts with their groups and one role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from approvals.errors import BadPerson, PersonExists, UnknownPerson
from approvals.roles import ROLES, is_role, role_group


def seed_roles() -> None:
    """Makes the group of each role, with its permissions."""
    names = {name for permissions in ROLES.values() for name in permissions}
    codenames = [name.partition(".")[2] for name in names]
    known = Permission.objects.filter(codename__in=codenames).select_related("content_type")
    by_name = {f"{found.content_type.app_label}.{found.codename}": found for found in known}
    for role, permissions in ROLES.items():
        group, _ = Group.objects.get_or_create(name=role_group(role))
        group.permissions.set([by_name[name] for name in permissions if name in by_name])


def person_named(name: str) -> Any:
    """The user of that name. Raises UnknownPerson."""
    found = get_user_model()._default_manager.filter(username=name).first()
    if found is None:
        raise UnknownPerson(name)
    return found


def add_person(name: str, *, groups: Iterable[str] = (), role: str = "reviewer", password: str | None = None) -> Any:
    """Adds an account; groups that do not exist yet are made. Without a password it cannot sign in.

    Raises PersonExists or BadPerson."""
    names = [group.strip() for group in groups if group.strip()]
    _check(names, role)
    user = get_user_model()(username=name)
    user.set_password(password)  # None makes it unusable
    try:
        user.clean_fields(exclude=["password"])
        if password is not None:
            validate_password(password, user)
    except ValidationError as error:
        raise BadPerson(" ".join(error.messages)) from None
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            user.groups.set([Group.objects.get_or_create(name=group)[0] for group in [*names, role_group(role)]])
    except IntegrityError:
        raise PersonExists(name) from None
    return user


def _check(groups: list[str], role: str) -> None:
    if role not in ROLES:
        raise BadPerson(f"there is no role {role}; there are: {', '.join(ROLES)}")
    for group in groups:
        if is_role(group):
            raise BadPerson(f"{group} is a role, not a group of people; use --role")
        if len(group) > 150:
            raise BadPerson(f"the name of a group has at most 150 characters: {group[:20]}…")
