"""System checks: what must hold for the guarantees to hold. docs/settings.md lists the ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register, run_checks
from django.core.exceptions import ImproperlyConfigured
from psycopg import IsolationLevel

from journal import registry
from journal.errors import AuthorsModuleBroken

SHORTEST_KEY = 32  # characters
LOOPBACK = {"localhost", "127.0.0.1", "::1"}

Check = Callable[[], Iterator[CheckMessage]]
_CHECKS: list[Check] = []


def _check(function: Check) -> Check:
    _CHECKS.append(function)
    return function


@register
def signoff_checks(**_: Any) -> list[CheckMessage]:
    """All of this module's checks."""
    return [message for check in _CHECKS for message in check()]


def require_sound_settings() -> None:
    """Raises ImproperlyConfigured, one line, when a check finds an error: for servers at their start."""
    errors = [message for message in run_checks() if message.is_serious()]
    if errors:
        raise ImproperlyConfigured("; ".join(f"{error.id}: {error.msg}" for error in errors))


@_check
def database() -> Iterator[CheckMessage]:
    """The engine's locking is written for PostgreSQL's READ COMMITTED and its own transactions."""
    entry = settings.DATABASES["default"]
    options = entry.get("OPTIONS", {})
    if entry["ENGINE"] != "django.db.backends.postgresql":
        yield Error("the default database must be PostgreSQL", id="signoff.E001")
    if options.get("isolation_level", IsolationLevel.READ_COMMITTED) != IsolationLevel.READ_COMMITTED:
        yield Error("the isolation level must be READ COMMITTED", id="signoff.E002")
    if entry.get("ATOMIC_REQUESTS"):
        yield Error("ATOMIC_REQUESTS must be off: decisions own their transactions", id="signoff.E003")
    if not entry.get("AUTOCOMMIT", True):
        yield Error("AUTOCOMMIT must be on", id="signoff.E004")
    if options.get("server_side_binding") is not True or not settings.PREPARED_STATEMENTS:
        yield checks.Warning(
            "prepared statements are off: every step costs about two thirds more",
            hint="Leave SIGNOFF_PREPARED_STATEMENTS on: behind a pooler they are off by themselves.",
            id="signoff.W001",
        )


@_check
def keys() -> Iterator[CheckMessage]:
    """The chains of runs and approvals are worth what their key is worth."""
    if len(settings.SIGNOFF_CHAIN_KEY) < SHORTEST_KEY:
        yield Error(f"SIGNOFF_CHAIN_KEY needs at least {SHORTEST_KEY} characters", id="signoff.E005")
    if settings.SIGNOFF_CHAIN_KEY == settings.SECRET_KEY:
        yield Error("SIGNOFF_CHAIN_KEY and SIGNOFF_SECRET_KEY must differ", id="signoff.E006")


@_check
def workers() -> Iterator[CheckMessage]:
    """Heartbeat, sweep and steps share a process: workers are threads."""
    if settings.CELERY.get("worker_pool") != "threads":
        yield Error("Celery's worker_pool must be `threads`", id="signoff.E007")
    if settings.CELERY.get("task_acks_late"):
        yield Error("task_acks_late must be off: a doorbell is not kept", id="signoff.E008")
    if settings.PRODUCTION and settings.CELERY["broker_url"].startswith(("memory:", "filesystem:")):
        yield Error("SIGNOFF_BROKER_URL names a broker for tests only", id="signoff.E009")


@_check
def site() -> Iterator[CheckMessage]:
    """Links in notifications and the checks of a form's origin need the public address."""
    parts = urlsplit(settings.SIGNOFF_BASE_URL)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        yield Error("SIGNOFF_BASE_URL must look like https://signoff.example.org", id="signoff.E010")
    elif settings.PRODUCTION and parts.scheme != "https" and parts.hostname not in LOOPBACK:
        yield Error("SIGNOFF_BASE_URL must be https in production", id="signoff.E011")


@_check
def test_modes() -> Iterator[CheckMessage]:
    """What only tests need is off in production."""
    if settings.PRODUCTION and settings.SIGNOFF_REPLAY_EVERY_STEP:
        yield Error("SIGNOFF_REPLAY_EVERY_STEP is for tests: it replays a run at each of its steps", id="signoff.E012")


@_check
def workflows() -> Iterator[CheckMessage]:
    """What the authors wrote can be loaded: without it no run would find its code."""
    try:
        registry.load_authors_modules()
    except AuthorsModuleBroken as error:
        yield Error(str(error), id="signoff.E013")


IDS = (*(f"signoff.E{number:03d}" for number in range(1, 14)), "signoff.W001")
