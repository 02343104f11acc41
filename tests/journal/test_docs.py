"""docs/events.md lists exactly the kinds of events that the code knows, with what each holds."""

from __future__ import annotations

import contextlib
import re
from decimal import Decimal

import pytest

from config.home import BASE_DIR
from journal import Retry, now, runs, sleep, step, wait_for_signal, workflow
from journal.describing import describe_run
from journal.errors import WaitTimeout
from journal.models import Run
from journal.states import EventKind
from tests.journal.inprocess import TestHolder

ROW = re.compile(r"^\| `(\w+)` \| .* \| (.*) \|$")


def documented() -> dict[str, set[str]]:
    lines = (BASE_DIR / "docs" / "events.md").read_text().splitlines()
    return {match[1]: set(re.findall(r"`(\w+)`", match[2])) for line in lines if (match := ROW.match(line))}


def test_the_page_lists_every_kind_and_no_other() -> None:
    assert set(documented()) == {str(kind) for kind in EventKind}


@pytest.mark.django_db(transaction=True)
def test_each_kind_holds_what_the_page_says() -> None:
    @step(retry=Retry(max_attempts=1))
    def fails(amount: Decimal) -> None:
        raise ValueError("no")

    @step
    def works(amount: Decimal) -> Decimal:
        return amount

    @workflow
    def everything() -> Decimal:
        now()
        sleep(0.01)
        works(Decimal(1))
        with contextlib.suppress(ValueError):
            fails(Decimal(2))
        with contextlib.suppress(WaitTimeout):
            wait_for_signal("never", timeout=0.01)
        wait_for_signal("go")
        return Decimal(3)

    run = runs.start(everything)
    runs.signal(run.id, "go")
    holder = TestHolder()
    while Run.objects.get(pk=run.id).status != "completed":
        holder.work()
    said = documented()
    for event in describe_run(Run.objects.get(pk=run.id))["events"]:
        assert set(event["data"]) <= said[event["kind"]], event["kind"]
        assert event["data"] or event["kind"] in ("timer_fired", "value_drawn")
