"""A small shop: people, a workflow whose refund needs approval, and hands to run, decide and meddle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
from django.contrib.auth import get_user_model
from django.db import connection

from approvals import Expired, Rejected, requires_approval
from approvals.decisions import Outcome, decide
from approvals.models import Approval, Entry
from approvals.people import add_person
from journal import current_step, runs, step, workflow
from journal.models import Run
from journal.workflows import Workflow
from tests.journal.inprocess import TestHolder
from tests.waiting import wait_for

MEMBERS = (
    ("mara", "finance", "reviewer"),
    ("tomas", "finance,support", "reviewer"),
    ("clerk", "finance", "reviewer"),
    ("lead", "finance", "operator"),
    ("sam", "support", "reviewer"),
    ("vera", "finance", "viewer"),
    ("olga", "", "operator"),
)


@dataclass
class Scene:
    """What a test has at hand; `calls` is every call that the outside world got: its key and its arguments."""

    handle: Workflow[..., str]
    calls: list[tuple[str, str, Decimal]] = field(default_factory=list)
    holder: TestHolder = field(default_factory=TestHolder)

    def user(self, name: str) -> Any:
        return get_user_model().objects.get(username=name)

    def start(
        self, amount: str = "100.00", *, order: str = "10482", matched: bool = False, actor: Any = "clerk", **more: Any
    ) -> Approval:
        """A run up to its approval. `actor` names a person; a service's name is given as it is."""
        known = get_user_model().objects.filter(username=actor).first() if isinstance(actor, str) else actor
        run = runs.start(self.handle, order, Decimal(amount), matched, actor=known or actor, **more)
        self.work()
        return Approval.objects.get(run=run.id)

    def work(self) -> None:
        self.holder.work()

    def decide(self, approval: Approval, name: str, verdict: str = "approve", **more: Any) -> Outcome:
        """Decides on what `approval` says, as it was when the test got it."""
        revision = approval.revisions.filter(number=approval.revision).first()
        said: dict[str, Any] = {
            "revision": approval.revision,
            "digest": bytes(revision.digest).hex() if revision else "",
            "reason": "because" if verdict == "reject" else "",
            "via": "browser",
        }
        return decide(approval.id, actor=self.user(name), verdict=verdict, **(said | more))

    def result(self, approval: Approval) -> str:
        self.work()
        return str(runs.result(approval.run_id, timeout=0))

    def run(self, approval: Approval) -> Run:
        return Run.objects.get(pk=approval.run_id)

    def kinds(self, approval: Approval) -> list[tuple[str, str, str]]:
        """Its entries: kind, what was said, by whom."""
        return list(Entry.objects.filter(approval=approval).order_by("n").values_list("kind", "verdict", "actor_name"))


def make_scene() -> Scene:
    """Registers the workflow and adds the people."""
    for name, groups, role in MEMBERS:
        add_person(name, groups=groups.split(","), role=role)
    calls: list[tuple[str, str, Decimal]] = []

    @requires_approval(
        policy="refunds",
        summary=lambda order_id, amount, **_: f"Refund {amount} for order {order_id}",
        facts=lambda amount, **_: {"large": amount > 500},
    )
    @step
    def refund(order_id: str, amount: Decimal, matched: bool) -> str:
        calls.append((current_step().idempotency_key, order_id, amount))
        return f"refunded {amount}"

    @workflow(owner="lead")
    def handle_return(order_id: str, amount: Decimal, matched: bool) -> str:
        try:
            return refund(order_id, amount, matched)
        except Rejected as no:
            return f"not refunded: {no.reason} ({no.by})"
        except Expired:
            return "not refunded: nobody decided in time"

    return Scene(handle_return, calls)


# ---------------------------------------------------------------- time and force


@contextmanager
def moved_clock(by: timedelta) -> Iterator[None]:
    """The database's clock, moved; every deadline is compared with it."""
    body = "CREATE OR REPLACE FUNCTION journal_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ {} $$"
    with connection.cursor() as cursor:
        cursor.execute(body.format(f"SELECT clock_timestamp() + interval '{by.total_seconds()} seconds'"))
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(body.format("SELECT clock_timestamp()"))


def meddle(*statements: str) -> None:
    """Writes to the database as somebody who may do anything there, but has no key."""
    tables = ("approvals_approval", "approvals_revision", "approvals_entry", "approvals_policyversion")
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for statement in statements:
            cursor.execute(statement)
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


# ---------------------------------------------------------------- races


class Racer(threading.Thread):
    """Calls a function on a connection of its own, and keeps what came of it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.value: Any = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.value = self._call()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            connection.close()

    def outcome(self) -> Any:
        """What it returned or raised."""
        self.join(20)
        assert not self.is_alive()
        return self.error or self.value


@contextmanager
def another_session() -> Iterator[psycopg.Connection[Any]]:
    """A second, plain connection to the test's database."""
    params = connection.get_connection_params()
    wanted = {name: params[name] for name in ("host", "port", "dbname", "user", "password") if params.get(name)}
    with psycopg.connect(**wanted) as session:
        yield session


@contextmanager
def locked_run(approval: Approval, waiters: int) -> Iterator[Callable[[], None]]:
    """Holds the run's lock. The yielded function waits until so many sessions are seen waiting for it; then the
    lock is given up, at the end of the block."""
    with another_session() as session:
        session.execute("SELECT id FROM journal_run WHERE id = %s FOR NO KEY UPDATE", [approval.run_id])

        def all_wait() -> bool:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND wait_event_type = 'Lock' AND query LIKE '%journal_run%'"
                )
                return bool(cursor.fetchone()[0] >= waiters)

        def wait() -> None:
            wait_for(all_wait, what=f"{waiters} sessions wait for the run's lock")

        yield wait
