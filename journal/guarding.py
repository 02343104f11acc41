"""The way of a guarded step: asked for once, awaited, and started in the transaction that uses the answer up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import DatabaseError

from journal import codec, context, exceptions
from journal.errors import LeaseLost, NotInWorkflow, Tampered
from journal.history import Asked, PastEvent
from journal.hooks import Granted, Guard, GuardedCall, Pending, Refused
from journal.models import Run
from journal.states import EventKind, WaitKind
from journal.steps import Step
from journal.unwinding import Broken, Lost, Suspended
from journal.writer import Draft, OpenWait, Plan

if TYPE_CHECKING:
    from journal.execution import Execution

R = TypeVar("R")


@dataclass(frozen=True)
class Stop:
    """A call in front of its guard."""

    execution: Execution
    step: Step[..., Any]
    guard: Guard
    path: str
    asked: Asked

    @property
    def text(self) -> str:
        return self.asked.text or "{}"

    def last(self, kind: EventKind) -> PastEvent | None:
        site = self.execution.history.at(self.path)
        return site.last(kind) if site else None

    def call(self, run: Run) -> GuardedCall:
        writer = self.execution.writer
        return GuardedCall(
            run=run,
            generation=writer.generation,
            branch=writer.branch,
            path=self.path,
            attempt=1,
            step=self.step.name,
            args_text=self.text,
            args_digest=codec.digest(self.text),
            arguments=codec.decode(self.text, self.step.argument_types),
            idempotency_key=self.execution.idempotency_key(self.path, self.step.name),
        )

    def draft(self, kind: EventKind, data: dict[str, Any], args: str | None = None) -> Draft:
        """`args` keeps a text of its own with the event; else only the digest of what was asked."""
        return Draft(kind, self.path, self.step.name, 1, args or self.text, args is not None, codec.encode(data))


def pass_guard(stop: Stop) -> str:
    """The arguments to execute the step with. Waits, or raises what the guard refuses with.

    An execution after a crash finds the start recorded: it goes on with it and asks nobody again."""
    started = stop.last(EventKind.STEP_STARTED)
    if started is not None:
        return started.args or stop.text
    reference, since = _requested(stop)
    answer = _transact(stop, lambda run: _resolved(stop, run, reference, use=True))
    return _taken(stop, answer, reference, since).args_text


def await_grant(stop: Stop) -> None:
    """Waits until the step could start, without starting it."""
    if stop.last(EventKind.APPROVAL_GRANTED) is not None or stop.last(EventKind.STEP_STARTED) is not None:
        return
    reference, since = _requested(stop)
    answer = _transact(stop, lambda run: _resolved(stop, run, reference, use=False))
    _taken(stop, answer, reference, since)


def _requested(stop: Stop) -> tuple[str, datetime]:
    """The request's reference, and since when it is open; asked for now if this is the first time."""
    known = stop.last(EventKind.APPROVAL_REQUESTED)
    if known is not None:
        return known.read()["reference"], known.at

    def ask(run: Run) -> Plan[str]:
        with context.forbidden():  # a summary or a fact is words; a durable call in it would happen in here
            requested = stop.guard.request(stop.call(run))
        data = {
            "reference": requested.reference,
            "detail": requested.detail,
            "until": requested.due_at,
        } | requested.data
        return Plan(requested.reference, [stop.draft(EventKind.APPROVAL_REQUESTED, data, stop.text)])

    try:
        reference = _transact(stop, ask)
    except Exception as error:  # noqa: BLE001 - no such policy, a summary that raises: recorded, so that a replay sees the same
        recorded = exceptions.record(error)
        failed = {"error": recorded, "retry_at": None}
        stop.execution.append(stop.draft(EventKind.STEP_FAILED, failed, stop.text))
        return stop.execution.raise_recorded(recorded, stop.path)  # type: ignore[no-any-return]
    return reference, stop.execution.writer.anchor.now()


def _resolved(stop: Stop, run: Run, reference: str, *, use: bool) -> Plan[Pending | Granted | dict[str, Any]]:
    answer = stop.guard.resolve(stop.call(run), reference, use=use)
    takes = stop.execution.addressed_to(stop.path)
    if isinstance(answer, Pending):
        return Plan(answer)
    if isinstance(answer, Refused):
        recorded = exceptions.record(answer.error)
        drafts = [stop.draft(EventKind.STEP_REFUSED, {"error": recorded} | answer.data)]
        return Plan(recorded, drafts, takes=takes)
    if not use:
        return Plan(answer, [stop.draft(EventKind.APPROVAL_GRANTED, answer.data)], takes=takes)
    data = {"key": stop.execution.idempotency_key(stop.path, stop.step.name)} | answer.data
    changed = answer.args_text if answer.args_text != stop.text else None
    return Plan(answer, [stop.draft(EventKind.STEP_STARTED, data, changed)], takes=takes)


def _taken(stop: Stop, answer: Pending | Granted | dict[str, Any], reference: str, since: datetime) -> Granted:
    if isinstance(answer, Granted):
        return answer
    if isinstance(answer, Pending):
        wait = OpenWait(WaitKind.APPROVAL, stop.path, stop.step.name, since, answer.due_at, reference, answer.detail)
        return stop.execution.unwind(Suspended(wait))  # type: ignore[no-any-return]
    return stop.execution.raise_recorded(answer, stop.path)  # type: ignore[no-any-return]


def _transact(stop: Stop, decide: Any) -> Any:
    try:
        return stop.execution.transact(decide)
    except LeaseLost:
        return stop.execution.unwind(Lost())
    except DatabaseError as error:
        return stop.execution.unwind(Broken(f"{type(error).__name__}: {error}"))
    except Tampered as error:
        return stop.execution.block(str(error), stop.path)


class Authority(Generic[R]):
    """Leave to make one call, once: what require_approval returns. Only that call can use it."""

    def __init__(self, stop: Stop, start: Callable[[], R]) -> None:
        self._stop = stop
        self._start: Callable[[], R] | None = start

    def run(self) -> R:
        """Makes the call, at the position of its request. Raises NotInWorkflow a second time, and elsewhere."""
        if context.execution() is not self._stop.execution or self._start is None:
            raise NotInWorkflow("an approval authorises one call in its own run, once")
        start, self._start = self._start, None
        self._stop.execution.leave_open.discard(self._stop.path)
        return start()
