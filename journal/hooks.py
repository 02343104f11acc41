"""Where the engine calls upward. It knows nothing of who registers here (DESIGN.md: imports run one way)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from journal.models import Run


@dataclass(frozen=True)
class GuardedCall:
    """A durable call that a guard stops, at its position."""

    run: Run
    """The row, locked in the transaction at hand."""
    generation: int
    branch: int
    path: str
    attempt: int
    step: str
    args_text: str
    """Codec text of the arguments by name, in the order of the signature."""
    args_digest: bytes
    arguments: dict[str, Any]
    """The same, decoded."""
    idempotency_key: str


@dataclass(frozen=True)
class Requested:
    """The guard has asked; `data` goes into the event `approval_requested`."""

    reference: str
    detail: str
    due_at: datetime | None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """Nothing has been decided yet."""

    detail: str
    due_at: datetime | None


@dataclass(frozen=True)
class Granted:
    """The step may start, with these arguments. `data` goes into the event `step_started`."""

    args_text: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """The step will not start; `error` is raised in the workflow. `data` goes into `step_refused`."""

    error: Exception
    data: dict[str, Any] = field(default_factory=dict)


class Guard(Protocol):
    """What stands before a step. Both methods run inside the transaction that writes the event, the run locked."""

    def request(self, call: GuardedCall) -> Requested: ...

    def resolve(self, call: GuardedCall, reference: str, *, use: bool) -> Pending | Granted | Refused:
        """The answer as it is now. With `use` a grant uses the authority up, in this transaction.

        Without, it only says that the step could start now (require_approval waits for that).
        Raises journal.errors.Tampered if what it was asked about has been altered: the run is blocked."""
        ...


@dataclass(frozen=True)
class WaitDue:
    """A wait whose time has come."""

    run_id: str
    generation: int
    branch: int
    path: str
    reference: str


wait_due: dict[str, Callable[[WaitDue], None]] = {}
"""By kind of wait: called by a sweep, outside any transaction, in place of simply waking the run."""

run_closed: list[Callable[[Run], None]] = []
"""Called inside the transaction that ends a run, the run locked."""

chain_verifiers: list[Callable[[Run], list[str]]] = []
"""Called by verify_journal for each run: what does not fit, one line each."""
