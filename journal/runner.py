"""One claim of one run: replay it, go on from where its history ends, and put down what came of it."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from journal import bells, codec, exceptions, hooks, registry, statements, writer
from journal.context import entered_execution
from journal.errors import LeaseLost, Tampered, Undecodable, Unstorable
from journal.execution import Execution, Holder
from journal.loading import load
from journal.models import Message, Run
from journal.reconnecting import persistently
from journal.states import EventKind, RunStatus
from journal.unwinding import Again, Broken, HandedBack, Lost, Mismatched, Suspended, Unwinding
from journal.writer import Draft, InboxGrew, Plan

log = logging.getLogger("journal.runner")


def execute_claimed(run_id: str, epoch: int, holder: Holder) -> None:
    """Runs a claimed run until it waits, ends, blocks, or is another worker's.

    Whatever goes wrong in the engine itself blocks this one run, visibly; it never stops the worker."""
    try:
        while _replay(run_id, epoch, holder):
            pass  # its inbox grew while it was going to sleep: look again
    except LeaseLost:
        _let_go(run_id)
    except Exception as error:
        log.exception("the engine failed on run %s; the run is blocked", run_id)
        _block_unread(run_id, epoch, holder, f"the engine failed: {type(error).__name__}: {error}")


def _let_go(run_id: str) -> None:
    log.warning("run %s is held by another worker now; this one lets go of it", run_id)


def _replay(run_id: str, epoch: int, holder: Holder) -> bool:
    """One pass from the top. True if it must be done again."""
    try:
        loaded = persistently(lambda: load(run_id, epoch, holder), f"loading run {run_id}")
    except Tampered as error:
        _block_unread(run_id, epoch, holder, str(error))
        return False
    workflow = registry.workflow_named(loaded.info.workflow, loaded.info.version)
    execution = Execution(workflow, loaded, holder, on_stuck=_put_to_sleep)
    leaving = _run_body(execution)
    if isinstance(leaving, Suspended):
        return _suspend(execution, leaving)
    if isinstance(leaving, Mismatched):
        _block(execution, leaving.difference)
    elif isinstance(leaving, Lost):
        _let_go(run_id)
    elif isinstance(leaving, Broken):
        log.error("run %s is blocked: %s", run_id, leaving)
        _block_unread(run_id, epoch, holder, f"the engine could not write: {leaving}")
    elif isinstance(leaving, HandedBack):
        hand_back(run_id, epoch)
    elif isinstance(leaving, Again):
        if execution.writer.riders:
            execution.writer.append()
        return True
    return False


def _run_body(execution: Execution) -> Unwinding | None:
    """Runs the workflow's function; None if the run has ended with it."""
    try:
        arguments = execution.workflow.read_input(execution.loaded.input_text)
    except Undecodable as unreadable:
        return Mismatched({"reason": f"the input cannot be read: {unreadable}", "path": ""})
    result: Any = None
    error: BaseException | None = None
    with entered_execution(execution):
        try:
            result = execution.workflow.run(arguments)
        except BaseException as raised:  # noqa: BLE001 - whatever a body raises is its end
            error = raised
        leaving = execution.close()
        if leaving is not None and error is not leaving:
            _report_swallowed(execution, leaving)
        _clear_frames(error, leaving)
    if leaving is not None:
        return leaving
    early = execution.ends_early("fails" if error else "returns", error.__traceback__ if error else None)
    if early is not None:
        return early
    try:
        _finish(execution, result, error)
    except LeaseLost:
        return Lost()
    return None


def _clear_frames(*errors: BaseException | None) -> None:
    """Ends the frames of the body, while it is still this run's: a generator that one of them holds would otherwise be
    closed by the collector in the middle of another run, and what stands in its `finally` happen there."""
    seen: set[int] = set()
    waiting = list(errors)
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        waiting += [error.__context__, error.__cause__]


def _report_swallowed(execution: Execution, unwinding: Unwinding) -> None:
    """A bare `except:` or a `finally` with return caught the suspension; it holds all the same."""
    frames = list(traceback.extract_tb(unwinding.__traceback__))
    where = f"{frames[0].filename}:{frames[0].lineno}" if frames else "an unknown line"
    log.warning(
        "workflow %s swallowed its suspension at %s: catch Exception, not everything (run %s)",
        execution.workflow.code, where, execution.info.id,
    )  # fmt: skip


def _put_to_sleep(execution: Execution, suspended: Suspended) -> None:
    """The body swallows its suspension in a loop that never ends: the run sleeps all the same, this thread is lost."""
    frames = traceback.extract_tb(suspended.__traceback__)
    where = f"{frames[0].filename}:{frames[0].lineno}" if frames else "an unknown line"
    log.error("workflow %s swallows its suspension for ever at %s; a slot is lost", execution.workflow.code, where)
    _suspend(execution, suspended)


def _suspend(execution: Execution, suspended: Suspended) -> bool:
    change = writer.suspending_change(execution.holder.fingerprint)
    try:
        execution.writer.append(
            *suspended.drafts, change=change, waits=[suspended.wait], inbox=execution.loaded.inbox_count
        )
    except InboxGrew:
        return True
    return False


def _block(execution: Execution, difference: dict[str, Any]) -> None:
    log.warning("run %s is blocked: %s (%s)", execution.info.id, difference["reason"], difference.get("line", ""))
    execution.writer.riders.clear()  # what this code drew belongs to no history
    execution.writer.append(
        Draft(EventKind.RUN_BLOCKED, data=codec.encode(difference)),
        change=writer.blocked_change(difference, execution.holder.fingerprint),
    )


def _block_unread(run_id: str, epoch: int, holder: Holder, reason: str) -> None:
    """Blocks a run whose journal cannot even be continued: without an event, which would have nothing to chain to."""
    change = writer.blocked_change({"reason": reason, "path": ""}, holder.fingerprint)
    statements.rows(
        f"UPDATE journal_run SET seq = seq{change.sql} WHERE id = %s AND epoch = %s AND status = 'running'",  # noqa: S608
        [*change.params, run_id, epoch],
    )


def _finish(execution: Execution, result: Any, error: BaseException | None) -> None:
    """Writes the end, closes what is open, and marks what nobody took, in one transaction."""
    if error is None:
        try:
            text = codec.encode(result, name="the result of the workflow")
            codec.decode(text, execution.workflow.result_types)
        except (Unstorable, Undecodable) as unusable:
            error = unusable
    if error is None:
        status, shown = RunStatus.COMPLETED, None
        draft = Draft(EventKind.RUN_COMPLETED, data=f'{{"result":{text}}}')
    else:
        status, recorded = RunStatus.FAILED, exceptions.record(error)
        shown = exceptions.describe(recorded, execution.origin_of(error))
        draft = Draft(EventKind.RUN_FAILED, data=codec.encode({"error": recorded, "path": shown["path"]}))

    def end(run: Run) -> Plan[None]:
        Message.objects.filter(run=run, taken_seq=None, fate=None).update(fate="run_ended")
        for closed in hooks.run_closed:
            closed(run)
        return Plan(None, [draft], writer.ending_change(execution.holder.fingerprint, status, shown))

    execution.writer.transact(end)
    log.info("run %s (%s) %s", execution.info.id, execution.info.workflow, status)


def hand_back(run_id: str, epoch: int) -> None:
    """Makes a held run ready again, for another worker."""
    if persistently(lambda: statements.rows(statements.HAND_BACK, [run_id, epoch]), f"handing back run {run_id}"):
        bells.ring()
