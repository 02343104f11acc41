"""One replay of a workflow: positions, recorded outcomes, and the first call that has none."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, TypeVar

from django.db import DatabaseError

from journal import differences, exceptions
from journal.context import RunInfo
from journal.errors import LeaseLost, Undecodable
from journal.history import Asked, History, PastEvent, Site, fits
from journal.models import Run
from journal.perform import authorise, perform_step
from journal.states import MessageKind
from journal.steps import Step
from journal.unwinding import Again, Broken, Ended, HandedBack, Lost, Mismatched, Suspended, Unwinding
from journal.workflows import Workflow
from journal.writer import Draft, Plan, Writer

T = TypeVar("T")

STUCK_AFTER = 1_000
"""How often a body may catch its unwinding and go on before it is taken to do so for ever."""


class Holder(Protocol):
    """The worker that executes, as far as an execution needs to know it."""

    @property
    def draining(self) -> bool: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def replays_every_step(self) -> bool:
        """For tests: whether to suspend after every durable call, so that all that is done is done on a replay too."""
        ...

    def check_alive(self) -> None:
        """Raises LeaseLost if this worker's last good heartbeat is older than its lease."""
        ...


@dataclass(frozen=True)
class InboxMessage:
    id: int
    kind: MessageKind
    name: str
    place: tuple[int, int, str] | None
    """Generation, branch and path that it is addressed to; a signal is not."""
    payload: str
    actor_name: str
    arrived_at: datetime


@dataclass(frozen=True)
class Loaded:
    """A run as it was read after its claim."""

    info: RunInfo
    history: History
    inbox: list[InboxMessage]
    inbox_count: int
    writer: Writer
    recorded_by: str
    """Fingerprint of the code that last wrote to the run."""
    input_text: str


