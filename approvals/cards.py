"""One request in words: exactly what will run, what is known about it, who decides, what was said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.errors import NotShown
from approvals.extent import fits_a_page
from approvals.models import Approval, Entry
from approvals.queries import Detail
from approvals.record import Record
from approvals.states import Choice, EntryKind, Party, Risk, Status, Via
from approvals.verdicts import Standing
from journal import codec, display
from journal.marks import Mark

MISFITS = "does not fit"
"""The fact under which an author's code lists what speaks against the action."""

STATUS_MARKS = {
    Status.WAITING: Mark("person", "Waiting", "is-amber"),
    Status.APPROVED: Mark("completed", "Approved", "is-green"),
    Status.REJECTED: Mark("failed", "Rejected", "is-red"),
    Status.CHANGES_ASKED: Mark("changed", "Changes asked", "is-amber"),
    Status.EXPIRED: Mark("clock", "Expired"),
    Status.WITHDRAWN: Mark("cancelled", "Withdrawn"),
}
RISK_WORDS = {Risk.LOW: "Low", Risk.MEDIUM: "Medium", Risk.HIGH: "High", Risk.CRITICAL: "Critical"}
_WAYS = {Via.BROWSER: "in the browser", Via.COMMAND: "by command", Via.EARLIER: "earlier in this run"}
_SPOKEN = {
    Choice.APPROVE: ("approved", Status.APPROVED),
    Choice.REJECT: ("rejected", Status.REJECTED),
    Choice.ASK_CHANGES: ("asked for changes", Status.CHANGES_ASKED),
    Choice.TAKE_BACK: ("took their vote back", Status.WAITING),
}
_NAMED = 3
_MISFITS = 50


@dataclass(frozen=True)
class Line:
    """One line of the history."""

    at: datetime
    icon: str
    colour: str
    who: str
    said: str
    aside: str = ""
    quote: str = ""
    is_void: bool = False
    is_future: bool = False


@dataclass(frozen=True)
class Deciders:
    """Who may decide, in words."""

    group: str
    why: str
    """Why this person can, or cannot."""
    others: str
    barred: str


@dataclass(frozen=True)
class Card:
    approval: Approval
    mark: Mark
    risk: str
    title: str
    """The summary in one line."""
    whole_summary: display.Shown | None
    """If that is not all of it."""
    fields: list[tuple[str, display.Shown]]
    arguments: display.Shown
    """All of it as JSON, for the other view."""
    digest: str
    hidden: list[tuple[str, int]]
    """Fields with characters that are drawn as code points, and how many."""
    misfits: list[str]
    facts: list[tuple[str, display.Shown]]
    words: list[tuple[str, display.Shown]]
    """Free text among the facts: nobody has verified it."""
    deciders: Deciders
    standing: Standing
    reason_required: bool
    history: list[Line]
    version: str
    is_whole: bool
    """Whether all of it is on the page. Else no page can approve it."""

    @property
    def is_open(self) -> bool:
        return self.approval.status == Status.WAITING

    @property
    def can_decide(self) -> bool:
        return self.is_open and self.standing.can

    @property
    def why_not_approved(self) -> str:
        """Why somebody who can decide this cannot approve it on a page; "" if they can. decide() asks the same."""
        return "" if self.is_whole else str(NotShown())

    @property
    def is_critical(self) -> bool:
        return self.approval.risk == Risk.CRITICAL

    @property
    def asks_twice(self) -> bool:
        """Approving has a page of its own: something has to be typed."""
        return self.is_critical or self.reason_required


def card_of(detail: Detail, user: Any) -> Card | None:
    """The request as `user` sees it; None if it was altered from outside: then nothing of it is shown."""
    record = detail.record
    if record is None:
        return None
    approval, revision = detail.approval, record.revision
    is_whole = fits_a_page(revision)
    limit = display.WHOLE_LIMIT if is_whole else display.INLINE_LIMIT
    fields = display.fields_of(revision.args, limit)
    misfits, facts, words = _facts(revision.facts, limit, is_whole=is_whole)
    return Card(
        approval=approval,
        mark=STATUS_MARKS[Status(approval.status)],
        risk=RISK_WORDS[Risk(approval.risk)],
        title=approval.summary,
        whole_summary=None if revision.summary == approval.summary else display.shown(revision.summary, limit),
        fields=fields,
        arguments=display.preview(revision.args, limit=limit),
        digest=detail.digest,
        hidden=[(name, value.hidden) for name, value in fields if value.hidden],
        misfits=misfits,
        facts=facts,
        words=words,
        deciders=_deciders(detail, user),
        standing=detail.standing,
        reason_required=detail.policy.reason_required,
        history=_history(record),
        version=version_of(approval),
        is_whole=is_whole,
    )


def version_of(approval: Approval) -> str:
    """Changes with everything that is ever written about the request."""
    return f"{approval.count}.{approval.revision}.{approval.status}"


