"""What can go wrong on the human side.

    ApprovalsError
    ├── Refusal                a decision that was not taken; str() is the sentence for the person
    │   ├── UnknownApproval    there is no such request
    │   ├── UnknownPerson      there is nobody of that name
    │   ├── UnknownChoice      neither approve nor reject
    │   ├── NotPermitted       this person may not decide it; `why`
    │   ├── AlreadyDecided     `by`, `at`, `status`: the decision that won
    │   ├── Superseded         another revision is the current one
    │   ├── DeadlinePassed     `at`
    │   ├── Withdrawn          nobody needs it any more; `why`
    │   ├── ReasonRequired     … and none was given
    │   ├── ReasonTooLong
    │   ├── NotShown           more than a page shows, so no page can approve it
    │   ├── Altered            the request was changed from outside; nobody can decide it
    │   ├── InTransaction      decide owns its transaction
    │   ├── InRun              a run cannot decide
    │   ├── CommandsOff        the command is not allowed to decide here
    │   ├── BrokenOff          nobody knows whether it was decided; say it again
    │   └── NotADecision       a line of `decide -` that cannot be read
    ├── NotApproved            raised in a workflow in place of the step
    │   ├── Rejected           `reason`, `by`
    │   └── Expired            `deadline_at`
    ├── PolicyError            a policy file cannot be used; `source`, `key`, `problem`
    ├── PersonExists           the name is taken
    ├── BadPerson              a name, group, role or password that cannot be used
    └── NotInDevelopment       demo accounts exist in development only

The first line of each docstring is its default message. `code` is stable, for programs.
"""

from __future__ import annotations

from datetime import datetime

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone


def clock_time(at: datetime) -> str:
    """`14:02 UTC`, with the date unless it is today's; in the time zone at hand."""
    local = timezone.localtime(at)
    text = f"{local:%H:%M %Z}"
    return text if local.date() == timezone.localdate() else f"{text} on {local:%d %b %Y}"


class ApprovalsError(Exception):
    """The human side refused."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


# ---------------------------------------------------------------- decisions


class Refusal(ApprovalsError):
    """The decision was not taken."""

    code = "refused"


class UnknownApproval(Refusal):
    """There is no such request."""

    code = "unknown_approval"

    def __init__(self, approval_id: str) -> None:
        super().__init__(f"There is no request {approval_id}.")
        self.approval_id = approval_id


class UnknownPerson(Refusal):
    """There is nobody of that name."""

    code = "unknown_person"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is nobody called {name}.")
        self.name = name


class UnknownChoice(Refusal):
    """The choice is approve or reject."""

    code = "unknown_choice"


class NotPermitted(Refusal):
    """You may not decide this."""

    code = "not_permitted"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class AlreadyDecided(Refusal):
    """Somebody has decided this."""

    code = "already_decided"

    def __init__(self, *, status: str, by: str, at: datetime, own: bool = False) -> None:
        verdict = status.replace("_", " ")
        moment = clock_time(at)
        super().__init__(
            f"You already {verdict} this at {moment}." if own else f"Already {verdict} by {by} at {moment}."
        )
        self.status = status
        self.by = by
        self.at = at
        self.own = own


class Superseded(Refusal):
    """Another revision is the current one; look at that."""

    code = "superseded"

    def __init__(self, *, revision: int, current: int) -> None:
        same = revision == current
        super().__init__(
            f"What you saw is not what revision {current} says; look at it again."
            if same
            else f"Revision {revision} is not the current one; look at revision {current}."
        )
        self.revision = revision
        self.current = current


class DeadlinePassed(Refusal):
    """The deadline passed and the request was rejected by default."""

    code = "deadline_passed"

    def __init__(self, at: datetime) -> None:
        super().__init__(f"The deadline passed at {clock_time(at)} and the request was rejected by default.")
        self.at = at


class Withdrawn(Refusal):
    """Nobody needs this any more."""

    code = "withdrawn"

    def __init__(self, why: str, at: datetime) -> None:
        super().__init__(f"Withdrawn at {clock_time(at)}: {why}.")
        self.why = why
        self.at = at


class ReasonRequired(Refusal):
    """Give a reason."""

    code = "reason_required"


class ReasonTooLong(Refusal):
    """The reason is too long."""

    code = "reason_too_long"

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"The reason has {length:,} characters; the limit is {limit:,}.")
        self.length = length
        self.limit = limit


class NotShown(Refusal):
    """This is too long to be shown whole, so no page approves it: read it all and decide by command, or reject it."""

    code = "not_shown"


class Altered(Refusal):
    """This request was changed from outside Signoff, so nobody can decide it. An operator has to look."""

    code = "altered"


class InTransaction(Refusal):
    """decide() owns its transaction and cannot be part of another: call it outside transaction.atomic()."""

    code = "in_transaction"


class InRun(Refusal):
    """A run cannot decide: neither a workflow nor a step may call decide()."""

    code = "in_run"


class CommandsOff(Refusal):
    """Deciding by command is off here; SIGNOFF_COMMAND_DECISIONS=1 turns it on."""

    code = "commands_off"


class BrokenOff(Refusal):
    """Deciding broke off, and whether it was decided is not known. Saying the same again is harmless."""

    code = "broken_off"

    def __init__(self, error: Exception) -> None:
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        super().__init__(f"Broken off ({cause}); whether it was decided is not known. Saying it again is harmless.")


class NotADecision(Refusal):
    """This line is not a decision."""

    code = "not_a_decision"


# ---------------------------------------------------------------- in a workflow


class NotApproved(ApprovalsError):
    """The step was not approved and did not run."""


class Rejected(NotApproved):
    """A person said no."""

    def __init__(self, reason: str, by: str, approval: str = "") -> None:
        super().__init__(f"rejected by {by}: {reason}")
        self.reason = reason
        self.by = by
        self.approval = approval


class Expired(NotApproved):
    """Nobody decided in time."""

    def __init__(self, deadline_at: datetime, approval: str = "") -> None:
        super().__init__(f"nobody decided by {deadline_at:%Y-%m-%d %H:%M %Z}")
        self.deadline_at = deadline_at
        self.approval = approval


# ---------------------------------------------------------------- set-up


class PolicyError(ApprovalsError, ImproperlyConfigured):
    """A policy file cannot be used."""

    def __init__(self, source: str, key: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (source, key, problem) if part))
        self.source = source
        self.key = key
        self.problem = problem


class PersonExists(ApprovalsError):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is already a person called {name}")
        self.name = name


class BadPerson(ApprovalsError):
    """This person cannot be added."""


class NotInDevelopment(ApprovalsError):
    """Demo accounts exist in development only."""