class Execution:
    """What the durable calls of one replay go through."""

    def __init__(
        self,
        workflow: Workflow[..., Any],
        loaded: Loaded,
        holder: Holder,
        *,
        on_stuck: Callable[[Execution, Suspended], None],
    ) -> None:
        self.thread = threading.get_ident()
        self.workflow = workflow
        self.loaded = loaded
        self.info = loaded.info
        self.history = loaded.history
        self.writer = loaded.writer
        self.holder = holder
        self.leave_open: set[str] = set()
        """Positions whose step is recorded as started, and whose authority the code has not used yet."""
        self._raised: list[tuple[BaseException, str]] = []
        self._counter = 0
        self._wrote = False
        self._on_stuck = on_stuck
        self._resumed = 0
        self.unwinding: Unwinding | None = None

    # ---- positions

    def position(self) -> str:
        """The next position in source order. While unwinding there is none."""
        self.resume_unwinding()
        if self.holder.replays_every_step and self._wrote:
            self.unwind(Again())
        self._counter += 1
        return str(self._counter)

    def site(self, path: str, asked: Asked) -> Site | None:
        """What is recorded at `path`, or None if the history ends before it. Unwinds if it is something else."""
        site = self.history.reach(path)
        if site is None:
            if self.history.unreached is not None:
                self.block("the code asks for a call that is not recorded here", path, asked)
            return None
        try:
            fitting = fits(site, asked)
        except Undecodable as error:
            self.block(f"what is recorded cannot be read: {error}", path, asked)
        if not fitting:
            self.block("the code asks for something else than is recorded", path, asked)
        return site

    @property
    def replaying(self) -> bool:
        """Whether recorded history lies ahead."""
        return self.history.unreached is not None

    # ---- what comes from outside

    def addressed_to(self, path: str) -> list[int]:
        """Ids of the messages for that position."""
        place = (self.writer.generation, self.writer.branch, path)
        return [message.id for message in self.loaded.inbox if message.place == place]

    # ---- leaving

    def unwind(self, leaving: Unwinding) -> Any:
        """Leaves the workflow's frame, for good."""
        self.unwinding = leaving
        raise leaving

    def resume_unwinding(self) -> None:
        if self.unwinding is not None:
            self._resumed += 1
            if self._resumed >= STUCK_AFTER:
                self._be_stuck(self.unwinding)
            raise self.unwinding

    def _be_stuck(self, leaving: Unwinding) -> None:
        """A body that catches everything in a loop cannot be stopped; it must not hold up its run, nor a processor."""
        if self._resumed == STUCK_AFTER and isinstance(leaving, Suspended):
            self._on_stuck(self, leaving)
        time.sleep(1)

    def close(self) -> Unwinding | None:
        """The body is through; from here on its frames can do nothing. How it was left, if not by its own end."""
        leaving = self.unwinding
        self.unwinding = leaving or Ended()
        return leaving

    def block(self, reason: str, path: str, asked: Asked | None = None) -> Any:
        """Leaves because code and history do not fit."""
        return self.unwind(Mismatched(differences.difference(self, reason, path, asked)))

    def check_may_go_on(self) -> None:
        """Before anything new is done: not on a worker that goes down, and not without the lease."""
        if self.holder.draining:
            self.unwind(HandedBack())
        try:
            self.holder.check_alive()
        except LeaseLost:
            self.unwind(Lost())

    def ends_early(self, how: str, trace: TracebackType | None = None) -> Mismatched | None:
        """A mismatch, if recorded history is left over when the body is through."""
        ahead = self.history.unreached
        path = ahead.path if ahead is not None else min(self.leave_open, default=None)
        if path is None:
            return None
        reason = f"the code {how} before its history does"
        return Mismatched(differences.difference(self, reason, path) | {"line": differences.line_of_body(self, trace)})

    # ---- steps

    def perform(self, step: Step[..., Any], arguments: dict[str, Any]) -> Any:
        """A step's call in the workflow's own frame."""
        return perform_step(self, step, arguments)

    def authorise(self, step: Step[..., Any], arguments: dict[str, Any]) -> Any:
        """Leave to make a call later, from the step's guard."""
        return authorise(self, step, arguments)

    def append(self, *drafts: Draft, takes: list[int] | None = None, inbox: int | None = None) -> None:
        """Writes and commits, or leaves the frame because another worker holds the run."""
        try:
            self.writer.append(*drafts, takes=takes or (), inbox=inbox)
        except LeaseLost:
            self.unwind(Lost())
        except DatabaseError as error:
            self.unwind(Broken(f"{type(error).__name__}: {error}"))
        self._wrote = True

    def transact(self, decide: Callable[[Run], Plan[T]]) -> T:
        """Decides and writes in one transaction with the run locked. What was written counts for calls to come."""
        plans: list[Plan[T]] = []

        def deciding(run: Run) -> Plan[T]:
            plans.append(decide(run))
            return plans[-1]

        result = self.writer.transact(deciding)
        for draft in plans[-1].drafts:
            self._wrote = True
            self.history.note(self._as_past(draft))
        return result

    def _as_past(self, draft: Draft) -> PastEvent:
        place = (0, self.writer.generation, self.writer.branch, draft.path, draft.attempt, draft.kind, draft.name)
        args = draft.args if draft.first else None
        return PastEvent(*place, None, args, None, draft.data, self.writer.anchor.now(), b"")

    def idempotency_key(self, path: str, step_name: str, effect: int = 0) -> str:
        """The same for each execution of one call; another for each generation, position and step.

        `effect` counts the new effects that an operator asked for at this position."""
        place = (self.info.id, self.writer.generation, path, step_name, effect)
        return hashlib.sha256("\n".join(map(str, place)).encode()).hexdigest()[:40]

    def raise_recorded(self, recorded: dict[str, Any], path: str) -> Any:
        """Raises what a position recorded, and remembers where it came from."""
        error = exceptions.rebuild(recorded)
        self.remember_raised(error, path)
        raise error

    def remember_raised(self, error: BaseException, path: str) -> None:
        self._raised.append((error, path))

    def origin_of(self, error: BaseException) -> str | None:
        """The position that an error came from, or None if the body itself raised it."""
        return next((path for raised, path in self._raised if raised is error), None)