def _facts(
    stored: str, limit: int, *, is_whole: bool
) -> tuple[list[str], list[tuple[str, display.Shown]], list[tuple[str, display.Shown]]]:
    """What does not fit; values; and free text, which may be a model's."""
    found = json.loads(stored)
    misfits: list[str] = []
    facts, words = [], []
    for name, value in found.items() if "$" not in found else [("facts", found)]:
        if name == MISFITS:
            misfits = _misfits(codec.plain(json.dumps(value)), is_whole=is_whole)
        elif isinstance(value, str):
            words.append((name, display.shown(value, limit)))
        else:
            facts.append((name, display.shown(value, limit)))
    return misfits, facts, words


def _misfits(listed: Any, *, is_whole: bool) -> list[str]:
    found = [str(item) for item in listed] if isinstance(listed, list) else [str(listed)]
    if is_whole:
        return found
    shown = [display.clipped(item, display.FOLD_ABOVE) for item in found[:_MISFITS]]
    return shown if len(found) <= _MISFITS else [*shown, f"and {len(found) - _MISFITS:,} more"]


# ---------------------------------------------------------------- who decides


def _deciders(detail: Detail, user: Any) -> Deciders:
    able = [name for name in detail.deciders if name != user.get_username()]
    return Deciders(detail.policy.seat.group, detail.standing.why, _others(able, detail.standing.can), _barred(detail))


def _others(names: list[str], you_too: bool) -> str:
    named = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    if you_too:
        return f"you, or {named}" if names else "only you"
    return named or "nobody at present"


def _barred(detail: Detail) -> str:
    words = {Party.STARTER: "who started the run", Party.OWNER: "who owns the workflow"}
    return "; ".join(f"{name or 'somebody unknown'}, {words[Party(party)]}" for party, name in detail.barred)


# ---------------------------------------------------------------- history


def _history(record: Record) -> list[Line]:
    lines = [line for entry in record.entries if (line := _line(entry, record)) is not None]
    approval = record.approval
    if approval.status == Status.WAITING and approval.deadline_at is not None:
        lines.append(Line(approval.deadline_at, "next", "", "", "Rejected if still undecided", is_future=True))
    return lines


def _line(entry: Entry, record: Record) -> Line | None:
    if entry.kind == EntryKind.REQUESTED:
        who = f"run of {entry.actor_name}" if entry.actor_name else "the run"
        return Line(entry.at, "dot", "", who, "asked", f"revision {entry.revision}")
    if entry.kind == EntryKind.VOTE:
        is_void = entry.revision != record.approval.revision
        mark = STATUS_MARKS[_SPOKEN[Choice(entry.verdict)][1]]
        said = _SPOKEN[Choice(entry.verdict)][0]
        aside = f"{_WAYS.get(Via(entry.via), '')}{', void: asked again' if is_void else ''}"
        return Line(entry.at, mark.icon, mark.colour, entry.actor_name, said, aside, entry.reason, is_void)
    if entry.kind == EntryKind.VERDICT:
        return _verdict_line(entry)
    if entry.kind == EntryKind.REFUSED:
        tried = f"tried to {entry.verdict}"
        return Line(entry.at, "cancelled", "", entry.actor_name, tried, "refused", entry.reason)
    if entry.kind == EntryKind.USED:
        return Line(entry.at, "dot", "", "", "Used: the step started")
    return Line(entry.at, "cancelled", "", "", "Void", entry.reason)


def _verdict_line(entry: Entry) -> Line | None:
    """Verdicts that nobody's vote stands right above: a rule's, a deadline's, an earlier answer's, the run's end."""
    mark = STATUS_MARKS[Status(entry.verdict)]
    if entry.via == Via.RULE:
        rule = json.loads(entry.data).get("rule", "")
        return Line(entry.at, mark.icon, mark.colour, entry.actor_name, "let it pass", "", rule)
    if entry.via == Via.EARLIER:
        return Line(
            entry.at, mark.icon, mark.colour, entry.actor_name, "rejected the same", "earlier in this run", entry.reason
        )
    if entry.via in (Via.DEADLINE, Via.WORKFLOW):
        return Line(entry.at, mark.icon, mark.colour, "", mark.word, "", entry.reason)
    return None


# ---------------------------------------------------------------- what became of it


def decided_words(approval: Approval, user: Any) -> str:
    """Who decided, in one sentence without the time; for the card that is frozen."""
    status, via = Status(approval.status), approval.decided_via
    if status == Status.EXPIRED:
        return "Nobody decided in time, so this was rejected"
    if status == Status.WITHDRAWN:
        return "This was withdrawn"
    who = "You" if approval.decided_by_id == user.pk else approval.decided_by_name
    way = _WAYS.get(Via(via), "")
    return f"{who} {STATUS_MARKS[status].word.lower()} this {way}".rstrip()
