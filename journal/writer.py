"""The one hand that writes a run's events: fenced by the epoch, chained, and sure of what was committed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import transaction

from journal import chain, codec, statements
from journal.clock import Anchor
from journal.errors import LeaseLost
from journal.locking import lock_run
from journal.models import Run
from journal.plaintext import cleaned, cleaned_all
from journal.reconnecting import TRANSIENT, Patience, retried
from journal.states import EventKind, WaitKind

T = TypeVar("T")

INLINE = 2_000
"""Characters up to which a body stays in its event's row; larger ones are stored once per run."""


@dataclass(frozen=True)
class Draft:
    """An event that is about to be written."""

    kind: EventKind
    path: str = ""
    name: str = ""
    attempt: int = 0
    args: str | None = None
    """Codec text; its digest is kept with each event, the text with the first of its position."""
    first: bool = True
    data: str | None = None
    """Codec text of what the event holds."""


@dataclass(frozen=True)
class OpenWait:
    kind: WaitKind
    path: str
    name: str
    since: datetime
    due_at: datetime | None = None
    reference: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Change:
    """What an append does to the run's row besides, in the same statement."""

    sql: str
    params: tuple[Any, ...] = ()


GOES_ON = ", blocked = NULL, blocked_by = '{}', fingerprint = %s, deaths = 0, deaths_alone = 0"
SUSPENDS = GOES_ON + ", status = 'waiting', worker_id = NULL, state_at = journal_clock()"
BLOCKS = (
    ", status = 'blocked', worker_id = NULL, state_at = journal_clock(), blocked = %s::jsonb,"
    " blocked_by = array_append(blocked_by, %s::text)"
)
ENDS = (
    GOES_ON + ", status = %s, worker_id = NULL, state_at = journal_clock(), ended_at = journal_clock(), "
    "error = %s::jsonb, progress = ''"
)


@dataclass(frozen=True)
class Plan(Generic[T]):
    """What a transaction decided to write, and what it answers."""

    result: T
    drafts: Sequence[Draft] = ()
    change: Change | None = None
    takes: Sequence[int] = ()


