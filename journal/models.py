"""The journal's tables.

Lock order, everywhere: run, then approval, then the run's messages and waits. No transaction locks two
runs, but for the delivery trigger (journal/sql/triggers.sql), which locks them in the order of their ids.
Rows are written by the statements in journal/statements.py; these models are for reading and for migrations.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from journal.states import EventKind, MessageKind, RunStatus, WaitKind

ID: Any = {"max_length": 14, "db_collation": "C"}


def _one_of(field: str, choices: type[EventKind | MessageKind | RunStatus | WaitKind]) -> Q:
    return Q(**{f"{field}__in": [str(choice) for choice in choices]})


class Worker(models.Model):
    """A worker process that lives, or lived. Its identity on its machine is what a death is proved by."""

    pid = models.IntegerField()
    host = models.TextField(help_text="For people.")
    machine = models.TextField(help_text="Boot id and pid namespace: where the pid means something.")
    process_started = models.BigIntegerField(help_text="The process's start, in clock ticks since boot.")
    capabilities = ArrayField(models.TextField(), help_text='What it can run: "workflow@version".')
    fingerprint = models.TextField(help_text="Of the authors' code that it has loaded.")
    started_at = models.DateTimeField(db_default=Now())
    heartbeat_at = models.DateTimeField(db_default=Now())
    is_watched = models.BooleanField(db_default=True, help_text="Its session, if it is lost, makes others suspect it.")
    session_lost_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    death = models.TextField(null=True, help_text="proved, suspected or stale, if it was declared dead.")

    class Meta:
        indexes = [models.Index(fields=["heartbeat_at"], condition=Q(stopped_at=None), name="worker_living")]


class Run(models.Model):
    """One execution of a workflow. Holds no payload, so that lists never load one."""

    id = models.CharField(primary_key=True, **ID)
    workflow = models.TextField()
    version = models.IntegerField()
    code = models.TextField(help_text='"workflow@version": what a worker must have to claim it.')
    key = models.TextField(null=True, unique=True, db_collation="C")
    input_hash = models.BinaryField(max_length=32)
    status = models.TextField(default="ready")
    state_at = models.DateTimeField(help_text="Since when it has this status.")
    claim_at = models.DateTimeField(
        help_text="Its place in the queue: when it became ready, with a head start for woken and urgent runs."
    )
    priority = models.SmallIntegerField(default=0)
    labels = models.JSONField(default=dict)
    progress = models.TextField(default="")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    actor_name = models.TextField(default="", help_text="The starter: a user's name then, or a named service.")
    owner = models.TextField(default="", help_text="User name of the workflow's owner.")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    seq = models.IntegerField(default=0, help_text="How many events it has.")
    head = models.BinaryField(max_length=32, help_text="The seal over the last event's digest.")
    generation = models.IntegerField(default=0)
    branch = models.IntegerField(default=0)
    inbox_count = models.BigIntegerField(default=0, help_text="Messages ever delivered; bumped by the trigger.")

    epoch = models.IntegerField(default=0, help_text="Grows with each claim.")
    worker = models.ForeignKey(Worker, null=True, on_delete=models.SET_NULL, related_name="runs")
    claimed_at = models.DateTimeField(null=True)
    deaths = models.IntegerField(db_default=0, help_text="Workers that died with it since it last wrote an event.")
    deaths_alone = models.IntegerField(db_default=0, help_text="Those of them that held nothing else.")
    is_alone = models.BooleanField(db_default=False, help_text="Its worker holds nothing else, by intent.")
    freed_by = models.TextField(null=True, help_text="The grade of the death that freed it for the last claim.")

    fingerprint = models.TextField(default="", help_text="Of the code that last wrote to it.")
    blocked = models.JSONField(null=True, help_text="The difference between code and history.")
    blocked_by = ArrayField(models.TextField(), default=list, help_text="Fingerprints that met it.")
    error = models.JSONField(null=True, help_text='{"type", "message", "path"} of a failed run.')

    class Meta:
        constraints = [
            models.CheckConstraint(condition=_one_of("status", RunStatus), name="run_status_known"),
            models.CheckConstraint(
                condition=(Q(status="running") & Q(worker__isnull=False)) | ~Q(status="running"),
                name="run_running_has_worker",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["completed", "failed", "cancelled"], ended_at__isnull=False)
                | (~Q(status__in=["completed", "failed", "cancelled"]) & Q(ended_at__isnull=True)),
                name="run_ended_has_end",
            ),
            models.CheckConstraint(
                condition=Q(blocked__isnull=False) | ~Q(status="blocked"), name="run_blocked_has_difference"
            ),
        ]
        indexes = [
            models.Index(fields=["claim_at"], condition=Q(status="ready"), name="run_claimable"),
            models.Index(fields=["worker"], condition=Q(status="running"), name="run_held"),
            models.Index(fields=["code"], condition=Q(status="blocked"), name="run_blocked"),
            models.Index(fields=["-created_at", "-id"], name="run_newest"),
            models.Index(fields=["status", "-state_at", "-id"], name="run_by_status"),
            models.Index(fields=["workflow", "-created_at"], name="run_by_workflow"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.id}"


class Event(models.Model):
    """One thing that happened; append-only, gapless in `seq`, each chained to the one before."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    # No constraint to the run: the append updates the run's row in the same statement, and a foreign key
    # would look that row up once more for each event.
    run = models.ForeignKey(
        Run, on_delete=models.DO_NOTHING, related_name="events", db_constraint=False, db_index=False
    )
    seq = models.IntegerField()
    generation = models.IntegerField()
    branch = models.IntegerField()
    path = models.TextField(db_collation="C", help_text='The position in source order; "" for the run itself.')
    attempt = models.IntegerField()
    kind = models.TextField()
    name = models.TextField()
    args_digest = models.BinaryField(max_length=32, null=True)
    args = models.TextField(null=True, help_text="Codec text, if it is small and the first of its position.")
    data_hash = models.BinaryField(max_length=32, null=True)
    data = models.TextField(null=True, help_text="Codec text, if it is small; else a Payload has it.")
    at = models.DateTimeField()
    digest = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.CheckConstraint(condition=_one_of("kind", EventKind), name="event_kind_known")]


