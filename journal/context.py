"""Which run and which step the code at hand belongs to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model

from journal.errors import InWorkflow, NotInWorkflow

if TYPE_CHECKING:
    from journal.execution import Execution


@dataclass(frozen=True)
class RunInfo:
    """What a workflow and its steps may know of their run."""

    id: str
    key: str | None
    workflow: str
    version: int
    labels: dict[str, Any]
    actor_id: int | None
    actor_name: str
    owner: str
    epoch: int = field(repr=False)

    @property
    def actor(self) -> Any:
        """The starter: a user, the name of a service, or None. Looks the user up."""
        if self.actor_id is None:
            return self.actor_name or None
        return get_user_model()._default_manager.get(pk=self.actor_id)


@dataclass(frozen=True)
class StepInfo:
    """What a step may know of the call at hand."""

    idempotency_key: str
    """The same for every execution of this call; what an outside system tells repetitions by."""
    path: str
    attempt: int
    """From 1; an execution lost to a crash does not count."""
    run_id: str


_execution: ContextVar[Execution | None] = ContextVar("signoff_execution", default=None)
_forbidden: ContextVar[bool] = ContextVar("signoff_forbidden", default=False)
_step: ContextVar[tuple[StepInfo, RunInfo] | None] = ContextVar("signoff_step", default=None)


def execution() -> Execution:
    """The execution whose frame this is. Raises NotInWorkflow elsewhere, inside a step too."""
    found = _execution.get()
    if found is None or _step.get() is not None or _forbidden.get():
        raise NotInWorkflow()
    if found.thread != threading.get_ident():
        raise NotInWorkflow("durable calls work only in the workflow's own thread")
    return found


def in_workflow() -> bool:
    """Whether this is a workflow's own frame; also where a durable call in it is forbidden, or in another thread."""
    return _execution.get() is not None and _step.get() is None


def in_run() -> bool:
    """Whether this is a workflow's frame or one of its steps."""
    return _execution.get() is not None or _step.get() is not None


def refuse_in_workflow(what: str) -> None:
    if in_workflow():
        raise InWorkflow(f"{what} would happen again on each replay; call it in a step")


def current_step() -> StepInfo:
    """The step at hand. Raises NotInWorkflow outside one."""
    found = _step.get()
    if found is None:
        raise NotInWorkflow("current_step() works only inside a step that a run executes")
    return found[0]


def current_run() -> RunInfo:
    """The run at hand, in a workflow or in one of its steps. Raises NotInWorkflow elsewhere."""
    step = _step.get()
    if step is not None:
        return step[1]
    return execution().info


@contextmanager
def forbidden() -> Iterator[None]:
    """Inside, no step of the run's can be called, not even as a plain function."""
    token = _forbidden.set(True)
    try:
        yield
    finally:
        _forbidden.reset(token)


@contextmanager
def entered_execution(found: Execution) -> Iterator[None]:
    token = _execution.set(found)
    try:
        yield
    finally:
        _execution.reset(token)


@contextmanager
def entered_step(info: StepInfo, run: RunInfo) -> Iterator[None]:
    token = _step.set((info, run))
    try:
        yield
    finally:
        _step.reset(token)
