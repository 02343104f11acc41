"""The states of a run and the kinds of events, waits and messages: the engine's whole vocabulary.

docs/engine.md draws the states; docs/events.md lists the kinds and what each holds (a test compares).
"""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    READY = "ready"  # a worker may claim it
    RUNNING = "running"  # a worker holds it
    WAITING = "waiting"  # rows in journal_wait say for what
    BLOCKED = "blocked"  # the code at hand does not fit the history
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class EventKind(StrEnum):
    RUN_STARTED = "run_started"
    RUN_COMPLETED = "run_completed"
    RUN_FAILED = "run_failed"
    RUN_BLOCKED = "run_blocked"
    STEP_STARTED = "step_started"
    STEP_COMPLETED = "step_completed"
    STEP_FAILED = "step_failed"
    STEP_REFUSED = "step_refused"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_GRANTED = "approval_granted"
    TIMER_SET = "timer_set"
    TIMER_FIRED = "timer_fired"
    SIGNAL_AWAITED = "signal_awaited"
    SIGNAL_RECEIVED = "signal_received"
    SIGNAL_TIMED_OUT = "signal_timed_out"
    VALUE_DRAWN = "value_drawn"


class CallKind(StrEnum):
    """What a workflow asks for at a position; an event's kind belongs to one of them."""

    STEP = "step"
    TIMER = "timer"
    SIGNAL = "signal"
    VALUE = "value"


CALL_OF_EVENT = {
    EventKind.STEP_STARTED: CallKind.STEP,
    EventKind.STEP_COMPLETED: CallKind.STEP,
    EventKind.STEP_FAILED: CallKind.STEP,
    EventKind.STEP_REFUSED: CallKind.STEP,
    EventKind.APPROVAL_REQUESTED: CallKind.STEP,
    EventKind.APPROVAL_GRANTED: CallKind.STEP,
    EventKind.TIMER_SET: CallKind.TIMER,
    EventKind.TIMER_FIRED: CallKind.TIMER,
    EventKind.SIGNAL_AWAITED: CallKind.SIGNAL,
    EventKind.SIGNAL_RECEIVED: CallKind.SIGNAL,
    EventKind.SIGNAL_TIMED_OUT: CallKind.SIGNAL,
    EventKind.VALUE_DRAWN: CallKind.VALUE,
}


class WaitKind(StrEnum):
    APPROVAL = "approval"
    SIGNAL = "signal"
    TIMER = "timer"
    RETRY = "retry"


class MessageKind(StrEnum):
    SIGNAL = "signal"  # named, kept until a wait takes it
    DECISION = "decision"  # addressed to one position; names an approval and nothing else


class Death(StrEnum):
    """How sure we are that a worker is dead (ENGINE.md 19)."""

    PROVED = "proved"
    SUSPECTED = "suspected"
    STALE = "stale"
