"""What the pages and the lists read. A constant number of queries each, whatever is stored.

Lists are querysets of Approval, whose rows hold no arguments; order and page through them as the page needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Prefetch, Q, QuerySet

from approvals import record
from approvals.models import Approval, Entry, PolicyVersion, Revision
from approvals.policies import Policy
from approvals.record import Record
from approvals.roles import ROLE_PREFIX
from approvals.standing import deciders_of, load_people, names_in, parties_of, standing_among
from approvals.states import EntryKind, Party, Status
from approvals.verdicts import Parties, Standing
from journal.errors import Tampered

MOST_COUNTED = 1000
"""Counts stop here; a badge that says 1,000 says "many"."""


_KEPT = "_signoff_policies"

# ---------------------------------------------------------------- who sees what


def groups_of(user: Any) -> list[str]:
    """The names of the groups of people that a user is in; roles are not among them."""
    names = user.groups.exclude(name__startswith=ROLE_PREFIX).order_by("name").values_list("name", flat=True)
    return list(names)


def _policies_for(user: Any) -> dict[int, list[str]]:
    """The policy versions that concern the user's groups, with their four eyes.

    Looked up first: there are few, and lists that name them are read along an index instead of joined and sorted.
    Kept with the user, whom each request loads anew: one page asks for them up to five times."""
    kept: dict[int, list[str]] | None = getattr(user, _KEPT, None)
    if kept is None:
        concerned = PolicyVersion.objects.filter(groups__overlap=groups_of(user))
        kept = dict(concerned.values_list("id", "spec__four_eyes"))
        setattr(user, _KEPT, kept)
    return kept


def visible_to(user: Any) -> QuerySet[Approval]:
    """The approvals that a user may see: those of their groups, and of the runs that they started or own; with the
    permission to view approvals, all."""
    if not user.is_authenticated or not user.is_active:
        return Approval.objects.none()
    found = Approval.objects.select_related("policy", "run")
    if user.has_perm("approvals.view_approval"):
        return found
    mine = Q(starter=user) | Q(owner_name=user.get_username())
    return found.filter(mine | Q(policy__in=_policies_for(user)))


def run_concerns(user: Any) -> Q:
    """Which runs a user may see for the sake of an approval: a filter of journal.access."""
    return Q(Exists(Approval.objects.filter(run=OuterRef("pk"), policy__in=_policies_for(user))))


# ---------------------------------------------------------------- lists


def by_deadline(approvals: QuerySet[Approval]) -> QuerySet[Approval]:
    """The most urgent first; what has no deadline comes last."""
    return approvals.order_by(F("deadline_at").asc(nulls_last=True), "id")


def waiting(user: Any) -> QuerySet[Approval]:
    """All that waits and that the user may see."""
    return by_deadline(visible_to(user).filter(decided_at=None))


def waiting_for(user: Any) -> QuerySet[Approval]:
    """What waits for the user's groups, less what four eyes keep from them."""
    if not user.is_authenticated or not user.is_active:
        return Approval.objects.none()
    policies = _policies_for(user)
    apart = {party: [found for found, four_eyes in policies.items() if party in four_eyes] for party in Party}
    found = Approval.objects.select_related("policy", "run").filter(decided_at=None, policy__in=policies)
    return by_deadline(
        found.exclude(starter=user, policy__in=apart[Party.STARTER]).exclude(
            owner_name=user.get_username(), policy__in=apart[Party.OWNER]
        )
    )


def decided(user: Any) -> QuerySet[Approval]:
    """All that is over and that the user may see, the latest first."""
    return visible_to(user).filter(decided_at__isnull=False).order_by("-decided_at", "-id")


def decided_by(user: Any) -> QuerySet[Approval]:
    """What the user decided, the latest first."""
    return decided(user).filter(decided_by=user)


