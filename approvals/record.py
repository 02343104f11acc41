"""What is written about one approval: its entries, chained, and the seal over its row.

Each entry's digest covers the entry and the digest before it; the row's `head` covers the last digest, their count and
every column that means something. Both are keyed (journal.chain), so whoever can only write to the database cannot make
them fit. Rows that do not belong to the chain are passed over, and named by `verify`: one forged row more must not
keep the others from being read. A record that has lost a row, or whose row says something else, is Tampered.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db.models import DateTimeField, Func

from approvals.models import Approval, Entry, Revision
from approvals.policies import Policy, spec_digest
from approvals.states import EntryKind, Status, Via
from approvals.verdicts import Vote
from journal import chain
from journal.errors import Tampered

log = logging.getLogger("approvals.record")

_WRITTEN = (
    "status",
    "revision",
    "deadline_at",
    "decided_at",
    "decided_by",
    "decided_by_name",
    "decided_via",
    "reason",
    "used_at",
    "void_reason",
    "count",
    "head",
)
"""The columns that ever change."""

# A column that comes later is sealed only where it has a value, or the seals of all older rows would break.
_SEALED = (
    "id",
    "run_id",
    "generation",
    "branch",
    "path",
    "attempt",
    "idempotency_key",
    "action",
    "risk",
    "summary",
    "starter_id",
    "starter_name",
    "owner_name",
    "status",
    "revision",
    "created_at",
    "deadline_at",
    "decided_at",
    "decided_by_id",
    "decided_by_name",
    "decided_via",
    "reason",
    "used_at",
    "void_reason",
)


@dataclass
class Record:
    """An approval with what is written about it. Changed only with the run and the approval locked."""

    approval: Approval
    revision: Revision
    now: datetime
    """The database's clock when this was read: after the locks, where there are any."""
    entries: list[Entry] = field(default_factory=list)
    last_n: int = 0
    """The highest number in use, also by a row that does not belong here."""
    _unsaved: list[Entry] = field(default_factory=list)

    @property
    def policy(self) -> Policy:
        return Policy.read(self.approval.policy.spec)

    @property
    def votes(self) -> list[Vote]:
        return [
            Vote(entry.revision, entry.actor_id, entry.verdict)
            for entry in self.entries
            if entry.kind == EntryKind.VOTE and entry.actor_id is not None
        ]

    @property
    def is_overdue(self) -> bool:
        """Whether it waits although its deadline is over."""
        deadline = self.approval.deadline_at
        return self.approval.status == Status.WAITING and deadline is not None and self.now >= deadline

    def add(self, kind: EntryKind, *, via: Via, data: dict[str, Any] | None = None, **said: Any) -> Entry:
        """Appends an entry on the current revision; `save` writes it."""
        self.last_n += 1
        entry = Entry(
            approval=self.approval,
            n=self.last_n,
            kind=kind,
            revision=self.approval.revision,
            via=via,
            at=self.now,
            data=json.dumps(data or {}, sort_keys=True),
            **said,
        )
        entry.digest = entry_digest(entry, self.entries[-1].digest if self.entries else b"")
        self.entries.append(entry)
        self._unsaved.append(entry)
        return entry

    def close(self, status: Status, *, via: Via, data: dict[str, Any] | None = None, **said: Any) -> None:
        """Enters the verdict, and gives it to the row: `actor`, `actor_name`, `reason`, … as in an entry."""
        entry = self.add(EntryKind.VERDICT, via=via, data=data, verdict=status, **said)
        approval = self.approval
        approval.status = status
        approval.decided_at = self.now
        approval.decided_by_id = entry.actor_id
        approval.decided_by_name = entry.actor_name
        approval.decided_via = via
        approval.reason = entry.reason

    def save(self) -> None:
        """Writes the row, sealed, with the entries and the revision that are new."""
        approval = self.approval
        approval.count = len(self.entries)
        approval.head = seal(approval, self.entries[-1].digest)
        if approval._state.adding:  # noqa: SLF001 - Django's own mark for a row that is not in the database yet
            approval.save(force_insert=True)
        else:
            approval.save(update_fields=_WRITTEN)
        if self.revision._state.adding:  # noqa: SLF001
            self.revision.save(force_insert=True)
        Entry.objects.bulk_create(self._unsaved)
        self._unsaved.clear()


