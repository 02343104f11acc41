"""The human side: requests, policies, decisions.

Names are handed on lazily (PEP 562): models cannot be imported while Django loads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from approvals.api import require_approval as require_approval
    from approvals.api import requires_approval as requires_approval
    from approvals.decisions import decide as decide
    from approvals.errors import Expired as Expired
    from approvals.errors import Rejected as Rejected

_HOMES = {
    "requires_approval": "approvals.api",
    "require_approval": "approvals.api",
    "decide": "approvals.decisions",
    "Expired": "approvals.errors",
    "Rejected": "approvals.errors",
}

__all__ = ["Expired", "Rejected", "decide", "require_approval", "requires_approval"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