def counts(user: Any) -> dict[str, int]:
    """How many wait: `for_me` and `waiting`, each at most MOST_COUNTED."""
    lists = {"for_me": waiting_for(user), "waiting": waiting(user)}
    return {name: found.order_by()[:MOST_COUNTED].count() for name, found in lists.items()}


def version_of(approvals: QuerySet[Approval]) -> str:
    """Changes whenever a page of this list would."""
    return ".".join(f"{approval_id}:{count}" for approval_id, count in approvals.values_list("id", "count"))


# ---------------------------------------------------------------- one approval


@dataclass(frozen=True)
class Detail:
    """One approval as a page shows it to one person."""

    approval: Approval
    record: Record | None
    """None if the row was changed from outside: then nothing of it is shown."""
    standing: Standing
    policy: Policy
    parties: Parties
    deciders: Sequence[str]
    """Names of those who may decide."""
    earlier: Sequence[Revision] = field(default=())
    """The revisions before the current one, the oldest first."""

    @property
    def is_altered(self) -> bool:
        return self.record is None

    @property
    def is_open(self) -> bool:
        return self.record is not None and self.approval.status == Status.WAITING

    @property
    def can_decide(self) -> bool:
        """Whether the buttons are on. decide() asks the same again."""
        return self.is_open and self.standing.can

    @property
    def revision(self) -> Revision | None:
        return self.record.revision if self.record else None

    @property
    def digest(self) -> str:
        """The revision's, in hexadecimal: what the form sends back."""
        return bytes(self.record.revision.digest).hex() if self.record else ""

    @property
    def entries(self) -> Sequence[Entry]:
        return self.record.entries if self.record else ()

    @property
    def barred(self) -> Sequence[tuple[str, str]]:
        """Whom four eyes keep from deciding: party and name ("" if nobody knows who that is)."""
        return [(party, self.parties[Party(party)].name) for party in self.policy.four_eyes]


def find(user: Any, approval_id: str) -> Approval | None:
    """The approval, if there is one and the user may see it."""
    return visible_to(user).filter(pk=approval_id).first()


def detail(user: Any, approval: Approval) -> Detail:
    """All that the page of one approval says. `approval` comes from `find`."""
    policy = Policy.read(approval.policy.spec)
    people = load_people(ids=[user.pk], names=names_in(approval), group=policy.seat.group)
    try:
        found: Record | None = record.read(approval.pk)
    except Tampered:
        found = None
    if found is not None:
        found.approval.run = approval.run
        approval = found.approval
    earlier = Revision.objects.filter(approval=approval, number__lt=approval.revision).order_by("number")
    return Detail(
        approval=approval,
        record=found,
        standing=standing_among(approval, people, user.pk),
        policy=policy,
        parties=parties_of(approval, people),
        deciders=[person.name for person in deciders_of(approval, people)],
        earlier=list(earlier) if found and approval.revision > 1 else (),
    )


# ---------------------------------------------------------------- for programs


def with_votes(approvals: QuerySet[Approval]) -> QuerySet[Approval]:
    """The approvals with what `describe` needs, in two queries."""
    votes = Entry.objects.filter(kind=EntryKind.VOTE).order_by("n")
    return approvals.select_related("policy", "run").prefetch_related(Prefetch("entries", votes, to_attr="votes"))


def describe(approval: Approval) -> dict[str, Any]:
    """The approval as commands print it; it comes from `with_votes`."""
    return {
        "id": approval.id,
        "run_id": approval.run_id,
        "run_key": approval.run.key,
        "status": approval.status,
        "revision": approval.revision,
        "action": approval.action,
        "policy": approval.policy.name,
        "deadline_at": _moment(approval.deadline_at),
        "votes": [_describe_vote(entry) for entry in approval.votes],  # type: ignore[attr-defined]
    }


def _describe_vote(entry: Entry) -> dict[str, Any]:
    return {
        "by": entry.actor_name,
        "verdict": entry.verdict,
        "revision": entry.revision,
        "reason": entry.reason,
        "via": entry.via,
        "at": _moment(entry.at),
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
