"""Messages to a run. Written in the sender's transaction; delivered at its COMMIT by a trigger (journal/sql).

Each carries a keyed digest over all that its sender said: a row that was put there by SQL is not taken for a message.
Its id and time are drawn beforehand and are part of it, so a copied row is none either.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from journal import bells, codec, statements
from journal.errors import RunEnded, UnknownRun
from journal.messages import mac
from journal.plaintext import checked_key, checked_signal, storable
from journal.states import ENDED, MessageKind

SEND = """
INSERT INTO journal_message (id, kind, name, key, generation, branch, path, attempt, payload, actor_id, actor_name,
                             sent_at, mac, run_id)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""

# One round trip for the run's status, the message's id, and the time.
PREPARE = """
SELECT nextval(pg_get_serial_sequence('journal_message', 'id')), journal_clock(),
       (SELECT status FROM journal_run WHERE id = %s)
"""


def send_signal(run_id: str, name: str, payload: Any, *, key: str | None, actor: tuple[int | None, str]) -> None:
    """A named signal. Raises UnknownRun, RunEnded (a run that ends before the commit: the message says so)."""
    checked_signal(name)
    checked_key(key, "a signal's key")
    text = codec.encode(payload, name="payload")
    message_id, at, status = _prepare(run_id)
    if status in ENDED:
        raise RunEnded(run_id, status)
    _insert(run_id, [message_id, MessageKind.SIGNAL, name, key, None, None, None, None, text, *actor, at])


def send_addressed(
    run_id: str, *, kind: MessageKind, generation: int, branch: int, path: str, attempt: int, payload: dict[str, Any]
) -> None:
    """A message for one position of the run. What it means is read elsewhere, under lock; it carries names only."""
    message_id, at, _status = _prepare(run_id)
    place = [generation, branch, path, attempt]
    _insert(run_id, [message_id, kind, "", None, *place, codec.encode(payload), None, "", at])


def _prepare(run_id: str) -> tuple[int, datetime, str]:
    """The id and time of the message to come, and the run's status. Raises UnknownRun."""
    if not storable(run_id):
        raise UnknownRun(run_id)
    ((message_id, at, status),) = statements.rows(PREPARE, [run_id])
    if status is None:
        raise UnknownRun(run_id)
    return message_id, at, status


def _insert(run_id: str, signed: list[Any]) -> None:
    statements.rows(SEND, [*signed, mac(run_id, signed), run_id])
    bells.ring_after_commit()