def lock(approval_id: str) -> Record | None:
    """The record with its approval locked; the caller holds the run's lock. None if there is no such approval.

    Raises Tampered."""
    locked = Approval.objects.select_for_update(of=("self",), no_key=True).select_related("policy")
    approval = locked.filter(pk=approval_id).first()
    if approval is None:
        return None
    # In statements of their own: the lock's snapshot is from before the wait for it.
    revision, now = _read_revision(approval)
    return _checked(approval, revision, list(Entry.objects.filter(approval=approval).order_by("n")), now)


def read(approval_id: str) -> Record:
    """The record without locks, for showing. The row and its entries come in one statement: read one after the
    other, a decision in between would look like an alteration. Raises Tampered."""
    entries = list(Entry.objects.filter(approval=approval_id).select_related("approval__policy").order_by("n"))
    if not entries:
        raise Tampered(f"approval {approval_id} has no entries")
    approval = entries[0].approval
    revision, now = _read_revision(approval)
    return _checked(approval, revision, entries, now)


def _read_revision(approval: Approval) -> tuple[Revision | None, datetime]:
    """The current revision, and the database's clock, in one round trip."""
    clock = Func(function="journal_clock", output_field=DateTimeField())
    found = Revision.objects.annotate(now=clock).filter(approval=approval, number=approval.revision).first()
    return (found, found.now) if found else (None, approval.created_at)


def _checked(approval: Approval, revision: Revision | None, entries: list[Entry], now: datetime) -> Record:
    """The record, if it is as Signoff wrote it. Raises Tampered, and tells the operators' log."""
    findings, own = examine(approval, revision, entries)
    if findings:
        log.error("approval %s was altered: %s", approval.pk, "; ".join(findings), extra={"action": "approval_altered"})
        raise Tampered(f"approval {approval.pk}: {'; '.join(findings)}")
    assert revision is not None
    return Record(approval, revision, now, own, last_n=entries[-1].n)


def examine(approval: Approval, revision: Revision | None, entries: Iterable[Entry]) -> tuple[list[str], list[Entry]]:
    """What does not fit, one line each, and the entries that do."""
    own, foreign = split(entries)
    findings = []
    if len(own) != approval.count or not own or bytes(approval.head) != seal(approval, own[-1].digest):
        findings.append("its row and its entries do not fit their seal")
    if spec_digest(approval.policy.spec) != bytes(approval.policy.digest):
        findings.append(f"policy {approval.policy} does not fit its digest")
    if revision is None:
        findings.append(f"revision {approval.revision} is missing")
    elif own and not was_requested(own, revision):
        findings.append(f"revision {revision.number} is not what was asked")
    if foreign and approval.status == Status.WAITING:
        # Once it is decided they change nothing; before, one may stand where the verdict is to go.
        findings.append(f"entry {foreign[0].n} does not belong to it")
    return findings, own


def split(entries: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The entries that continue the chain, and the others, in the order of their numbers."""
    own: list[Entry] = []
    foreign: list[Entry] = []
    previous = b""
    for entry in entries:
        if bytes(entry.digest) == entry_digest(entry, previous):
            own.append(entry)
            previous = bytes(entry.digest)
        else:
            foreign.append(entry)
    return own, foreign


def was_requested(own: Iterable[Entry], revision: Revision) -> bool:
    """Whether one of the entries asked for exactly this revision."""
    wanted = revision_digest(revision)
    return any(
        entry.kind == EntryKind.REQUESTED
        and entry.revision == revision.number
        and json.loads(entry.data)["seal"] == wanted
        for entry in own
    )


# ---------------------------------------------------------------- digests


def entry_digest(entry: Entry, previous: bytes | memoryview) -> bytes:
    return chain.mac(
        "approval entry",
        bytes(previous),
        entry.approval_id,
        entry.n,
        entry.kind,
        entry.revision,
        entry.verdict,
        entry.actor_id,
        entry.actor_name,
        json.dumps(entry.groups),
        entry.reason,
        entry.via,
        entry.authenticated_by,
        _moment(entry.at),
        entry.data,
    )


def revision_digest(revision: Revision) -> str:
    """Over all that a revision says; its entry "requested" keeps it."""
    return chain.mac(
        "approval revision",
        revision.approval_id,
        revision.number,
        revision.args,
        revision.summary,
        revision.facts,
        bytes(revision.digest),
        revision.proposer_id,
        revision.proposer_name,
        _moment(revision.created_at),
    ).hex()


def seal(approval: Approval, last: bytes | memoryview) -> bytes:
    columns = [_part(getattr(approval, name)) for name in _SEALED]
    return chain.mac("approval", bytes(last), approval.count, bytes(approval.policy.digest), *columns)


def _part(value: Any) -> Any:
    return _moment(value) if isinstance(value, datetime) else value


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
