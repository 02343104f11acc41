from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TRIGGERS = (Path(__file__).parents[1] / "sql" / "triggers.sql").read_text()


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("journal", "0001_journal"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(db_collation="C")),
                ("version", models.IntegerField(help_text="Counts from 1 for each name, in the order of first use.")),
                ("digest", models.BinaryField(help_text="SHA-256 of `spec` as canonical JSON.", max_length=32)),
                ("spec", models.JSONField(help_text="The policy with its defaults: approvals.policies.Policy.")),
                (
                    "groups",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        help_text="The groups of its seats: whom its requests concern.",
                        size=None,
                    ),
                ),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [django.contrib.postgres.indexes.GinIndex(fields=["groups"], name="policy_groups")],
                "constraints": [
                    models.UniqueConstraint(fields=("name", "version"), name="policy_version_once"),
                    models.UniqueConstraint(fields=("name", "digest"), name="policy_content_once"),
                    models.CheckConstraint(condition=models.Q(("version__gte", 1)), name="policy_version_from_one"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                ("id", models.CharField(db_collation="C", max_length=14, primary_key=True, serialize=False)),
                ("generation", models.IntegerField()),
                ("branch", models.IntegerField()),
                ("path", models.TextField(db_collation="C")),
                ("attempt", models.IntegerField()),
                ("idempotency_key", models.TextField(db_collation="C", help_text="Of the one call that it is for.")),
                ("action", models.TextField(help_text="The step's name.")),
                ("risk", models.TextField()),
                ("summary", models.TextField(help_text="One line for lists; the revision has the whole.")),
                (
                    "starter_name",
                    models.TextField(help_text='A user name, the name of a service, or "" when nobody knows.'),
                ),
                ("owner_name", models.TextField(help_text='A user name, or "".')),
                ("status", models.TextField(default="waiting")),
                ("revision", models.IntegerField(default=1, help_text="The current one.")),
                ("created_at", models.DateTimeField()),
                ("deadline_at", models.DateTimeField(null=True)),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "decided_by_name",
                    models.TextField(default="", help_text="As it was then; or what decided in a person's place."),
                ),
                ("decided_via", models.TextField(default="")),
                ("reason", models.TextField(default="", help_text="Of the verdict.")),
                ("used_at", models.DateTimeField(null=True)),
                ("void_reason", models.TextField(default="", help_text="Why an approved one will not be used.")),
                ("count", models.IntegerField(help_text="How many entries it has.")),
                ("head", models.BinaryField(help_text="The seal over the last entry and this row.", max_length=32)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decided_approvals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="approvals", to="journal.run"
                    ),
                ),
                (
                    "starter",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approvals",
                        to="approvals.policyversion",
                    ),
                ),
            ],
            options={
                "permissions": [("decide_approval", "Can decide approvals that concern their groups")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.IntegerField()),
                ("args", models.TextField(help_text="Codec text of the effective arguments by name.")),
                ("summary", models.TextField()),
                ("facts", models.TextField(help_text="Codec text of what the author's code says about the arguments.")),
                ("digest", models.BinaryField(max_length=32)),
                ("proposer_name", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="revisions", to="approvals.approval"
                    ),
                ),
                (
                    "proposer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("n", models.IntegerField()),
                ("kind", models.TextField()),
                ("revision", models.IntegerField()),
                ("verdict", models.TextField(default="", help_text="What was said, or what it came to.")),
                ("actor_name", models.TextField(default="", help_text="As it was then.")),
                (
                    "groups",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, help_text="The actor's groups then.", size=None
                    ),
                ),
                ("reason", models.TextField(default="")),
                ("via", models.TextField()),
                ("authenticated_by", models.TextField(default="", help_text="How the actor was known.")),
                ("at", models.DateTimeField()),
                ("data", models.TextField(default="{}", help_text="JSON.")),
                ("digest", models.BinaryField(max_length=32)),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="entries", to="approvals.approval"
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("approval", "n"), name="entry_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "verdict")),
                        fields=("approval", "revision"),
                        name="entry_one_verdict_per_revision",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "vote")),
                        fields=("approval", "revision", "actor"),
                        name="entry_one_vote_per_person",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "used")), fields=("approval",), name="entry_used_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("n__gte", 1), ("revision__gte", 1)), name="entry_counts_from_one"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["requested", "refused", "vote", "verdict", "used", "void"])),
                        name="entry_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("via__in", ["workflow", "browser", "command", "rule", "deadline", "earlier"])
                        ),
                        name="entry_via_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "vote"), _negated=True),
                            models.Q(
                                ("verdict__in", ["approve", "reject", "ask_changes", "take_back"]),
                                ("actor__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="entry_vote_is_a_persons",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "verdict"), _negated=True),
                            models.Q(
                                (
                                    "verdict__in",
                                    ["waiting", "approved", "rejected", "changes_asked", "expired", "withdrawn"],
                                ),
                                models.Q(("verdict", "waiting"), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="entry_verdict_is_an_end",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                models.OrderBy(models.F("deadline_at"), nulls_last=True),
                models.F("id"),
                condition=models.Q(("decided_at", None)),
                name="approval_waiting",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("decided_at", None)), fields=["policy", "deadline_at"], name="approval_for_policy"
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("decided_at__isnull", False)),
                fields=["-decided_at", "-id"],
                name="approval_decided",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(fields=["-created_at", "-id"], name="approval_newest"),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                fields=("run", "generation", "branch", "path"), name="approval_once_per_position"
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["waiting", "approved", "rejected", "changes_asked", "expired", "withdrawn"])
                ),
                name="approval_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(("risk__in", ["low", "medium", "high", "critical"])), name="approval_risk_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(("count__gte", 1), ("revision__gte", 1)), name="approval_counts_from_one"
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_at__isnull", True), ("decided_via", ""), ("status", "waiting")),
                    models.Q(
                        models.Q(("status", "waiting"), _negated=True),
                        ("decided_at__isnull", False),
                        models.Q(("decided_via", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="approval_decided_has_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("used_at__isnull", True), models.Q(("status", "approved"), ("void_reason", "")), _connector="OR"
                ),
                name="approval_used_only_if_approved",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(("void_reason", ""), ("status", "approved"), _connector="OR"),
                name="approval_void_only_if_approved",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "rejected"), _negated=True),
                    models.Q(("reason", ""), _negated=True),
                    _connector="OR",
                ),
                name="approval_rejected_has_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("decided_by__isnull", True),
                    ("decided_via__in", ["browser", "command", "earlier"]),
                    _connector="OR",
                ),
                name="approval_person_decides_in_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="revision",
            constraint=models.UniqueConstraint(fields=("approval", "number"), name="revision_once"),
        ),
        migrations.AddConstraint(
            model_name="revision",
            constraint=models.CheckConstraint(condition=models.Q(("number__gte", 1)), name="revision_from_one"),
        ),
        migrations.RunSQL(TRIGGERS, "DROP FUNCTION approvals_only_forward CASCADE"),
    ]
