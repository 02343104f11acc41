"""A step at its position: replayed, stopped by its guard, executed, recorded."""

from __future__ import annotations

import functools
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from journal import codec, context, exceptions
from journal.connections import close_after_step, close_all
from journal.errors import Undecodable
from journal.guarding import Authority, Stop, await_grant, pass_guard
from journal.history import Asked, PastEvent
from journal.states import CallKind, EventKind, WaitKind
from journal.steps import Step
from journal.unwinding import Suspended
from journal.writer import Draft, OpenWait

if TYPE_CHECKING:
    from journal.execution import Execution


def perform_step(execution: Execution, step: Step[..., Any], arguments: dict[str, Any]) -> Any:
    """What the workflow gets of the call: the recorded outcome, or that of executing it now."""
    asked = asked_step(step, arguments)
    path = execution.position()
    site = execution.site(path, asked)
    if site is not None and site.outcome is not None:
        return settle(execution, step, site.outcome)
    if site is not None and step.guard is None and site.last(EventKind.APPROVAL_REQUESTED) is not None:
        execution.block("the code no longer asks for the approval that is recorded", path, asked)
    return start_step(execution, step, path, asked)


def start_step(execution: Execution, step: Step[..., Any], path: str, asked: Asked) -> Any:
    """Executes the step at `path`, once its guard lets it and its retry is due."""
    execution.check_may_go_on()
    effective = asked.text or "{}"
    if step.guard is not None:
        effective = pass_guard(Stop(execution, step, step.guard, path, asked))
    site = execution.history.at(path)
    failure = site.last(EventKind.STEP_FAILED) if site else None
    if failure is not None:
        _await_retry(execution, step, failure)
    attempt = failure.attempt + 1 if failure else 1
    key = execution.idempotency_key(path, step.name)
    info = context.StepInfo(idempotency_key=key, path=path, attempt=attempt, run_id=execution.info.id)
    draft = functools.partial(Draft, path=path, name=step.name, attempt=attempt, args=asked.text, first=site is None)
    try:
        result = codec.encode(_call_outside(execution, step, effective, info), name=f"the result of {step.name}")
        value = codec.decode(result, step.result_types)  # what a replay will see
    except BaseException as error:  # noqa: BLE001 - whatever a step raises is its outcome
        execution.resume_unwinding()  # it was no error of the step's: this worker stops, or has lost the run
        data = codec.encode(_failure(execution, step, attempt, error))
        execution.append(draft(EventKind.STEP_FAILED, data=data))
        outcome = codec.decode(data)  # what a replay will see
        return _after_failure(execution, step, path, attempt, outcome)
    execution.append(draft(EventKind.STEP_COMPLETED, data=f'{{"result":{result}}}'))
    return value


def authorise(execution: Execution, step: Step[..., Any], arguments: dict[str, Any]) -> Authority[Any]:
    """Asks the step's guard for this call, and waits until it may start; it starts when the authority is used."""
    assert step.guard is not None
    asked = asked_step(step, arguments)
    path = execution.position()
    site = execution.site(path, asked)
    refused = site.last(EventKind.STEP_REFUSED) if site else None
    if refused is not None and site is not None and site.last(EventKind.APPROVAL_GRANTED) is None:
        return settle(execution, step, refused)  # type: ignore[no-any-return]
    stop = Stop(execution, step, step.guard, path, asked)
    if site is None or site.outcome is None:
        execution.check_may_go_on()
        await_grant(stop)
    if site is not None and site.last(EventKind.STEP_STARTED) is not None:
        execution.leave_open.add(path)

    def start() -> Any:
        recorded = site.outcome if site is not None else None
        return settle(execution, step, recorded) if recorded else start_step(execution, step, path, asked)

    return Authority(stop, start)


def asked_step(step: Step[..., Any], arguments: dict[str, Any]) -> Asked:
    text = codec.encode(arguments, name=f"the arguments of {step.name}")
    return Asked(CallKind.STEP, step.name, text, step.argument_types, step.defaults)


def settle(execution: Execution, step: Step[..., Any], outcome: PastEvent) -> Any:
    """A recorded outcome, returned or raised."""
    try:
        data = outcome.read(step.result_types)
    except Undecodable as error:
        return execution.block(f"the recorded result of {step.name} cannot be read: {error}", outcome.path)
    if outcome.kind == EventKind.STEP_COMPLETED:
        return data["result"]
    return execution.raise_recorded(data["error"], outcome.path)


def _call_outside(execution: Execution, step: Step[..., Any], text: str, info: context.StepInfo) -> Any:
    """The step's function, on decoded copies, with no connection, transaction or lock held meanwhile."""
    arguments = codec.decode(text, step.argument_types)
    if any(rider.kind == EventKind.VALUE_DRAWN and rider.data for rider in execution.writer.riders):
        # A time that was read and only rides along would be another one after a crash, under the same idempotency key.
        execution.append()
    close_all()
    execution.check_may_go_on()
    with context.entered_step(info, execution.info):
        result = step.execute(arguments)
    close_after_step()
    return result


def _failure(execution: Execution, step: Step[..., Any], attempt: int, error: BaseException) -> dict[str, Any]:
    pause = step.retry.pause_after(attempt, error)
    now = execution.writer.anchor.now()
    return {
        "error": exceptions.record(error),
        "retry_at": None if pause is None else now + timedelta(seconds=pause),
    }


def _after_failure(execution: Execution, step: Step[..., Any], path: str, attempt: int, outcome: dict[str, Any]) -> Any:
    if outcome["retry_at"] is None:
        return execution.raise_recorded(outcome["error"], path)
    now = execution.writer.anchor.now()
    return execution.unwind(Suspended(_retry_wait(step, path, attempt, outcome, now)))


def _await_retry(execution: Execution, step: Step[..., Any], failure: PastEvent) -> None:
    data = failure.read()
    if execution.writer.anchor.now() < data["retry_at"]:
        execution.unwind(Suspended(_retry_wait(step, failure.path, failure.attempt, data, failure.at)))


def _retry_wait(step: Step[..., Any], path: str, attempt: int, data: dict[str, Any], since: datetime) -> OpenWait:
    error = data["error"]
    detail = f"attempt {attempt} failed: {error['type']}: {error['message']}"[:300]
    return OpenWait(WaitKind.RETRY, path, step.name, since, data["retry_at"], detail=detail)
