"""Who may see which run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from journal.models import Run

also_visible: list[Callable[[Any], Q]] = []
"""Filled by the apps above: which runs concern a user who may not see all of them."""


def visible(user: Any) -> QuerySet[Run]:
    """All runs with the permission `journal.view_run`; else those that a user started, owns, or that concern them."""
    if isinstance(user, AnonymousUser) or not user.is_active:
        return Run.objects.none()
    if user.has_perm("journal.view_run"):
        return Run.objects.all()
    mine = Q(actor=user) | Q(owner=user.get_username())
    for grant in also_visible:
        mine |= grant(user)
    return Run.objects.filter(mine)
