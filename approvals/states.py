"""The words of the human side: what an approval can be, and what can be written about it.

waiting ──> approved ──> (used, or void)
   │           └──────> waiting again, one revision on, when not used in time
   ├──────> rejected
   ├──────> changes_asked
   ├──────> expired
   └──────> withdrawn
"""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What the policy makes of all that was said: the verdict."""

    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    CHANGES_ASKED = "changes_asked"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Choice(StrEnum):
    """What one person says."""

    APPROVE = "approve"
    REJECT = "reject"
    ASK_CHANGES = "ask_changes"
    TAKE_BACK = "take_back"


class EntryKind(StrEnum):
    REQUESTED = "requested"  # a revision was put to people
    REFUSED = "refused"  # somebody tried to decide who may not
    VOTE = "vote"
    VERDICT = "verdict"  # one per revision
    USED = "used"  # by the start of the step
    VOID = "void"  # approved, and never to be used


class Via(StrEnum):
    """The way by which an entry came."""

    WORKFLOW = "workflow"  # the run itself asked, used, or ended
    BROWSER = "browser"
    COMMAND = "command"
    RULE = "rule"  # a rule of the policy let it pass
    DEADLINE = "deadline"
    EARLIER = "earlier"  # the same had been rejected in this run


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Party(StrEnum):
    """Whom four eyes may be kept against."""

    STARTER = "starter"
    OWNER = "owner"