class Payload(models.Model):
    """A large value, stored once per run: never shared between runs, so that a purged run takes its own along."""

    pk = models.CompositePrimaryKey("run_id", "hash")
    run = models.ForeignKey(Run, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    hash = models.BinaryField(max_length=32)
    body = models.TextField()


class Message(models.Model):
    """The inbox: all that comes to a run from outside. Kept until a wait takes it."""

    run = models.ForeignKey(Run, on_delete=models.DO_NOTHING, related_name="messages", db_index=False)
    kind = models.TextField()
    name = models.TextField(help_text="A signal's name.")
    key = models.TextField(null=True, help_text="The sender's key: sent again with it, it is the same message.")
    generation = models.IntegerField(null=True)
    branch = models.IntegerField(null=True)
    path = models.TextField(null=True, db_collation="C")
    attempt = models.IntegerField(null=True)
    payload = models.TextField(help_text="Codec text.")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    actor_name = models.TextField(default="")
    sent_at = models.DateTimeField()
    mac = models.BinaryField(max_length=32, help_text="Keyed digest of what its sender said (journal.inbox).")
    arrived_at = models.DateTimeField(null=True, help_text="When its sender's transaction was committed.")
    taken_seq = models.IntegerField(null=True, help_text="The event that took it.")
    fate = models.TextField(null=True, help_text='Why nothing will take it: "late" or "run_ended".')

    class Meta:
        constraints = [
            models.CheckConstraint(condition=_one_of("kind", MessageKind), name="message_kind_known"),
            models.CheckConstraint(
                condition=Q(kind="signal") | Q(generation__isnull=False, branch__isnull=False, path__isnull=False),
                name="message_addressed_unless_signal",
            ),
            models.UniqueConstraint(
                fields=["run", "name", "key"], condition=Q(kind="signal", key__isnull=False), name="signal_sent_once"
            ),
        ]
        indexes = [
            models.Index(fields=["run", "id"], condition=Q(taken_seq=None, fate=None), name="message_open"),
            models.Index(fields=["run"], condition=Q(arrived_at=None), name="message_undelivered"),
        ]


class Wait(models.Model):
    """What a waiting run waits for. The rows exist only while its status is `waiting`."""

    pk = models.CompositePrimaryKey("run_id", "generation", "branch", "path")
    run = models.ForeignKey(Run, on_delete=models.DO_NOTHING, related_name="waits", db_constraint=False, db_index=False)
    generation = models.IntegerField()
    branch = models.IntegerField()
    path = models.TextField(db_collation="C")
    kind = models.TextField()
    name = models.TextField()
    reference = models.TextField(default="", help_text="For an approval: its id.")
    detail = models.TextField(default="", help_text="One line for people.")
    since = models.DateTimeField()
    due_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=_one_of("kind", WaitKind), name="wait_kind_known")]
        indexes = [models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="wait_due")]
