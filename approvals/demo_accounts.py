"""Demo accounts sign in from this machine only: their passwords are printed and lie in a file."""

from __future__ import annotations

import ipaddress
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from approvals.roles import ROLE_PREFIX

DEMO_GROUP = f"{ROLE_PREFIX}demo"


class SignInBackend(ModelBackend):
    """Django's own backend, less the demo accounts when the request comes from elsewhere."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> Any:
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is not None and user.groups.filter(name=DEMO_GROUP).exists() and not is_from_here(request):
            return None
        return user

    async def aauthenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> Any:
        # Django's own would not come by the check above.
        return await sync_to_async(self.authenticate)(request, username, password, **kwargs)


def is_from_here(request: HttpRequest | None) -> bool:
    """Whether the request came over the loopback interface, with no proxy in between."""
    if request is None or "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
