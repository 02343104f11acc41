"""What the navigation says on every page."""

from __future__ import annotations

from typing import Any

from django import template

from approvals import inbox, queries

register = template.Library()


@register.simple_tag
def waiting_counts(user: Any) -> dict[str, str]:
    """How many requests wait: for this user, and altogether."""
    return inbox.count_words(queries.counts(user))


@register.simple_tag
def groups_of(user: Any) -> str:
    """The user's groups in one line."""
    return ", ".join(queries.groups_of(user))
