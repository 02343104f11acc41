"""The verdict function, row by row of its table (AUTHORITY: "The verdict is one pure function")."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.policies import Policy
from approvals.states import Party, Status
from approvals.verdicts import Asked, Involved, Person, Vote, standing, verdict

NOW = datetime(2026, 3, 1, 14, 2, tzinfo=UTC)
DEADLINE = NOW + timedelta(hours=1)
MARA, TOMAS, CLERK, LEAD, OUTSIDER = 1, 2, 3, 4, 5
FINANCE = frozenset({"finance"})
PEOPLE = {
    MARA: Person(MARA, "mara", FINANCE),
    TOMAS: Person(TOMAS, "tomas", FINANCE | {"support"}),
    CLERK: Person(CLERK, "clerk", FINANCE),
    LEAD: Person(LEAD, "lead", FINANCE),
    OUTSIDER: Person(OUTSIDER, "sam", frozenset({"support"})),
}
POLICY = Policy.read(
    {
        "seats": [{"group": "finance", "need": 1}],
        "four_eyes": ["starter", "owner"],
        "deadline": "48h",
        "at_end": "reject",
    }
)
PARTIES = {Party.STARTER: Involved("clerk", True, CLERK), Party.OWNER: Involved("lead", True, LEAD)}
UNKNOWN_STARTER = PARTIES | {Party.STARTER: Involved("", False)}
UNKNOWN_OWNER = PARTIES | {Party.OWNER: Involved("lead", False)}
NOBODY = "Nobody can decide this: the policy wants four eyes"
SERVICE = PARTIES | {Party.STARTER: Involved("nightly", True)}


def asked(**changes: Any) -> Asked:
    return replace(Asked(2, DEADLINE, PARTIES), **changes)


def vote(person: int, choice: str, revision: int = 2) -> Vote:
    return Vote(revision, person, choice)


TABLE: list[tuple[str, Asked, list[Vote], datetime, Status]] = [
    ("nothing said yet", asked(), [], NOW, Status.WAITING),
    ("one eligible approve", asked(), [vote(MARA, "approve")], NOW, Status.APPROVED),
    ("one eligible reject", asked(), [vote(MARA, "reject")], NOW, Status.REJECTED),
    ("ask for changes", asked(), [vote(MARA, "ask_changes")], NOW, Status.CHANGES_ASKED),
    ("a vote, then an edit", asked(), [vote(MARA, "approve", revision=1)], NOW, Status.WAITING),
    ("a vote taken back", asked(), [vote(MARA, "approve"), vote(MARA, "take_back")], NOW, Status.WAITING),
    (
        "taken back, then another",
        asked(),
        [vote(MARA, "approve"), vote(MARA, "take_back"), vote(MARA, "reject")],
        NOW,
        Status.REJECTED,
    ),
    (
        "approve, then reject by the same person",
        asked(),
        [vote(MARA, "approve"), vote(MARA, "reject")],
        NOW,
        Status.APPROVED,
    ),
    (
        "a reject counts before an approve",
        asked(),
        [vote(MARA, "approve"), vote(TOMAS, "reject")],
        NOW,
        Status.REJECTED,
    ),
    ("the starter", asked(), [vote(CLERK, "approve")], NOW, Status.WAITING),
    ("the starter rejects", asked(), [vote(CLERK, "reject")], NOW, Status.WAITING),
    ("the owner", asked(), [vote(LEAD, "approve")], NOW, Status.WAITING),
    ("outside the group", asked(), [vote(OUTSIDER, "approve")], NOW, Status.WAITING),
    ("nobody we know", asked(), [vote(99, "approve")], NOW, Status.WAITING),
    ("unknown starter", asked(parties=UNKNOWN_STARTER), [vote(MARA, "approve")], NOW, Status.WAITING),
    ("unknown owner", asked(parties=UNKNOWN_OWNER), [vote(MARA, "approve")], NOW, Status.WAITING),
    ("started by a service", asked(parties=SERVICE), [vote(MARA, "approve")], NOW, Status.APPROVED),
    (
        "just before the deadline",
        asked(),
        [vote(MARA, "approve")],
        DEADLINE - timedelta(microseconds=1),
        Status.APPROVED,
    ),
    ("at the deadline", asked(), [vote(MARA, "approve")], DEADLINE, Status.EXPIRED),
    ("after the deadline, nothing said", asked(), [], DEADLINE + timedelta(days=9), Status.EXPIRED),
    ("no deadline", asked(deadline_at=None), [], NOW + timedelta(days=999), Status.WAITING),
    ("the run has ended", asked(is_withdrawn=True), [vote(MARA, "approve")], NOW, Status.WITHDRAWN),
]


@pytest.mark.parametrize(("situation", "revision", "votes", "now", "outcome"), TABLE, ids=[row[0] for row in TABLE])
def test_the_table(situation: str, revision: Asked, votes: list[Vote], now: datetime, outcome: Status) -> None:
    assert verdict(POLICY, revision, votes, PEOPLE, now) == outcome


@pytest.mark.parametrize(
    "changed",
    [
        Person(MARA, "mara", frozenset()),
        Person(MARA, "mara", FINANCE, is_active=False),
        Person(MARA, "mara", FINANCE, may_decide=False),
    ],
    ids=["left the group", "inactive", "role taken away"],
)
def test_a_voter_has_to_be_eligible_at_the_verdict_too(changed: Person) -> None:
    assert verdict(POLICY, asked(), [vote(MARA, "approve")], PEOPLE | {MARA: changed}, NOW) == Status.WAITING


@pytest.mark.parametrize(
    ("person", "parties", "why"),
    [
        (MARA, PARTIES, "You are in finance and had no part in this run."),
        (CLERK, PARTIES, "You started this run, so somebody else has to decide (four eyes)."),
        (LEAD, PARTIES, "You own this workflow, so somebody else has to decide (four eyes)."),
        (OUTSIDER, PARTIES, "You are not in finance, the group that decides this."),
        (
            MARA,
            UNKNOWN_STARTER,
            f"{NOBODY} against the starter, and nobody knows who started the run.",
        ),
        (
            MARA,
            UNKNOWN_OWNER,
            f"{NOBODY} against the owner, and the owner, lead, is not an active person here.",
        ),
        (
            MARA,
            PARTIES | {Party.OWNER: Involved("", False)},
            f"{NOBODY} against the owner, and the workflow names no owner.",
        ),
    ],
)
def test_standing_says_why(person: int, parties: Any, why: str) -> None:
    found = standing(POLICY, parties, PEOPLE[person])
    assert (found.can, found.why) == (why.startswith("You are in "), why)
    assert found.can == (person == MARA and parties == PARTIES)


def test_without_four_eyes_nobody_is_kept_apart() -> None:
    policy = Policy.read({"seats": [{"group": "finance"}]})
    assert standing(policy, UNKNOWN_STARTER, PEOPLE[CLERK]).can
