"""What Signoff did not write: refused by the database, or found, and never acted on."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from approvals import queries
from approvals.errors import AlreadyDecided, Altered
from approvals.models import Approval, Entry, PolicyVersion, Revision
from approvals.verifying import verify
from journal.models import Run
from tests.approvals.scene import Scene, meddle

# ---------------------------------------------------------------- what the database refuses


@pytest.mark.parametrize("model", [PolicyVersion, Revision, Entry])
def test_the_record_is_append_only(scene: Scene, model: Any) -> None:
    scene.start()
    row = model.objects.first()
    with pytest.raises(IntegrityError, match="append-only"):
        model.objects.filter(pk=row.pk)._raw_delete("default")
    column = {"PolicyVersion": "version", "Revision": "number", "Entry": "n"}[model.__name__]
    with pytest.raises(IntegrityError, match="append-only"):
        model.objects.filter(pk=row.pk).update(**{column: 99})


def test_an_end_is_an_end(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara", "reject")
    for status in ("approved", "waiting", "expired"):
        with pytest.raises(IntegrityError):
            Approval.objects.filter(pk=approval.pk).update(status=status)
    with pytest.raises(IntegrityError, match="cannot change"):
        Approval.objects.filter(pk=approval.pk).update(idempotency_key="another")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        Approval.objects.filter(pk=approval.pk)._raw_delete("default")


# ---------------------------------------------------------------- meddling

FORGED_VERDICT = """
INSERT INTO approvals_entry (approval_id, n, kind, revision, verdict, actor_name, groups, reason, via,
                             authenticated_by, at, data, digest)
SELECT id, 2, 'verdict', 1, 'approved', 'mara', '{}', '', 'browser', '', now(), '{}', sha256('x')
FROM approvals_approval
"""
ALTERED = [
    "UPDATE approvals_approval SET status = 'approved', decided_at = now(), decided_via = 'browser'",
    "UPDATE approvals_approval SET starter_id = NULL, starter_name = 'someone'",
    "UPDATE approvals_approval SET owner_name = 'tomas'",
    "UPDATE approvals_approval SET deadline_at = NULL",
    "UPDATE approvals_approval SET summary = 'Refund 1.00'",
    "UPDATE approvals_approval SET risk = 'low'",
    "UPDATE approvals_approval SET idempotency_key = 'x'",
    "UPDATE approvals_approval SET count = 7",
    "UPDATE approvals_approval SET head = sha256('x')",
    "UPDATE approvals_revision SET args = replace(args, '100.00', '900.00')",
    "UPDATE approvals_revision SET summary = 'Refund 1.00'",
    "UPDATE approvals_revision SET facts = '{}'",
    "UPDATE approvals_revision SET digest = sha256('x')",
    "UPDATE approvals_entry SET at = at - interval '1 hour'",
    "UPDATE approvals_entry SET data = '{}'",
    "DELETE FROM approvals_entry",
    "DELETE FROM approvals_revision",
    "UPDATE approvals_policyversion SET spec = jsonb_set(spec, '{four_eyes}', '[]')",
    "UPDATE approvals_policyversion SET spec = jsonb_set(spec, '{seats,0,group}', '\"support\"'), digest = sha256('x')",
    FORGED_VERDICT,
]


@pytest.mark.parametrize("statement", ALTERED)
def test_a_request_that_was_altered_is_found_blocks_its_run_and_is_not_decided(scene: Scene, statement: str) -> None:
    """AUTHORITY 15, CASES C9: nothing runs on a row that Signoff did not write."""
    approval = scene.start("100.00")
    meddle(statement)
    assert verify(scene.run(approval))
    with pytest.raises(Altered):
        scene.decide(approval, "mara")
    scene.work()
    run = scene.run(approval)
    assert run.status == "blocked"
    assert approval.id in str(run.blocked)
    assert scene.calls == []


def test_a_cut_tail_is_found(scene: Scene) -> None:
    approval = scene.start()
    scene.decide(approval, "mara", "reject")
    first = approval.entries.get(n=1)
    meddle(
        "DELETE FROM approvals_entry WHERE n > 1",
        "UPDATE approvals_approval SET status = 'waiting', decided_at = NULL, decided_by_id = NULL,"
        f" decided_by_name = '', decided_via = '', reason = '', count = 1, head = '\\x{bytes(first.digest).hex()}'",
    )
    assert f"approval {approval.id}: its row and its entries do not fit their seal" in verify(scene.run(approval))


def test_an_approval_that_was_removed_is_missed(scene: Scene) -> None:
    approval = scene.start()
    meddle("DELETE FROM approvals_entry", "DELETE FROM approvals_revision", "DELETE FROM approvals_approval")
    (finding,) = verify(Run.objects.get(pk=approval.run_id))
    assert finding.startswith(f"approval {approval.id} (event ")


# ---------------------------------------------------------------- what is there twice


def test_a_second_verdict_is_forbidden_by_the_database(scene: Scene) -> None:
    """CASES C4"""
    approval = scene.start()
    scene.decide(approval, "mara")
    verdict = approval.entries.get(kind="verdict")
    verdict.pk, verdict.n, verdict.verdict = None, 9, "rejected"
    with pytest.raises(IntegrityError, match="entry_one_verdict_per_revision"):
        verdict.save(force_insert=True)


def test_with_a_second_verdict_in_the_log_the_first_counts_and_everything_opens(scene: Scene) -> None:
    """CASES C4: even if the constraint were gone."""
    approval = scene.start()
    scene.decide(approval, "mara")
    constraint = next(found for found in Entry._meta.constraints if found.name == "entry_one_verdict_per_revision")
    with connection.schema_editor() as editor:
        editor.remove_constraint(Entry, constraint)
    try:
        forged = approval.entries.get(kind="verdict")
        forged.pk, forged.n, forged.verdict, forged.actor_name = None, forged.n + 1, "rejected", "tomas"
        forged.save(force_insert=True)

        detail = queries.detail(scene.user("mara"), approval)
        assert not detail.is_altered
        assert detail.approval.status == "approved"
        assert [entry.verdict for entry in detail.entries if entry.kind == "verdict"] == ["approved"]
        (listed,) = queries.with_votes(queries.decided(scene.user("mara")))
        assert queries.describe(listed)["status"] == "approved"
        with pytest.raises(AlreadyDecided, match="approved by mara"):
            scene.decide(approval, "tomas")
        assert scene.result(approval) == "refunded 100.00"
        assert len(scene.calls) == 1
        assert verify(scene.run(approval)) == [f"approval {approval.id}: entry 4 does not belong to it"]
    finally:
        meddle(f"DELETE FROM approvals_entry WHERE approval_id = '{approval.id}' AND n = 4")
        with connection.schema_editor() as editor:
            editor.add_constraint(Entry, constraint)
