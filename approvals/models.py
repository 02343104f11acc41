"""The tables of the human side.

Lock order, as in journal/models.py: run, then approval. Everything written about an approval is written with
both locks held, through approvals/record.py, which keeps its chain and its seal.
Policy versions, revisions and entries are append-only, in the database too (approvals/sql/triggers.sql).
"""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q

from approvals.states import Choice, EntryKind, Risk, Status, Via
from journal.models import Run


def _one_of(field: str, words: type[StrEnum]) -> Q:
    return Q(**{f"{field}__in": [str(word) for word in words]})


def _person(related_name: str = "+") -> models.ForeignKey:  # type: ignore[type-arg]
    # People are deactivated, never deleted: what they decided keeps its author.
    return models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name=related_name)


class PolicyVersion(models.Model):
    """A policy as it was when a request first needed it; requests pin the version that they were made under."""

    name = models.TextField(db_collation="C")
    version = models.IntegerField(help_text="Counts from 1 for each name, in the order of first use.")
    digest = models.BinaryField(max_length=32, help_text="SHA-256 of `spec` as canonical JSON.")
    spec = models.JSONField(help_text="The policy with its defaults: approvals.policies.Policy.")
    groups = ArrayField(models.TextField(), help_text="The groups of its seats: whom its requests concern.")
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="policy_version_once"),
            models.UniqueConstraint(fields=["name", "digest"], name="policy_content_once"),
            models.CheckConstraint(condition=Q(version__gte=1), name="policy_version_from_one"),
        ]
        indexes = [GinIndex(fields=["groups"], name="policy_groups")]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"


class Approval(models.Model):
    """A request that people decide on one exact action; once approved, the authority for it, used once.

    `count` and `head` seal this row and its entries: a changed column, an edited entry, a hole or a missing
    tail does not fit (approvals/record.py)."""

    id = models.CharField(primary_key=True, max_length=14, db_collation="C")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="approvals")
    generation = models.IntegerField()
    branch = models.IntegerField()
    path = models.TextField(db_collation="C")
    attempt = models.IntegerField()
    idempotency_key = models.TextField(db_collation="C", help_text="Of the one call that it is for.")
    action = models.TextField(help_text="The step's name.")
    policy = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="approvals")
    risk = models.TextField()
    summary = models.TextField(help_text="One line for lists; the revision has the whole.")
    starter = _person()
    starter_name = models.TextField(help_text='A user name, the name of a service, or "" when nobody knows.')
    owner_name = models.TextField(help_text='A user name, or "".')

    status = models.TextField(default=Status.WAITING.value)
    revision = models.IntegerField(default=1, help_text="The current one.")
    created_at = models.DateTimeField()
    deadline_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = _person("decided_approvals")
    decided_by_name = models.TextField(default="", help_text="As it was then; or what decided in a person's place.")
    decided_via = models.TextField(default="")
    reason = models.TextField(default="", help_text="Of the verdict.")
    used_at = models.DateTimeField(null=True)
    void_reason = models.TextField(default="", help_text="Why an approved one will not be used.")

    count = models.IntegerField(help_text="How many entries it has.")
    head = models.BinaryField(max_length=32, help_text="The seal over the last entry and this row.")

    class Meta:
        default_permissions = ("view",)
        permissions = [("decide_approval", "Can decide approvals that concern their groups")]
        constraints = [
            models.UniqueConstraint(fields=["run", "generation", "branch", "path"], name="approval_once_per_position"),
            models.CheckConstraint(condition=_one_of("status", Status), name="approval_status_known"),
            models.CheckConstraint(condition=_one_of("risk", Risk), name="approval_risk_known"),
            models.CheckConstraint(condition=Q(revision__gte=1, count__gte=1), name="approval_counts_from_one"),
            models.CheckConstraint(
                condition=Q(status="waiting", decided_at__isnull=True, decided_via="")
                | (~Q(status="waiting") & Q(decided_at__isnull=False) & ~Q(decided_via="")),
                name="approval_decided_has_time",
            ),
            models.CheckConstraint(
                condition=Q(used_at__isnull=True) | Q(status="approved", void_reason=""),
                name="approval_used_only_if_approved",
            ),
            models.CheckConstraint(
                condition=Q(void_reason="") | Q(status="approved"), name="approval_void_only_if_approved"
            ),
            models.CheckConstraint(
                condition=~Q(status="rejected") | ~Q(reason=""), name="approval_rejected_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(decided_by__isnull=True) | Q(decided_via__in=["browser", "command", "earlier"]),
                name="approval_person_decides_in_person",
            ),
        ]
        indexes = [
            # It waits exactly while `decided_at` is null (a constraint says so). As a condition that has no parameter,
            # so that a prepared statement's plan may use these indexes.
            models.Index(
                F("deadline_at").asc(nulls_last=True), F("id"), condition=Q(decided_at=None), name="approval_waiting"
            ),
            models.Index(fields=["policy", "deadline_at"], condition=Q(decided_at=None), name="approval_for_policy"),
            models.Index(fields=["-decided_at", "-id"], condition=Q(decided_at__isnull=False), name="approval_decided"),
            models.Index(fields=["-created_at", "-id"], name="approval_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"


class Revision(models.Model):
    """What exactly was put to people: what is shown is what is hashed, and what runs. Append-only."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="revisions")
    number = models.IntegerField()
    args = models.TextField(help_text="Codec text of the effective arguments by name.")
    summary = models.TextField()
    facts = models.TextField(help_text="Codec text of what the author's code says about the arguments.")
    digest = models.BinaryField(max_length=32)
    proposer = _person()
    proposer_name = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["approval", "number"], name="revision_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="revision_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.approval_id} revision {self.number}"


class Entry(models.Model):
    """One thing that was said or done about an approval. Append-only; each chained to the one before."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="entries")
    n = models.IntegerField()
    kind = models.TextField()
    revision = models.IntegerField()
    verdict = models.TextField(default="", help_text="What was said, or what it came to.")
    actor = _person()
    actor_name = models.TextField(default="", help_text="As it was then.")
    groups = ArrayField(models.TextField(), default=list, help_text="The actor's groups then.")
    reason = models.TextField(default="")
    via = models.TextField()
    authenticated_by = models.TextField(default="", help_text="How the actor was known.")
    at = models.DateTimeField()
    data = models.TextField(default="{}", help_text="JSON.")
    digest = models.BinaryField(max_length=32)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["approval", "n"], name="entry_once"),
            models.UniqueConstraint(
                fields=["approval", "revision"], condition=Q(kind="verdict"), name="entry_one_verdict_per_revision"
            ),
            models.UniqueConstraint(
                fields=["approval", "revision", "actor"], condition=Q(kind="vote"), name="entry_one_vote_per_person"
            ),
            models.UniqueConstraint(fields=["approval"], condition=Q(kind="used"), name="entry_used_once"),
            models.CheckConstraint(condition=Q(n__gte=1, revision__gte=1), name="entry_counts_from_one"),
            models.CheckConstraint(condition=_one_of("kind", EntryKind), name="entry_kind_known"),
            models.CheckConstraint(condition=_one_of("via", Via), name="entry_via_known"),
            models.CheckConstraint(
                condition=~Q(kind="vote") | (_one_of("verdict", Choice) & Q(actor__isnull=False)),
                name="entry_vote_is_a_persons",
            ),
            models.CheckConstraint(
                condition=~Q(kind="verdict") | (_one_of("verdict", Status) & ~Q(verdict="waiting")),
                name="entry_verdict_is_an_end",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.approval_id} {self.n} {self.kind}"
