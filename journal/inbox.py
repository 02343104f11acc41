"""Messages to a run. Written in the sender's transaction; delivered at its COMMIT by a trigger (journal/sql)."""

from __future__ import annotations

from typing import Any

from journal import bells, codec, statements
from journal.errors import RunEnded, UnknownRun
from journal.models import Run
from journal.plaintext import checked
from journal.states import ENDED, MessageKind

SEND = """
INSERT INTO journal_message (run_id, kind, name, key, generation, branch, path, attempt, payload, actor_id, actor_name)
VALUES (%(run)s, %(kind)s, %(name)s, %(key)s, %(generation)s, %(branch)s, %(path)s, %(attempt)s, %(payload)s,
        %(actor)s, %(actor_name)s)
ON CONFLICT DO NOTHING
"""


def send_signal(run_id: str, name: str, payload: Any, *, key: str | None, actor: tuple[int | None, str]) -> None:
    """A named signal. Raises UnknownRun, RunEnded (a run that ends before the commit: the message says so)."""
    if not checked(name, "a signal's name"):
        raise ValueError("a signal has a name")
    status = Run.objects.filter(pk=run_id).values_list("status", flat=True).first()
    if status is None:
        raise UnknownRun(run_id)
    if status in ENDED:
        raise RunEnded(run_id, status)
    if key is not None:
        checked(key, "a signal's key")
    _send(run_id, MessageKind.SIGNAL, name, codec.encode(payload, name="payload"), key=key, actor=actor)


def send_addressed(
    run_id: str, *, kind: MessageKind, generation: int, branch: int, path: str, attempt: int, payload: dict[str, Any]
) -> None:
    """A message for one position of the run. What it means is read elsewhere, under lock; it carries names only."""
    place = {"generation": generation, "branch": branch, "path": path, "attempt": attempt}
    _send(run_id, kind, "", codec.encode(payload), place=place)


def _send(
    run_id: str,
    kind: MessageKind,
    name: str,
    payload: str,
    *,
    key: str | None = None,
    place: dict[str, Any] | None = None,
    actor: tuple[int | None, str] = (None, ""),
) -> None:
    nowhere = {"generation": None, "branch": None, "path": None, "attempt": None}
    params: dict[str, Any] = {"run": run_id, "kind": kind, "name": name, "key": key, "payload": payload}
    params |= {"actor": actor[0], "actor_name": actor[1]}
    statements.rows(SEND, params | (place or nowhere))
    bells.ring_after_commit()
