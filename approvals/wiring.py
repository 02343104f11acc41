"""Where the human side hooks into the engine and into Django. Imported once, when the apps are ready."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.db.models.signals import post_migrate

from approvals import policies
from approvals.closing import withdraw_open
from approvals.deadlines import expire_due
from approvals.errors import PolicyError
from approvals.people import seed_roles
from approvals.queries import run_concerns
from approvals.verifying import verify
from journal import access, hooks
from journal.states import WaitKind

CHECK_IDS = ("approvals.E001",)


@checks.register
def policies_can_be_read(**_: Any) -> list[CheckMessage]:
    """The policy files can be read and say what is supported."""
    try:
        policies.configured()
    except PolicyError as error:
        return [Error(str(error), id="approvals.E001")]
    return []


def _seed(**_: Any) -> None:
    seed_roles()


hooks.wait_due[WaitKind.APPROVAL] = expire_due
hooks.run_closed.append(withdraw_open)
hooks.chain_verifiers.append(verify)
access.also_visible.append(run_concerns)
# With every `migrate`, after Django has made the permissions: a migration would run before they exist.
post_migrate.connect(_seed, sender=apps.get_app_config("approvals"), dispatch_uid="approvals.roles")
