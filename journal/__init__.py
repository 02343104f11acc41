"""The engine: runs, steps, waits and their journal. What authors use is named here (docs/concepts.md).

The names are handed on lazily (PEP 562): models cannot be imported while Django loads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from journal import runs
    from journal.context import current_run, current_step
    from journal.errors import InWorkflow, KeyConflict, NotInWorkflow, StepFailed, WaitTimeout
    from journal.facts import progress, set_labels
    from journal.retries import Retry
    from journal.steps import step
    from journal.values import now, random, uuid4
    from journal.waits import sleep, sleep_until, wait_for_signal
    from journal.workflows import workflow

_HOMES = {
    "InWorkflow": "errors",
    "KeyConflict": "errors",
    "NotInWorkflow": "errors",
    "Retry": "retries",
    "StepFailed": "errors",
    "WaitTimeout": "errors",
    "current_run": "context",
    "current_step": "context",
    "now": "values",
    "progress": "facts",
    "random": "values",
    "set_labels": "facts",
    "sleep": "waits",
    "sleep_until": "waits",
    "step": "steps",
    "uuid4": "values",
    "wait_for_signal": "waits",
    "workflow": "workflows",
}

__all__ = [
    "InWorkflow",
    "KeyConflict",
    "NotInWorkflow",
    "Retry",
    "StepFailed",
    "WaitTimeout",
    "current_run",
    "current_step",
    "now",
    "progress",
    "random",
    "runs",
    "set_labels",
    "sleep",
    "sleep_until",
    "step",
    "uuid4",
    "wait_for_signal",
    "workflow",
]


def __getattr__(name: str) -> Any:
    if name == "runs":
        return import_module("journal.runs")
    if name in _HOMES:
        return getattr(import_module(f"journal.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'journal' has no attribute {name!r}")
