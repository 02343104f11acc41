"""Starting runs, sending them signals, and looking at them, from outside."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from journal import bells, chain, codec, context, exceptions, inbox, models, registry, statements
from journal.clock import db_now
from journal.errors import KeyConflict, ResultTimeout, RunFailed, Undecodable, UnknownRun
from journal.facts import check_labels
from journal.ids import new_id
from journal.plaintext import checked, checked_key, storable
from journal.retries import Seconds, seconds
from journal.states import ENDED, EventKind, RunStatus
from journal.workflows import Workflow
from journal.writer import INLINE

INSERT = """
WITH run AS (
    INSERT INTO journal_run (id, workflow, version, code, key, input_hash, status, state_at, claim_at, priority, labels,
        progress, actor_id, actor_name, owner, created_at, seq, head, generation, branch, inbox_count, epoch,
        fingerprint, blocked_by)
    VALUES (%(id)s, %(workflow)s, %(version)s, %(code)s, %(key)s, %(hash)s, 'ready', %(at)s,
        journal_claim_at(%(priority)s::smallint, false), %(priority)s, %(labels)s::jsonb, '', %(actor)s, %(actor_name)s,
        %(owner)s, %(at)s, 1, %(head)s, 0, 0, 0, 0, '', '{}')
    ON CONFLICT DO NOTHING RETURNING id
), payload AS (
    INSERT INTO journal_payload (run_id, hash, body)
    SELECT id, %(hash)s, %(large)s::text FROM run WHERE %(large)s::text IS NOT NULL
), event AS (
    INSERT INTO journal_event (run_id, seq, generation, branch, path, attempt, kind, name, args_digest, args,
                               data_hash, data, at, digest)
    SELECT id, 1, 0, 0, '', 0, %(kind)s, %(workflow)s, %(hash)s, %(small)s::text,
           %(data_hash)s, %(data)s, %(at)s, %(digest)s
    FROM run
)
SELECT id FROM run
"""


@dataclass(frozen=True)
class Run:
    """A run as it was when it was looked at."""

    id: str
    workflow: str
    version: int
    key: str | None
    status: RunStatus
    labels: dict[str, Any]
    actor_name: str
    owner: str
    progress: str
    error: dict[str, Any] | None
    created_at: datetime
    ended_at: datetime | None


def start(
    workflow: Workflow[..., Any],
    /,
    *args: Any,
    key: str | None = None,
    actor: Any = None,
    labels: dict[str, Any] | None = None,
    priority: int = 0,
    **kwargs: Any,
) -> Run:
    """Starts a run, or finds the one that `key` already started with the same input.

    May be called inside the caller's own transaction: rolled back, nothing happened; committed, the run cannot be
    lost. `actor` is the starter: a user, or the name of a service. A point of `priority` is worth ten minutes of
    waiting for a worker. Raises KeyConflict, TypeError, ValueError, Unstorable, InWorkflow; none of them harms the
    caller's transaction. Inside it a deadlock is the caller's; else it is done again here.
    """
    context.refuse_in_workflow("runs.start")
    if type(priority) is not int:
        raise TypeError(f"priority is a whole number, not a {type(priority).__name__}")
    if not -100 <= priority <= 100:
        raise ValueError("priority is from -100 to 100")
    checked_key(key)
    labels = {} if labels is None else labels
    check_labels(labels)
    identity = identify(actor)
    text = workflow.encode_input(args, kwargs)
    while True:
        made = _insert(workflow, text, key, identity, labels, priority)
        if made is not None:
            bells.ring_after_commit()
            return get(made)
        if key is not None:
            known = models.Run.objects.filter(key=key).first()
            if known is not None:
                return _same_or_conflict(known, workflow, text, key)
        # the random id was taken, or the run of this key is gone again: once more


def _insert(
    workflow: Workflow[..., Any],
    text: str,
    key: str | None,
    identity: tuple[int | None, str],
    labels: dict[str, Any],
    priority: int,
) -> str | None:
    run_id, at, input_hash = new_id(), db_now(), codec.digest(text)
    actor_id, actor_name = identity
    facts = {
        "version": workflow.version,
        "key": key,
        "actor": actor_id,
        "actor_name": actor_name,
        "owner": workflow.owner,
    }
    data = codec.encode(facts)
    data_hash = codec.digest(data)
    place = (0, 0, "", 0)
    digest = chain.event_digest(b"", run_id, 1, place, EventKind.RUN_STARTED, workflow.name, input_hash, data_hash, at)
    small = text if len(text) <= INLINE else None
    found = statements.rows(
        INSERT,
        {
            "id": run_id, "workflow": workflow.name, "version": workflow.version, "code": workflow.code, "key": key,
            "hash": input_hash, "at": at, "priority": priority, "labels": json.dumps(labels), "actor": actor_id,
            "actor_name": actor_name, "owner": workflow.owner, "head": chain.seal(digest, 1),
            "large": None if small is not None else text, "small": small, "kind": EventKind.RUN_STARTED,
            "data_hash": data_hash, "data": data, "digest": digest,
        },
    )  # fmt: skip
    return found[0][0] if found else None


def identify(actor: Any) -> tuple[int | None, str]:
    """A user's id and name; a service has a name only; nobody has neither. Raises TypeError, ValueError."""
    if actor is None or isinstance(actor, str):
        return None, checked(actor or "", "actor")
    if not hasattr(actor, "get_username"):
        raise TypeError(f"actor is a user or the name of a service, not a {type(actor).__name__}")
    return actor.pk, checked(actor.get_username(), "actor")