class InboxGrew(Exception):
    """A message came since the inbox was read: look again before sleeping or timing out."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class Writer:
    """Appends to one run for the holder of one epoch. Not shared between threads."""

    def __init__(
        self,
        *,
        run_id: str,
        epoch: int,
        seq: int,
        digest: bytes,
        place: tuple[int, int],
        anchor: Anchor,
        fingerprint: str,
    ) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self.seq = seq
        self.digest = digest
        self.generation, self.branch = place
        self.anchor = anchor
        self.fingerprint = fingerprint
        self.riders: list[Draft] = []

    def ride(self, draft: Draft) -> None:
        """Keeps an event without an effect for the next append: it costs no commit of its own."""
        self.riders.append(draft)

    def append(
        self,
        *drafts: Draft,
        change: Change | None = None,
        waits: Sequence[OpenWait] = (),
        takes: Sequence[int] = (),
        inbox: int | None = None,
    ) -> None:
        """Writes the riders and `drafts` in one statement and commits.

        `inbox`: only if no message has come since that count, else InboxGrew. Raises LeaseLost."""
        built = self._build(drafts)
        change = change or Change(GOES_ON, (self.fingerprint,))
        self._persist(lambda: self._execute(built, change, waits, takes, inbox), built)

    def transact(self, decide: Callable[[Run], Plan[T]]) -> T:
        """Runs `decide` with the run locked, and writes its events in the same transaction."""
        answer: list[T] = []
        built = _Built([], self.digest, self.seq)

        def attempt() -> None:
            nonlocal built
            answer.clear()
            with transaction.atomic():
                run = lock_run(self.run_id)
                self._check_holder(run)
                plan = decide(run)
                answer.append(plan.result)
                built = self._build(plan.drafts)
                if built.rows:
                    self._execute(built, plan.change or Change(GOES_ON, (self.fingerprint,)), (), plan.takes, None)

        self._persist(lambda: retried(attempt, f"a transaction of run {self.run_id}"), lambda: built)
        return answer[0]

    def _check_holder(self, run: Run) -> None:
        if (run.epoch, run.seq, run.status) != (self.epoch, self.seq, "running"):
            raise LeaseLost()

    def _seal(self, built: _Built) -> bytes:
        return chain.seal(built.digest, built.seq, self.generation, self.branch)

    def _build(self, drafts: Sequence[Draft]) -> _Built:
        built = _Built([], self.digest, self.seq)
        for draft in [*self.riders, *drafts]:
            built.add(draft, self)
        return built

    def _execute(
        self, built: _Built, change: Change, waits: Sequence[OpenWait], takes: Sequence[int], inbox: int | None
    ) -> None:
        condition = "" if inbox is None else " AND inbox_count = %s"
        fence = statements.FENCE.format(changes=change.sql, condition=condition)
        params: list[Any] = [len(built.rows), self._seal(built), *change.params]
        params += [self.run_id, self.epoch, self.seq, *([] if inbox is None else [inbox])]
        params += [list(built.payloads), list(built.payloads.values())]
        more = ""
        if waits:
            more += statements.INSERT_WAITS.format(rows=", ".join([statements.WAIT_ROW] * len(waits)))
            for wait in waits:
                params += [self.generation, self.branch, wait.path, wait.kind, wait.name, wait.reference]
                params += [cleaned(wait.detail), wait.since, wait.due_at]
        if takes:
            more += statements.TAKE_MESSAGES
            params += [built.seq, list(takes)]
        if built.rows:
            more += statements.INSERT_EVENTS.format(rows=", ".join([statements.EVENT_ROW] * len(built.rows)))
            for row in built.rows:
                params += row
        found = statements.rows(statements.APPEND.format(fence=fence, more=more), params)
        if not found:
            self._explain(inbox)
        self.anchor.set(found[0][1])

    def _explain(self, inbox: int | None) -> None:
        found = statements.rows(
            "SELECT inbox_count FROM journal_run WHERE id = %s AND epoch = %s AND seq = %s AND status = 'running'",
            [self.run_id, self.epoch, self.seq],
        )
        if found and inbox is not None and found[0][0] != inbox:
            raise InboxGrew(found[0][0])
        raise LeaseLost()

    def _persist(self, attempt: Callable[[], None], built: _Built | Callable[[], _Built]) -> None:
        """Runs `attempt` until it is known to be committed; a connection that falls is not a failure."""
        if transaction.get_connection().in_atomic_block:
            raise RuntimeError("the journal is never written inside somebody else's transaction")
        patience = Patience(f"writing to run {self.run_id}")
        unsure = False
        while True:
            try:
                if unsure and self._was_committed(built() if callable(built) else built):
                    break
                unsure = False
                attempt()
                break
            except TRANSIENT as error:
                unsure = True
                patience.wait(error)
        written = built() if callable(built) else built
        if written.rows:
            self.seq, self.digest = written.seq, written.digest
            self.riders.clear()

    def _was_committed(self, built: _Built) -> bool:
        """After an unknown commit: looks at the head under the row's lock (an unlocked look can be too early)."""
        with transaction.atomic():
            found = statements.rows(statements.RECONCILE, [self.run_id])
            if not found or found[0][0] != self.epoch:
                raise LeaseLost()
            _epoch, seq, head, status = found[0]
        if built.rows and seq == built.seq and bytes(head) == self._seal(built):
            return True
        if seq != self.seq or status != "running":
            raise LeaseLost()
        return False


class _Built:
    """Rows ready to be written, the chain's digest after them, and the large bodies they refer to."""

    def __init__(self, rows: list[list[Any]], digest: bytes, seq: int) -> None:
        self.rows = rows
        self.digest = digest
        self.seq = seq
        self.payloads: dict[bytes, str] = {}

    def add(self, draft: Draft, writer: Writer) -> None:
        self.seq += 1
        args_digest = None if draft.args is None else codec.digest(draft.args)
        data_hash = None if draft.data is None else codec.digest(draft.data)
        at = writer.anchor.now()
        self.digest = chain.event_digest(
            self.digest,
            writer.run_id,
            self.seq,
            (writer.generation, writer.branch, draft.path, draft.attempt),
            draft.kind,
            draft.name,
            args_digest,
            data_hash,
            at,
        )
        position = [self.seq, writer.generation, writer.branch, draft.path, draft.attempt, draft.kind, draft.name]
        arguments = [args_digest, self._body(args_digest, draft.args if draft.first else None)]
        self.rows.append([*position, *arguments, data_hash, self._body(data_hash, draft.data), at, self.digest])

    def _body(self, digest: bytes | None, body: str | None) -> str | None:
        if digest is None or body is None or len(body) <= INLINE:
            return body
        self.payloads[digest] = body
        return None


def blocked_change(difference: dict[str, Any], fingerprint: str) -> Change:
    return Change(BLOCKS, (json.dumps(cleaned_all(difference)), fingerprint))


def ending_change(fingerprint: str, status: str, error: dict[str, Any] | None) -> Change:
    return Change(ENDS, (fingerprint, status, None if error is None else json.dumps(cleaned_all(error))))


def suspending_change(fingerprint: str) -> Change:
    return Change(SUSPENDS, (fingerprint,))
