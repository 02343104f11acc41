"""A worker dies at each append of a workflow with every kind of event; the run ends as if nothing had happened."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from approvals.decisions import decide
from approvals.models import Approval
from approvals.people import add_person
from journal import runs
from journal.describing import describe_run
from journal.models import Run
from journal.verifying import verify_run
from tests import counts
from tests.crashing import Crashing
from tests.harness import LOST, Service
from tests.workflows import every_kind

DEATHS = counts.of(1000)
WHEN = ("before", "inside", "after", "cut")
CHANGING = ("at", "seq", "reference", "approval", "digest", "key", "until", "retry_at", "message", "traceback", "value")


@pytest.fixture
def workers(service: Service) -> Iterator[Crashing]:
    service.broker = LOST
    service.env["SIGNOFF_WORKFLOWS"] = "tests.workflows.every_kind"
    service.rows(every_kind.CREATE)
    for name, groups in (("clerk", []), ("lead", []), ("mara", ["finance"])):
        add_person(name, groups=groups, role="reviewer")
    crashing = Crashing(service.environment())
    yield crashing
    crashing.close()


def to_the_end(workers: Crashing, name: str, at: int, when: str) -> tuple[Run, int, int]:
    """A run whose worker dies at append `at`, and that others bring to its end.

    The run, the deaths, and the appends that one undisturbed worker would have made."""
    clerk = get_user_model()._default_manager.get(username="clerk")
    started = runs.start(getattr(every_kind, name), Decimal("1.50"), actor=clerk)
    if name == "every_kind":
        runs.signal(started.id, "go", "came")
    deaths = appends = 0
    for _ in range(200):
        died, made = workers.work(at=max(0, at - appends), when=when) if at > appends else workers.work()
        deaths += died
        appends += made
        run = Run.objects.get(pk=started.id)
        if run.status in ("completed", "failed"):
            return run, deaths, appends
        assert run.status in ("waiting", "ready", "running"), (run.status, run.blocked)
        answer_what_waits(run)
    raise AssertionError(f"run {started.id} does not end: {run.status}")


def answer_what_waits(run: Run) -> None:
    mara = get_user_model()._default_manager.get(username="mara")
    for approval in Approval.objects.filter(run=run, status="waiting"):
        revision = approval.revisions.get(number=approval.revision)
        verdict = "reject" if "66" in approval.summary else "approve"
        digest = bytes(revision.digest).hex()
        decide(approval, revision=1, digest=digest, actor=mara, verdict=verdict, reason="as planned", via="command")


def history(run: Run) -> list[Any]:
    """What must be the same, however often workers died: all but times, ids and keys."""
    shown = describe_run(run)
    return [
        {**event, "at": None, "data": {k: v for k, v in event["data"].items() if k not in CHANGING}}
        for event in without_texts(shown["events"])
    ]


def without_texts(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for event in events:
        error = event["data"].get("error")
        if error:
            event["data"]["error"] = {name: error[name] for name in ("type", "class") if name in error}
    return events


@pytest.mark.parametrize("name", ["every_kind", "fails_at_the_end"])
def test_the_run_ends_as_an_undisturbed_one(workers: Crashing, service: Service, name: str) -> None:
    undisturbed, _, appends = to_the_end(workers, name, 0, "before")
    expected, places = history(undisturbed), Counter(effects(service, undisturbed))
    assert set(places.values()) <= {1, 3}
    chance = random.Random(counts.SEED)
    points = [(at, when) for at in range(1, appends + 1) for when in WHEN]
    share = max(1, DEATHS // 2)
    while len(points) < share:
        points += points
    died = 0
    for at, when in chance.sample(points, share):
        run, deaths, _ = to_the_end(workers, name, at, when)
        died += deaths
        assert deaths == (when != "cut"), (at, when)
        assert history(run) == expected, f"died {when} append {at}"
        assert verify_run(run) == [], f"died {when} append {at}"
        again = Counter(effects(service, run)) - places
        assert sum(again.values()) <= deaths, f"died {when} append {at}: executed again: {again}"
        assert len(keys(service, run)) == len(places), "one idempotency key for each position"
    print(json.dumps({"workflow": name, "appends": appends, "points": share, "deaths": died, "seed": counts.SEED}))


def effects(service: Service, run: Run) -> list[str]:
    return [row["path"] for row in service.rows("SELECT path FROM effects WHERE run = %s", run.pk)]


def keys(service: Service, run: Run) -> set[str]:
    return {row["key"] for row in service.rows("SELECT DISTINCT key FROM effects WHERE run = %s", run.pk)}
