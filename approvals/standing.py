"""Where a person stands towards an approval: approvals.verdicts.standing with what the database says now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from approvals.models import Approval
from approvals.policies import Policy
from approvals.roles import ROLE_PREFIX
from approvals.states import Party
from approvals.verdicts import Involved, Parties, Person, Standing, standing
from journal import statements

# Asked for each decision, and built by the ORM it would cost a quarter of it.
PEOPLE = """
SELECT u.id, u.username, u.is_active, u.is_superuser OR EXISTS (
    SELECT 1 FROM auth_permission p
    JOIN django_content_type t ON t.id = p.content_type_id AND t.app_label = 'approvals'
    WHERE p.codename = 'decide_approval' AND (
        EXISTS (SELECT 1 FROM auth_user_user_permissions up WHERE up.user_id = u.id AND up.permission_id = p.id)
        OR EXISTS (SELECT 1 FROM auth_user_groups ug JOIN auth_group_permissions gp ON gp.group_id = ug.group_id
                   WHERE ug.user_id = u.id AND gp.permission_id = p.id))
), ARRAY(
    SELECT g.name FROM auth_user_groups ug JOIN auth_group g ON g.id = ug.group_id
    WHERE ug.user_id = u.id AND NOT starts_with(g.name, %(role)s)
)
FROM auth_user u
WHERE u.id = ANY(%(ids)s::int[]) OR u.username = ANY(%(names)s::text[]) OR (%(group)s <> '' AND EXISTS (
    SELECT 1 FROM auth_user_groups ug JOIN auth_group g ON g.id = ug.group_id
    WHERE ug.user_id = u.id AND g.name = %(group)s
))
ORDER BY u.username
"""


@dataclass(frozen=True)
class People:
    """Some persons as they are now, by id and by name."""

    by_id: dict[int, Person]
    by_name: dict[str, Person]


def load_people(*, ids: Collection[int] = (), names: Collection[str] = (), group: str = "") -> People:
    """The persons of these ids, of these names, and in this group, in one query."""
    wanted = {"ids": list(ids), "names": [name for name in names if name], "group": group, "role": ROLE_PREFIX}
    found = [
        Person(person_id, name, frozenset(group_names), is_active, may_decide)
        for person_id, name, is_active, may_decide, group_names in statements.rows(PEOPLE, wanted)
    ]
    return People({person.id: person for person in found}, {person.name: person for person in found})


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
