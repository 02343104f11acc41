"""sleep, sleep_until and wait_for_signal: waits that cost a row and no process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from journal import codec, context
from journal.errors import Tampered, Undecodable, WaitTimeout
from journal.execution import Execution, InboxMessage
from journal.history import Asked, PastEvent
from journal.loading import load_inbox
from journal.plaintext import checked_signal
from journal.retries import Seconds, seconds
from journal.states import CallKind, EventKind, MessageKind, WaitKind
from journal.unwinding import Suspended
from journal.writer import Draft, InboxGrew, OpenWait

LONGEST_WAIT = 1_000 * 366 * 24 * 3600.0
FIRST, LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""In every time zone a date that can be written."""


def sleep(duration: Seconds) -> None:
    """Waits for `duration` (seconds or timedelta) on the database's clock."""
    length = _length(duration)
    execution = context.execution()
    _sleep(execution, lambda: execution.writer.anchor.now() + length)


def sleep_until(moment: datetime) -> None:
    """Waits until `moment`, an aware datetime, on the database's clock."""
    if moment.utcoffset() is None:
        raise ValueError("sleep_until takes a datetime with a time zone")
    if not FIRST <= moment <= LAST:
        raise ValueError("sleep_until takes a time between the years 1 and 9999")
    _sleep(context.execution(), lambda: moment)


def _length(duration: Seconds) -> timedelta:
    """Checked before a position is taken: an error that the body catches must leave no trace in the history."""
    length = seconds(duration)
    if not -LONGEST_WAIT <= length <= LONGEST_WAIT:  # NaN fits neither
        raise ValueError("a wait is at most 1,000 years long")
    return timedelta(seconds=length)


def _sleep(execution: Execution, until: Any) -> None:
    path = execution.position()
    site = execution.site(path, Asked(CallKind.TIMER, "sleep"))
    if site is not None and site.outcome is not None:
        return
    execution.check_may_go_on()
    opened: list[Draft] = []
    if site is None:
        since = execution.writer.anchor.now()
        due_at = until()
        opened = [Draft(EventKind.TIMER_SET, path, "sleep", data=codec.encode({"until": due_at}))]
    else:
        since, due_at = site.first.at, site.first.read()["until"]
    if execution.writer.anchor.now() < due_at:
        execution.unwind(Suspended(OpenWait(WaitKind.TIMER, path, "sleep", since, due_at), *opened))
    for draft in [*opened, Draft(EventKind.TIMER_FIRED, path, "sleep")]:
        execution.writer.ride(draft)


def wait_for_signal(name: str, *, timeout: Seconds | None = None) -> Any:
    """The payload of the next signal of that name, also of one that has come already.

    Raises WaitTimeout if none has arrived within `timeout` (seconds or timedelta) from here. What counts is
    when the signal arrived, not when a worker had time to look."""
    checked_signal(name)
    length = None if timeout is None else _length(timeout)
    execution = context.execution()
    path = execution.position()
    site = execution.site(path, Asked(CallKind.SIGNAL, name))
    if site is not None and site.outcome is not None:
        return _settle(execution, site.outcome)
    execution.check_may_go_on()
    opened: list[Draft] = []
    if site is None:
        since = execution.writer.anchor.now()
        until = None if length is None else since + length
        opened = [Draft(EventKind.SIGNAL_AWAITED, path, name, data=codec.encode({"until": until}))]
    else:
        since, until = site.first.at, site.first.read()["until"]
    return _take(execution, OpenWait(WaitKind.SIGNAL, path, name, since, until), opened)


def _take(execution: Execution, wait: OpenWait, opened: list[Draft]) -> Any:
    """The signal, if it is there; the end of the time, if that is past; else sleeps."""
    inbox, count = execution.loaded.inbox, execution.loaded.inbox_count
    while True:
        # What is there when the wait is opened has come already, whatever this process takes the time to be.
        message = next((found for found in inbox if _answers(found, wait) and (opened or _in_time(found, wait))), None)
        if message is not None:
            return _receive(execution, wait, opened, message)
        if wait.due_at is None or execution.writer.anchor.now() < wait.due_at:
            return execution.unwind(Suspended(wait, *opened))
        timed_out = Draft(EventKind.SIGNAL_TIMED_OUT, wait.path, wait.name, data=codec.encode({"until": wait.due_at}))
        try:
            execution.append(*opened, timed_out, inbox=count)
        except InboxGrew as grew:  # perhaps by the signal, in time
            count, inbox = grew.count, _looked_again(execution, wait.path)
            continue
        return _raise_timeout(execution, wait.name, wait.due_at, wait.path)


def _looked_again(execution: Execution, path: str) -> list[InboxMessage]:
    try:
        return load_inbox(execution.info.id)
    except Tampered as error:
        return execution.block(str(error), path)  # type: ignore[no-any-return]


def _answers(message: InboxMessage, wait: OpenWait) -> bool:
    return message.kind == MessageKind.SIGNAL and message.name == wait.name


def _in_time(message: InboxMessage, wait: OpenWait) -> bool:
    return wait.due_at is None or message.arrived_at <= wait.due_at


def _receive(execution: Execution, wait: OpenWait, opened: list[Draft], message: InboxMessage) -> Any:
    value = _read(execution, message.payload, wait.path)
    data = f'{{"payload":{message.payload},"message":{message.id},"actor":{codec.encode(message.actor_name)}}}'
    execution.append(*opened, Draft(EventKind.SIGNAL_RECEIVED, wait.path, wait.name, data=data), takes=[message.id])
    if message in execution.loaded.inbox:
        execution.loaded.inbox.remove(message)
    return value


def _settle(execution: Execution, outcome: PastEvent) -> Any:
    data = outcome.data or "{}"
    found = _read(execution, data, outcome.path)
    if outcome.kind == EventKind.SIGNAL_RECEIVED:
        return found["payload"]
    return _raise_timeout(execution, outcome.name, found["until"], outcome.path)


def _raise_timeout(execution: Execution, name: str, until: datetime, path: str) -> Any:
    error = WaitTimeout(f"no signal {name!r} came until {until:%Y-%m-%d %H:%M:%S %Z}")
    execution.remember_raised(error, path)
    raise error


def _read(execution: Execution, text: str, path: str) -> Any:
    try:
        return codec.decode(text)
    except Undecodable as error:
        return execution.block(f"a signal's payload cannot be read: {error}", path)
