"""Each state as people see it: a shape, a word, and a colour that says the same once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journal.states import RunStatus, WaitKind


@dataclass(frozen=True)
class Mark:
    icon: str
    """A symbol of templates/parts/icons.html."""
    word: str
    colour: str = ""
    """A class of static/css/components.css, or nothing for grey."""


_RUN = {
    RunStatus.READY: Mark("worker", "Waiting for a worker"),
    RunStatus.RUNNING: Mark("running", "Running", "is-blue"),
    RunStatus.BLOCKED: Mark("blocked", "Blocked", "is-red"),
    RunStatus.COMPLETED: Mark("completed", "Completed", "is-green"),
    RunStatus.FAILED: Mark("failed", "Failed", "is-red"),
    RunStatus.CANCELLED: Mark("cancelled", "Cancelled"),
}
_WAIT = {
    WaitKind.APPROVAL: Mark("person", "Waiting for a person", "is-amber"),
    WaitKind.SIGNAL: Mark("clock", "Waiting for a signal"),
    WaitKind.TIMER: Mark("clock", "Waiting for time"),
    WaitKind.RETRY: Mark("clock", "Waiting for time"),
}
WAIT_ORDER = (WaitKind.APPROVAL, WaitKind.SIGNAL, WaitKind.RETRY, WaitKind.TIMER)
"""Of several open waits the first of these names the run's state."""


def run_mark(status: str, wait_kind: str | None) -> Mark:
    """The mark of a run; `wait_kind` is that of its most telling wait."""
    if status == RunStatus.WAITING:
        return _WAIT[WaitKind(wait_kind)] if wait_kind else Mark("clock", "Waiting")
    return _RUN[RunStatus(status)]


@dataclass(frozen=True)
class Blockage:
    """Why a run is blocked, as far as it decides what a person does about it."""

    differs: bool
    """Whether the code asks for something else than is recorded; else the reason says it all."""
    way_out: str
    command: bool = False
    """Whether verify_journal tells more."""


_RETRIED = "Code that has met this does not try the run again; a deployment with changed code does, once."


def blockage(found: Mapping[str, Any]) -> Blockage:
    """By what is stored on the row of a blocked run."""
    reason = str(found.get("reason", ""))
    if found.get("asked") or reason.startswith("the code "):
        return Blockage(
            True,
            "put the code back as it was, and the run goes on by itself. Or give the changed workflow a new version,"
            " so that this run keeps the old one.",
        )
    if reason.startswith("its worker died"):
        return Blockage(False, f"find out from the workers' logs what ends them, and correct it. {_RETRIED}")
    if "cannot be read" in reason:
        return Blockage(False, f"put the code back that reads what it has written. {_RETRIED}")
    if reason.startswith("the engine "):
        return Blockage(False, f"the worker's log has the whole error. Correct its cause. {_RETRIED}")
    return Blockage(
        False,
        "put back SIGNOFF_CHAIN_KEY if it was changed, or the rows from a backup, until verify_journal finds nothing."
        f" {_RETRIED} To see what does not fit:",
        command=True,
    )
