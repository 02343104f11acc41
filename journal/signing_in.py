"""Pages are for people who are signed in; those who are not come back to the page, not to a fragment of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

View = Callable[..., HttpResponseBase]


def safe_path(request: HttpRequest, address: str | None) -> str:
    """`address` if it is a path on this very host, else nothing."""
    if not address or not address.startswith("/") or not address.isprintable():
        return ""
    allowed = url_has_allowed_host_and_scheme(address, allowed_hosts=None, require_https=request.is_secure())
    return address if allowed else ""


def page_of(request: HttpRequest) -> str:
    """The path of the page that the person looks at, or nothing.

    For a fragment, and for what is sent by a form, that is where it came from; both headers are only believed
    as far as they name this host."""
    if request.headers.get("HX-Request") == "true":
        return _own_path(request, request.headers.get("HX-Current-URL"))
    if request.method in ("GET", "HEAD"):
        return safe_path(request, request.get_full_path())
    return _own_path(request, request.headers.get("Referer"))


def _own_path(request: HttpRequest, url: str | None) -> str:
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return ""
    if (parts.scheme, parts.netloc) != (request.scheme, request.get_host()):
        return ""
    return safe_path(request, urlunsplit(("", "", parts.path, parts.query, "")))


def signed_in(view: View) -> View:
    """Sends whoever is not signed in to the sign-in page, whole, and afterwards back to where they were.

    What was to be decided is not decided then, neither now nor after signing in; the sign-in page says so."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        return to_sign_in(request)

    return guarded


def to_sign_in(request: HttpRequest) -> HttpResponseBase:
    query = {}
    page = page_of(request)
    if page:
        query["next"] = page
    if request.method == "POST":
        query["lost"] = "1"
    address = reverse("login") + (f"?{urlencode(query)}" if query else "")
    if request.headers.get("HX-Request") == "true":
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)
