"""A run that kills its worker is found out, and its neighbours are never blamed."""

from __future__ import annotations

import pytest

from journal import leases, registry, runs, statements, step, sweeping, workflow
from journal.models import Run
from tests.journal.inprocess import TestHolder

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="poisoning.innocent")
def innocent() -> str:
    return "done"


@workflow(name="poisoning.poison")
def poison() -> str:
    return "done"


def dies(holder: TestHolder) -> None:
    leases.declare_dead(holder.row.pk, "proved")


def test_after_two_deaths_it_is_claimed_alone_and_after_five_alone_it_is_blocked() -> None:
    run = runs.start(poison)
    for count in range(1, 3):
        holder = TestHolder()
        assert holder.claim() == (run.id, count)
        dies(holder)
    assert TestHolder().claim(idle=False) is None, "a worker that holds something does not take it"
    for count in range(3, 8):
        holder = TestHolder("code-a")
        assert holder.claim() == (run.id, count)
        assert Run.objects.get(pk=run.id).is_alone
        dies(holder)
    row = Run.objects.get(pk=run.id)
    assert row.status == "blocked"
    assert row.blocked is not None
    assert row.blocked["reason"] == "its worker died 5 times while it held this run and nothing else"
    assert row.blocked_by == ["code-a"]
    assert TestHolder("code-a").claim() is None


def test_other_code_may_try_a_blocked_one_once_and_progress_clears_it() -> None:
    run = runs.start(poison)
    Run.objects.filter(pk=run.id).update(
        status="blocked", blocked={"reason": "x", "path": ""}, blocked_by=["code-a"], deaths=7, deaths_alone=4
    )
    sweeping.unblock(registry.capabilities(), "code-b")
    holder = TestHolder("code-b")
    assert holder.claim() is not None
    dies(holder)
    assert Run.objects.get(pk=run.id).blocked_by == ["code-a", "code-b"]
    sweeping.unblock(registry.capabilities(), "code-c")
    TestHolder("code-c").work()
    row = Run.objects.get(pk=run.id)
    assert (row.status, row.deaths, row.deaths_alone) == ("completed", 0, 0)


def test_a_neighbour_in_the_same_worker_is_never_blocked() -> None:
    bad, good = runs.start(poison), runs.start(innocent)
    for _ in range(2):
        holder = TestHolder()
        assert {holder.claim()[0], holder.claim()[0]} == {bad.id, good.id}  # type: ignore[index]
        dies(holder)
    assert set(Run.objects.values_list("deaths", "deaths_alone")) == {(2, 0)}
    holder = TestHolder()
    claim = holder.claim()
    assert claim is not None
    assert holder.claim(idle=False) is None, "the other suspect is not taken along"
    dies(holder)
    assert Run.objects.get(pk=claim[0]).deaths_alone == 1
    assert Run.objects.exclude(pk=claim[0]).get().deaths_alone == 0


def test_progress_between_deaths_clears_the_count() -> None:
    done: list[int] = []

    @step
    def works() -> None:
        done.append(1)

    @workflow
    def long() -> None:
        works()

    run = runs.start(long)
    Run.objects.filter(pk=run.id).update(deaths=4, deaths_alone=3)
    TestHolder().work()
    assert Run.objects.get(pk=run.id).deaths_alone == 0


def test_a_worker_that_says_goodbye_is_not_held_against_its_runs() -> None:
    run = runs.start(poison)
    holder = TestHolder()
    holder.claim()
    leases.retire(holder.row.pk)
    assert Run.objects.get(pk=run.id).deaths == 0


def test_a_suspect_is_not_left_for_ever_where_no_worker_is_idle() -> None:
    """After half a minute busy workers stop for it."""
    suspect = runs.start(poison)
    Run.objects.filter(pk=suspect.id).update(deaths=2)
    other = runs.start(innocent)
    holder = TestHolder()
    assert holder.claim(idle=False) == (other.id, 1)
    runs.start(innocent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "CLAIM", statements.CLAIM.replace("30 seconds", "0 seconds"))
        assert holder.claim(idle=False) is None, "it takes nothing else any more"
        assert holder.claim(idle=True) == (suspect.id, 1)
