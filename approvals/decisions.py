"""decide: the only way to decide. Browser and command call it, and nothing else writes a vote.

One transaction: lock the run, then the approval; look at the database's clock; check; write the vote and what it
comes to; send the run its wake-up. Of two that come together the second waits for the first's lock, and then sees
its decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from approvals import verdicts
from approvals.deadlines import expire
from approvals.errors import (
    AlreadyDecided,
    Altered,
    DeadlinePassed,
    InRun,
    InTransaction,
    NotPermitted,
    NotShown,
    ReasonRequired,
    ReasonTooLong,
    Refusal,
    Superseded,
    UnknownApproval,
    UnknownChoice,
    Withdrawn,
    clock_time,
)
from approvals.extent import fits_a_page
from approvals.models import Approval, Entry
from approvals.record import Record, lock
from approvals.standing import People, load_people, names_in, parties_of, standing_among
from approvals.states import Choice, EntryKind, Status, Via
from approvals.text import storable
from approvals.waking import wake
from journal.connections import in_transaction
from journal.context import in_run
from journal.errors import Tampered, UnknownRun
from journal.ids import parse_id
from journal.locking import lock_run
from journal.reconnecting import retried

LONGEST_REASON = 10_000
"""Characters."""

_DONE = {Choice.APPROVE: "approved", Choice.REJECT: "rejected"}


@dataclass(frozen=True)
class Outcome:
    """A decision that stands."""

    approval_id: str
    revision: int
    choice: str
    status: str
    """Of the approval, with this decision."""
    at: datetime
    is_repeated: bool
    """The same person had said the same before; nothing was written now."""

    def __str__(self) -> str:
        done = _DONE[Choice(self.choice)]
        return f"You already {done} this at {clock_time(self.at)}." if self.is_repeated else f"{done.capitalize()}."


@dataclass(frozen=True)
class _Said:
    """What somebody wants to decide."""

    revision: int
    digest: str
    actor_id: int
    choice: Choice
    reason: str
    via: Via
    authenticated_by: str


def decide(
    approval: Approval | str,
    *,
    revision: int,
    digest: str,
    actor: Any,
    verdict: str,
    reason: str | None = "",
    via: str,
    authenticated_by: str = "",
) -> Outcome:
    """Decides as `actor` (a user) on the revision with that digest (hex), as shown to them.

    `verdict` is "approve" or "reject" (with a reason); `via` is "browser" or "command"; `authenticated_by` says how the
    actor is known. Said again by the same person it is the same decision. Raises a Refusal (approvals.errors) that says
    why nothing was decided; one that is not permitted is kept in the approval's history.
    """
    if in_run():
        raise InRun()
    if in_transaction(connection):
        raise InTransaction()
    if via not in (Via.BROWSER, Via.COMMAND):
        raise ValueError(f"nobody decides via {via!r}")
    if actor.pk is None:
        raise NotPermitted("You are not signed in.")
    said = _Said(
        revision, digest.lower(), actor.pk, _choice(verdict), _reason(reason or ""), Via(via), authenticated_by
    )
    approval_id = approval if isinstance(approval, str) else approval.id
    known_id = parse_id(approval_id)
    # Deciding twice is harmless, so an unknown commit is too.
    answer = retried(lambda: _decide(known_id, said), f"deciding {known_id}", also_if_lost=True)
    if isinstance(answer, Refusal):
        raise answer
    return answer


def _choice(word: str) -> Choice:
    if word not in (Choice.APPROVE, Choice.REJECT):
        raise UnknownChoice(f"{word!r} is not a choice; there are: approve, reject")
    return Choice(word)


def _reason(reason: str) -> str:
    kept = storable(reason).strip()
    if len(kept) > LONGEST_REASON:
        raise ReasonTooLong(len(kept), LONGEST_REASON)
    return kept


def _decide(approval_id: str, said: _Said) -> Outcome | Refusal:
    """The transaction. A refusal is an answer here, so that what was written with it is committed."""
    found = Approval.objects.filter(pk=approval_id).values_list("run_id", flat=True).first()
    if found is None:
        return UnknownApproval(approval_id)
    with transaction.atomic(durable=True):
        try:
            lock_run(found)
            record = lock(approval_id)
        except UnknownRun:
            record = None
        except Tampered:
            wake(Approval.objects.get(pk=approval_id))  # so that the run looks at it, and is blocked
            return Altered()
        if record is None:
            return UnknownApproval(approval_id)
        return _answer(record, said)


def _answer(record: Record, said: _Said) -> Outcome | Refusal:
    approval = record.approval
    if record.is_overdue:
        expire(record)
        record.save()
        wake(approval)
    if approval.status != Status.WAITING:
        return _repeated(record, said) or _closed(record, said)
    people = load_people(ids={said.actor_id, *(vote.person for vote in record.votes)}, names=names_in(approval))
    where = standing_among(approval, people, said.actor_id)
    if not where.can:
        _note_refusal(record, said, people, where.why)
        return NotPermitted(where.why)
    return _unfit(record, said) or _vote(record, said, people)


def _repeated(record: Record, said: _Said) -> Outcome | None:
    for entry in record.entries:
        if entry.kind == EntryKind.VOTE and _is_same(entry, said):
            return Outcome(record.approval.id, entry.revision, said.choice, record.approval.status, entry.at, True)
    return None


def _is_same(entry: Entry, said: _Said) -> bool:
    return (entry.actor_id, entry.revision, entry.verdict) == (said.actor_id, said.revision, said.choice)


def _closed(record: Record, said: _Said) -> Refusal:
    """The truth about a request that is over: which decision won, or why there is none."""
    approval = record.approval
    at = approval.decided_at
    assert at is not None
    if approval.status == Status.EXPIRED:
        return DeadlinePassed(approval.deadline_at or at)
    if approval.status == Status.WITHDRAWN:
        return Withdrawn(approval.reason, at)
    own = approval.decided_by_id == said.actor_id and approval.decided_via != Via.EARLIER
    return AlreadyDecided(status=approval.status, by=approval.decided_by_name, at=at, own=own)


def _unfit(record: Record, said: _Said) -> Refusal | None:
    current = record.revision
    if said.revision != current.number or said.digest != bytes(current.digest).hex():
        return Superseded(revision=said.revision, current=current.number)
    if said.choice == Choice.APPROVE and said.via != Via.COMMAND and not fits_a_page(current):
        return NotShown()
    if said.reason:
        return None
    if said.choice == Choice.REJECT:
        return ReasonRequired("A rejection needs a reason.")
    return ReasonRequired("This policy wants a reason.") if record.policy.reason_required else None


def _vote(record: Record, said: _Said, people: People) -> Outcome:
    approval = record.approval
    _enter(record, EntryKind.VOTE, said, people, said.reason)
    asked = verdicts.Asked(approval.revision, approval.deadline_at, parties_of(approval, people))
    status = verdicts.verdict(record.policy, asked, record.votes, people.by_id, record.now)
    if status != Status.WAITING:
        person = people.by_id[said.actor_id]
        record.close(
            status,
            via=said.via,
            actor_id=person.id,
            actor_name=person.name,
            groups=sorted(person.groups),
            reason=said.reason,
            authenticated_by=said.authenticated_by,
        )
        wake(approval)
    record.save()
    return Outcome(approval.id, approval.revision, said.choice, approval.status, record.now, False)


def _note_refusal(record: Record, said: _Said, people: People, why: str) -> None:
    """Keeps that somebody tried who may not: once for each person, revision, way and choice, so that nobody can
    make a record grow by insisting."""
    for entry in record.entries:
        if entry.kind == EntryKind.REFUSED and _is_same(entry, said) and entry.via == said.via:
            return
    _enter(record, EntryKind.REFUSED, said, people, why)
    record.save()


def _enter(record: Record, kind: EntryKind, said: _Said, people: People, reason: str) -> None:
    person = people.by_id[said.actor_id]
    record.add(
        kind,
        via=said.via,
        verdict=said.choice,
        actor_id=person.id,
        actor_name=person.name,
        groups=sorted(person.groups),
        reason=reason,
        authenticated_by=said.authenticated_by,
    )
