"""Who may decide, and what the votes come to: two pure functions, the only ones that know.

`standing` says whether one person may decide, and why. It guards the buttons on the page, the POST behind them and
the command alike, and a vote counts in `verdict` only while it holds.

    situation                                          verdict
    nothing said yet                                   waiting
    one eligible approve, need = 1                     approved
    one eligible reject                                rejected
    an eligible "ask for changes"                      changes_asked
    a vote on an earlier revision                      does not count
    a vote taken back                                  as never given
    two votes of one person                            the first counts until it is taken back
    a vote of the starter or owner, under four eyes    does not count
    a voter who has left the group, or is inactive     does not count
    a party named by four eyes is not known            no vote counts
    the deadline is reached                            expired, whatever was said
    the run has ended                                  withdrawn, whatever was said

(approvals/decisions.py keeps "the one that gets the locks first", approvals/guard.py what becomes of an approval
that is not used.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from approvals.policies import Policy
from approvals.states import Choice, Party, Status


@dataclass(frozen=True)
class Person:
    """Somebody who votes or might, as they are now."""

    id: int
    name: str
    groups: frozenset[str]
    is_active: bool = True
    may_decide: bool = True
    """Whether their role lets them decide at all."""


@dataclass(frozen=True)
class Involved:
    """Somebody who had a part in the run."""

    name: str
    """As the run has it; "" when it names nobody."""
    is_known: bool
    person: int | None = None
    """None for a service: known, and no human."""


Parties = Mapping[Party, Involved]


@dataclass(frozen=True)
class Asked:
    """The revision that people decide on."""

    number: int
    deadline_at: datetime | None
    parties: Parties
    is_withdrawn: bool = False


@dataclass(frozen=True)
class Vote:
    revision: int
    person: int
    choice: str


@dataclass(frozen=True)
class Standing:
    """Whether a person may decide, and the sentence that tells them why."""

    can: bool
    why: str


def standing(policy: Policy, parties: Parties, person: Person) -> Standing:
    """Where this person stands under this policy. Fails closed: an unknown party bars everybody."""
    if not person.is_active:
        return Standing(False, "Your account is not active.")
    for party in map(Party, policy.four_eyes):
        involved = parties[party]
        if not involved.is_known:
            return Standing(False, _nobody_can(party, involved))
        if involved.person == person.id:
            had_part = "started this run" if party is Party.STARTER else "own this workflow"
            return Standing(False, f"You {had_part}, so somebody else has to decide (four eyes).")
    group = policy.seat.group
    if group not in person.groups:
        return Standing(False, f"You are not in {group}, the group that decides this.")
    if not person.may_decide:
        return Standing(False, "Your role does not let you decide.")
    return Standing(
        True, f"You are in {group} and had no part in this run." if policy.four_eyes else f"You are in {group}."
    )


def _nobody_can(party: Party, involved: Involved) -> str:
    if involved.name:
        unknown = f"the {party}, {involved.name}, is not an active person here"
    else:
        unknown = "nobody knows who started the run" if party is Party.STARTER else "the workflow names no owner"
    return f"Nobody can decide this: the policy wants four eyes against the {party}, and {unknown}."


def verdict(policy: Policy, asked: Asked, votes: Iterable[Vote], people: Mapping[int, Person], now: datetime) -> Status:
    """What all that was said comes to at `now`. A person who is not in `people` does not count."""
    if asked.is_withdrawn:
        return Status.WITHDRAWN
    if asked.deadline_at is not None and now >= asked.deadline_at:
        return Status.EXPIRED
    counted = {
        voter: choice
        for voter, choice in live_votes(asked.number, votes).items()
        if voter in people and standing(policy, asked.parties, people[voter]).can
    }
    choices = list(counted.values())
    if Choice.REJECT in choices:
        return Status.REJECTED
    if Choice.ASK_CHANGES in choices:
        return Status.CHANGES_ASKED
    return Status.APPROVED if choices.count(Choice.APPROVE) >= policy.seat.need else Status.WAITING


def live_votes(revision: int, votes: Iterable[Vote]) -> dict[int, str]:
    """The one vote that stands for each person on this revision."""
    live: dict[int, str] = {}
    for vote in votes:
        if vote.revision != revision:
            continue
        if vote.choice == Choice.TAKE_BACK:
            live.pop(vote.person, None)
        else:
            live.setdefault(vote.person, vote.choice)
    return live