def _same_or_conflict(known: models.Run, workflow: Workflow[..., Any], text: str, key: str) -> Run:
    """The same workflow and input, compared as values, or a conflict. The version may have moved on."""
    if known.workflow == workflow.name and (
        bytes(known.input_hash) == codec.digest(text) or _same_input(known, workflow, text)
    ):
        return _frozen(known)
    raise KeyConflict(key, known.pk)


def _same_input(known: models.Run, workflow: Workflow[..., Any], text: str) -> bool:
    try:
        return workflow.is_same_input(input_text(known.pk), text)
    except Undecodable:
        return False


def input_text(run_id: str) -> str:
    """Codec text of the run's input, by parameter. Raises UnknownRun."""
    if not storable(run_id):
        raise UnknownRun(run_id)
    found = statements.rows(
        "SELECT coalesce(e.args, p.body) FROM journal_event e LEFT JOIN journal_payload p"
        " ON p.run_id = e.run_id AND p.hash = e.args_digest AND e.args IS NULL WHERE e.run_id = %s AND e.seq = 1",
        [run_id],
    )
    if not found:
        raise UnknownRun(run_id)
    return str(found[0][0])


def signal(run_id: str, name: str, payload: Any = None, *, key: str | None = None, actor: Any = None) -> None:
    """Sends the run a named message. It is kept until a wait of that name takes it, also if none waits yet.

    May be called inside the caller's transaction: it counts from its commit, and holds up nobody before. Sent
    again with the same `key`, it is the same message. Raises UnknownRun, RunEnded, TypeError, ValueError, Unstorable,
    InWorkflow; none of them harms the caller's transaction. Inside it a deadlock is the caller's; else it is done
    again here.
    """
    context.refuse_in_workflow("runs.signal")
    inbox.send_signal(run_id, name, payload, key=key, actor=identify(actor))


def get(run_id: str) -> Run:
    """Raises UnknownRun."""
    return _frozen(row_of(run_id))


def row_of(run_id: str) -> models.Run:
    """The row. Raises UnknownRun, also for text that cannot be an id."""
    found = models.Run.objects.filter(pk=run_id).first() if storable(run_id) else None
    if found is None:
        raise UnknownRun(run_id)
    return found


def find(
    *,
    workflow: str | None = None,
    key: str | None = None,
    labels: dict[str, Any] | None = None,
    status: str | None = None,
) -> QuerySet[models.Run]:
    """The runs that all of the given fit, newest first. Raises TypeError, ValueError for what no run can have."""
    for what, text in {"workflow": workflow, "key": key, "status": status}.items():
        if text is not None:
            checked(text, what)
    check_labels(labels or {})
    found = models.Run.objects.order_by("-created_at", "-id")
    given = {"workflow": workflow, "key": key, "labels__contains": labels, "status": status}
    return found.filter(**{name: value for name, value in given.items() if value is not None})


def result(run_id: str, timeout: Seconds | None = None) -> Any:
    """Waits until the run has ended; returns its result, or raises its error.

    `timeout` in seconds or as timedelta; then ResultTimeout. Refused in a workflow and inside a transaction,
    which would not see the end."""
    context.refuse_in_workflow("runs.result")
    if transaction.get_connection().in_atomic_block and timeout != 0:
        raise RuntimeError("runs.result waits for another transaction's commit; call it outside yours")
    give_up_at = None if timeout is None else time.monotonic() + seconds(timeout)
    pause = 0.01
    while True:
        run = get(run_id)
        if run.status in ENDED:
            return _end_of(run)
        if give_up_at is not None and time.monotonic() >= give_up_at:
            raise ResultTimeout()
        time.sleep(pause)
        pause = min(0.25, pause * 1.5)


def _end_of(run: Run) -> Any:
    kinds = [EventKind.RUN_COMPLETED, EventKind.RUN_FAILED]
    found = statements.rows(
        "SELECT coalesce(e.data, p.body) FROM journal_event e LEFT JOIN journal_payload p"
        " ON p.run_id = e.run_id AND p.hash = e.data_hash AND e.data IS NULL"
        " WHERE e.run_id = %s AND e.kind = ANY(%s) ORDER BY e.seq DESC LIMIT 1",
        [run.id, kinds],
    )
    types = registry.result_types(run.workflow, run.version)
    data = codec.decode(found[0][0], types) if found else {}
    if run.status == RunStatus.COMPLETED:
        return data["result"]
    if run.status == RunStatus.FAILED:
        raise exceptions.rebuild(data["error"])
    raise RunFailed(f"run {run.id} was {run.status}", type_name=str(run.status), path=None)


def _frozen(found: models.Run) -> Run:
    return Run(
        id=found.pk,
        workflow=found.workflow,
        version=found.version,
        key=found.key,
        status=RunStatus(found.status),
        labels=found.labels,
        actor_name=found.actor_name,
        owner=found.owner,
        progress=found.progress,
        error=found.error,
        created_at=found.created_at,
        ended_at=found.ended_at,
    )
