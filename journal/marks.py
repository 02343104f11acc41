"""Each state as people see it: a shape, a word, and a colour that says the same once more."""

from __future__ import annotations

from dataclasses import dataclass

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
