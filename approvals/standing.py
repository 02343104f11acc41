"""Where a person stands towards an approval: approvals.verdicts.standing with what the database says now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Exists, OuterRef, Q

from approvals.models import Approval
from approvals.policies import Policy
from approvals.roles import is_role
from approvals.states import Party
from approvals.verdicts import Involved, Parties, Person, Standing, standing


@dataclass(frozen=True)
class People:
    """Some persons as they are now, by id and by name."""

    by_id: dict[int, Person]
    by_name: dict[str, Person]


def load_people(*, ids: Collection[int] = (), names: Collection[str] = (), group: str = "") -> People:
    """The persons of these ids, of these names, and in this group, in one query."""
    members = get_user_model().groups.through.objects.filter(user_id=OuterRef("pk"), group__name=group)
    wanted = Q(pk__in=ids) | Q(username__in=[name for name in names if name]) | Q(Exists(members))
    rows = (
        get_user_model()
        ._default_manager.filter(wanted)
        .annotate(
            group_names=ArrayAgg("groups__name", filter=Q(groups__isnull=False), default=[]),
            may_decide=Q(is_superuser=True) | Exists(_permission_to_decide()),
        )
        .order_by("username")
        .values_list("pk", "username", "is_active", "group_names", "may_decide")
    )
    found = [_person(*row) for row in rows]
    return People({person.id: person for person in found}, {person.name: person for person in found})


def _permission_to_decide() -> Any:
    return Permission.objects.filter(
        Q(group__user=OuterRef("pk")) | Q(user=OuterRef("pk")),
        codename="decide_approval",
        content_type__app_label="approvals",
    )


def _person(id: int, name: str, is_active: bool, group_names: list[str], may_decide: bool) -> Person:  # noqa: A002
    groups = frozenset(group for group in group_names if not is_role(group))
    return Person(id, name, groups, is_active, may_decide)


def names_in(approval: Approval) -> list[str]:
    """The names that `parties_of` looks for."""
    return [approval.owner_name, approval.starter_name]


def parties_of(approval: Approval, people: People) -> Parties:
    """Who had a part in the run. `people` has to hold those of `names_in` that exist.

    A starter that is no account is a service: known, and nobody has to be kept apart from it. One that merely has a
    person's name is taken for that person."""
    starter_id = approval.starter_id
    if starter_id is None and approval.starter_name in people.by_name:
        starter_id = people.by_name[approval.starter_name].id
    owner = people.by_name.get(approval.owner_name)
    owner_known = owner is not None and owner.is_active
    return {
        Party.STARTER: Involved(approval.starter_name, bool(starter_id or approval.starter_name), starter_id),
        Party.OWNER: Involved(approval.owner_name, owner_known, owner.id if owner and owner_known else None),
    }


def who_can(approval: Approval, user: Any) -> Standing:
    """Whether this user may decide this approval, and why. It says nothing of whether it is still open."""
    people = load_people(ids=[user.pk], names=names_in(approval))
    return standing_among(approval, people, user.pk)


def standing_among(approval: Approval, people: People, person_id: int) -> Standing:
    """As `who_can`, with people that were loaded before."""
    policy = Policy.read(approval.policy.spec)
    person = people.by_id.get(person_id)
    if person is None:
        return Standing(False, "You are not signed in.")
    return standing(policy, parties_of(approval, people), person)


def deciders_of(approval: Approval, people: People) -> Iterable[Person]:
    """Those among `people` who may decide it."""
    policy = Policy.read(approval.policy.spec)
    parties = parties_of(approval, people)
    return [person for person in people.by_id.values() if standing(policy, parties, person).can]
