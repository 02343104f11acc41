"""A run and its events as plain JSON: what show_run prints and others build on (docs/events.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from django.db.models import Case, F, Value, When

from journal import codec, statements
from journal.models import Event, Run, Wait, Worker
from journal.states import EventKind, RunStatus

LATEST = datetime(9999, 12, 31, tzinfo=UTC)
"""PostgreSQL knows later times (and infinity); Python does not."""

RESULT = """
SELECT coalesce(e.data, p.body) FROM journal_event e
LEFT JOIN journal_payload p ON p.run_id = e.run_id AND p.hash = e.data_hash AND e.data IS NULL
WHERE e.run_id = %s AND e.kind = %s ORDER BY e.seq DESC LIMIT 1
"""


def describe_run(run: Run, *, events: bool = True) -> dict[str, Any]:
    """Everything about a run; large values included."""
    return {
        "id": run.pk,
        "workflow": run.workflow,
        "version": run.version,
        "key": run.key,
        "status": run.status,
        "waiting_for": waiting_for(run),
        "result": _result(run),
        "error": error_of(run),
        "parent": None,
        "children": [],
        "events": [describe_event(event) for event in _events(run)] if events else [],
    }


def describe_event(event: Event) -> dict[str, Any]:
    """One event; its arguments, where it has them, are in its data as `args`."""
    data = dict(codec.plain(event.data)) if event.data else {}
    if event.args:
        data["args"] = codec.plain(event.args)
    return {
        "seq": event.seq,
        "generation": event.generation,
        "branch": event.branch,
        "path": event.path or None,
        "attempt": event.attempt,
        "kind": event.kind,
        "name": event.name,
        "at": event.at.isoformat(),
        "data": data,
    }


def waiting_for(run: Run) -> list[dict[str, Any]]:
    """What the run waits for now. That no live worker has its code is computed here; it is not a state."""
    if run.status == RunStatus.WAITING:
        return [
            _waiting(
                wait["kind"],
                wait["path"],
                wait["since"],
                wait["until"],
                wait["detail"] or wait["reference"] or wait["name"],
            )
            for wait in readable_waits(run.pk)
        ]
    if run.status == RunStatus.READY and not workers_for(run.code):
        return [_waiting("worker", None, run.state_at, None, f"no live worker has {run.code}")]
    return []


def readable_waits(run_id: str) -> Iterable[Mapping[str, Any]]:
    """A run's waits in the order of their paths; `until` is when one is due, at most LATEST."""
    due_at = Case(When(due_at__gt=LATEST, then=Value(LATEST)), default=F("due_at"))
    found = Wait.objects.filter(run_id=run_id).order_by("path").annotate(until=due_at)
    shown = found.values("generation", "branch", "path", "kind", "name", "since", "until", "detail", "reference")
    return cast("Iterable[Mapping[str, Any]]", shown)


def _waiting(kind: str, path: str | None, since: Any, until: Any, detail: str) -> dict[str, Any]:
    shown = {"since": since.isoformat(), "until": until.isoformat() if until else None}
    return {"kind": kind, "path": path} | shown | {"detail": detail}


def workers_for(code: str) -> bool:
    """Whether a live worker has the code for it."""
    return Worker.objects.filter(capabilities__contains=[code], stopped_at=None, death=None).exists()


def error_of(run: Run) -> dict[str, Any] | None:
    """Why it failed, or what blocks it."""
    if run.status == RunStatus.BLOCKED and run.blocked:
        return {"type": "Blocked", "message": blocked_sentence(run.blocked), "path": run.blocked.get("path") or None}
    return dict(run.error) if run.error else None


def blocked_sentence(difference: dict[str, Any]) -> str:
    """The difference in one sentence."""
    said = [difference["reason"]]
    for side in ("recorded", "asked"):
        call = difference.get(side)
        if call:
            said.append(f"{side}: {call['kind']} {call['name']} at {call['path']}")
    if difference.get("line"):
        said.append(f"in {difference['line']}")
    return "; ".join(said)


def _result(run: Run) -> Any:
    if run.status != RunStatus.COMPLETED:
        return None
    found = statements.rows(RESULT, [run.pk, EventKind.RUN_COMPLETED])
    return codec.plain(found[0][0])["result"]


def _events(run: Run) -> Iterable[Event]:
    for row in statements.rows(statements.LOAD_HISTORY, [run.pk]):
        seq, generation, branch, path, attempt, kind, name, args_digest, args, data_hash, data, at, digest = row
        yield Event(
            run_id=run.pk, seq=seq, generation=generation, branch=branch, path=path, attempt=attempt, kind=kind,
            name=name, args_digest=args_digest, args=args, data_hash=data_hash, data=data, at=at, digest=digest,
        )  # fmt: skip
