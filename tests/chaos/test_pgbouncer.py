"""Everything behind a real pgbouncer in transaction mode: it keeps no session, and drops what `options` would set."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from psycopg.conninfo import conninfo_to_dict

from journal import leases, runs, statements
from tests import counts
from tests.agents.test_returns_end_to_end import play_through
from tests.chaos.servers import PgBouncer
from tests.chaos.test_deaths import completed, holder_of
from tests.conftest import bind_django
from tests.harness import Service
from tests.waiting import wait_for
from tests.workflows import plain
from tests.workflows.returns_slow import marks, open_gate

pytestmark = pytest.mark.timeout(600)
WHAT_IS_LOST = "a pooler stands before the database, and no session is kept"


@pytest.fixture
def pgbouncer(service: Service, tmp_path: Path) -> Iterator[PgBouncer]:
    """The service's processes are behind it; the test itself is not. The database is not set up as we would have it."""
    for setting in ("TimeZone = 'Asia/Kolkata'", "default_transaction_isolation = 'repeatable read'"):
        service.rows(f"ALTER DATABASE {service.database} SET {setting}")
    made = PgBouncer(tmp_path, service.url)
    made.start()
    service.env["DATABASE_URL"] = made.url
    yield made
    made.stop()


@pytest.fixture
def two_workers(service: Service, pgbouncer: PgBouncer) -> None:
    service.env["SIGNOFF_WORKFLOWS"] = "tests.workflows.plain"
    for _ in range(2):
        service.start_worker()


def each_has_said_once_what_is_lost(service: Service) -> bool:
    return [worker.output().count(WHAT_IS_LOST) for worker in service.children] == [1, 1]


def prepared(pgbouncer: PgBouncer) -> set[str]:
    """What any of its sessions with PostgreSQL keeps prepared: it hands them out in turn."""
    with psycopg.connect(pgbouncer.url, autocommit=True, prepare_threshold=None) as client:
        asked = [client.execute("SELECT statement FROM pg_prepared_statements").fetchall() for _ in range(50)]
    return {statement for found in asked for (statement,) in found}


def test_returns_are_refunded_as_the_oracle_says(
    service: Service, pgbouncer: PgBouncer, real_data: Path, tmp_path: Path
) -> None:
    """By rule and by people's decisions, on the first rows of the real file."""
    rows = (real_data / "returns.csv").read_bytes().splitlines(keepends=True)
    (tmp_path / "returns.csv").write_bytes(b"".join(rows[: counts.of(len(rows), at_least=200)]))
    (tmp_path / "orders.csv").symlink_to(real_data / "orders.csv")
    play_through(service, tmp_path, seed=6)
    assert each_has_said_once_what_is_lost(service)
    assert "got packet 'A'" not in pgbouncer.log(), "a notification came for somebody who had listened"


def test_no_statement_is_answered_by_another_of_its_name(service: Service, pgbouncer: PgBouncer) -> None:
    """Both connections would call their first prepared statement the same."""
    bind_django(dict(conninfo_to_dict(pgbouncer.url)))
    wrong: list[object] = []
    together = threading.Barrier(2)

    def ask(factor: int) -> None:
        try:
            for number in range(20):
                together.wait(10)
                answer = statements.rows(f"SELECT %s::int * {factor}", [number])
                if answer != [(number * factor,)]:
                    wrong.append(answer)
        except Exception as error:  # noqa: BLE001 - shown below
            wrong.append(error)
            together.abort()
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(factor,)) for factor in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize(("where", "grade"), [("on this machine", "proved"), ("on another machine", "stale")])
def test_a_killed_worker_s_step_begins_again_elsewhere(
    service: Service, pgbouncer: PgBouncer, tmp_path: Path, where: str, grade: str
) -> None:
    if where == "on another machine":  # neither can look for the other's process
        service.rows("UPDATE journal_worker SET machine = pid::text")
    run = runs.start(plain.three_steps, str(tmp_path))
    wait_for(lambda: marks(tmp_path, "second"), 20, "the step begins")
    next(worker for worker in service.children if worker.pid == holder_of(service, run.id)).kill()
    wait_for(lambda: len(marks(tmp_path, "second")) == 2, leases.LEASE + 10, "it begins again")
    open_gate(tmp_path, "second")
    completed(service, run.id)
    assert [len(marks(tmp_path, place)) for place in ("first", "second", "third")] == [1, 2, 1]
    assert service.value("SELECT freed_by FROM journal_run WHERE id = %s", run.id) == grade
    assert service.json("verify_journal")["broken"] == []
    assert prepared(pgbouncer) == set()


@pytest.mark.usefixtures("two_workers")
def test_a_worker_that_cannot_beat_is_not_suspected_by_sessions_that_the_pooler_closes(
    service: Service, pgbouncer: PgBouncer, tmp_path: Path
) -> None:
    """A step in C code stops the heartbeat for longer than the grace; where a lock was held, no session is any more."""
    age = "SELECT extract(epoch FROM clock_timestamp() - max(started_at)) FROM journal_worker"
    wait_for(lambda: service.value(age) > leases.GRACE + 1, 20, "each may judge the other")
    run = runs.start(plain.gil_step, str(tmp_path), leases.GRACE + 4)

    def ended() -> bool:
        pgbouncer.reconnect()
        assert len(marks(tmp_path, "gil")) <= 1
        return bool(service.value("SELECT status FROM journal_run WHERE id = %s", run.id) == "completed")

    wait_for(ended, 40, "the run completes", every=2)
    assert service.rows("SELECT id FROM journal_worker WHERE death IS NOT NULL") == []


@pytest.mark.usefixtures("two_workers")
def test_a_result_outlives_the_pooler_s_absence(service: Service, pgbouncer: PgBouncer, tmp_path: Path) -> None:
    """It is gone when the step ends, and the waiting result is written when it is back."""
    run = runs.start(plain.three_steps, str(tmp_path))
    wait_for(lambda: marks(tmp_path, "second"), 20, "the step begins")
    holder = next(worker for worker in service.children if worker.pid == holder_of(service, run.id))
    pgbouncer.stop()
    open_gate(tmp_path, "second")
    wait_for(lambda: "the database was lost while" in holder.output(), 20, "the result has nowhere to go")
    pgbouncer.start()
    completed(service, run.id)
    assert [len(marks(tmp_path, place)) for place in ("first", "second", "third")] == [1, 1, 1]
    assert service.json("verify_journal")["broken"] == []
    wait_for(lambda: len(service.json("list_workers")) == 2, 20, "both workers are there")
    assert each_has_said_once_what_is_lost(service)


def test_every_session_tells_times_in_utc(pgbouncer: PgBouncer) -> None:
    """One that is not Django's too: what reads a time for Django takes it to be in UTC, whatever the session says."""
    with psycopg.connect(pgbouncer.url) as session:
        assert session.execute("SHOW TimeZone").fetchone() == ("UTC",)
