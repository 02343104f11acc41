"""Reading a claimed run: the row, its history in one query, its inbox."""

from __future__ import annotations

import json
from typing import Any

from journal import chain, messages, statements
from journal.clock import Anchor
from journal.context import RunInfo
from journal.errors import LeaseLost, Tampered
from journal.execution import Holder, InboxMessage, Loaded
from journal.history import History, PastEvent
from journal.states import EventKind, MessageKind
from journal.writer import Writer

LOAD_INBOX = statements.LOAD_INBOX.format(signed=messages.SIGNED)


def load(run_id: str, epoch: int, holder: Holder) -> Loaded:
    """The run as it is now, for the holder of `epoch`. Raises LeaseLost, and Tampered if its head does not fit.

    The row is read before the inbox: messages that come in between are in the list and not in the count, so
    the worst is one look too many."""
    (row,) = statements.rows(statements.LOAD_RUN, [run_id])
    (_, workflow, version, key, labels, actor_id, actor_name, owner, seq, generation) = row[:10]
    (branch, inbox_count, recorded_by, head, held_epoch, status, moment) = row[10:]
    anchor = Anchor(moment)  # now: a long history would else make this clock slow, and the waits short
    if (held_epoch, status) != (epoch, "running"):
        raise LeaseLost()
    events = [past_event(found) for found in statements.rows(statements.LOAD_HISTORY, [run_id])]
    if len(events) != seq or chain.seal(events[-1].digest, seq, generation, branch) != bytes(head):
        raise Tampered(f"the journal of run {run_id} does not end where its row says: verify_journal tells more")
    history = History(events, generation)
    if history.started is None or history.started.args is None:
        raise Tampered(f"the journal of run {run_id} does not begin with its start")
    return Loaded(
        info=RunInfo(run_id, key, workflow, version, json.loads(labels), actor_id, actor_name, owner, epoch),
        history=history,
        inbox=load_inbox(run_id),
        inbox_count=inbox_count,
        writer=Writer(
            run_id=run_id,
            epoch=epoch,
            seq=seq,
            digest=events[-1].digest,
            place=(generation, branch),
            anchor=anchor,
            fingerprint=holder.fingerprint,
        ),
        recorded_by=recorded_by,
        input_text=history.started.args,
    )


def load_inbox(run_id: str) -> list[InboxMessage]:
    """The messages that nothing has taken yet. Raises Tampered for one that nobody sent."""
    return [_message(run_id, row) for row in statements.rows(LOAD_INBOX, [run_id])]


def _message(run_id: str, row: tuple[Any, ...]) -> InboxMessage:
    *signed, arrived_at = row
    if not messages.is_genuine(run_id, signed):
        raise Tampered(f"message {row[0]} to run {run_id} was not sent by Signoff, or was altered")
    message_id, kind, name, _key, generation, branch, path, _attempt, payload, _actor, actor_name, *_ = signed
    place = None if path is None else (generation, branch, path)
    return InboxMessage(message_id, MessageKind(kind), name, place, payload, actor_name, arrived_at)


def past_event(row: tuple[Any, ...]) -> PastEvent:
    """A row of LOAD_HISTORY."""
    seq, generation, branch, path, attempt, kind, name, args_digest, args, data_hash, data, at, digest = row
    return PastEvent(
        seq, generation, branch, path, attempt, EventKind(kind), name,
        args_digest and bytes(args_digest), args, data_hash and bytes(data_hash), data, at, bytes(digest),
    )  # fmt: skip
