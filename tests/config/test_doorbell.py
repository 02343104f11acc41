"""The default broker: pgmq over the service's own PostgreSQL."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from celery import Celery
from psycopg.conninfo import conninfo_to_dict

from config.broker import celery_settings
from config.database import conninfo
from tests.harness import Service
from tests.waiting import wait_for


def _written(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


@pytest.fixture
def publisher(service: Service) -> Celery:
    """A Celery app of another process than the worker's: this one."""
    app = Celery("publisher", set_as_current=False)
    app.config_from_object(celery_settings("", conninfo(conninfo_to_dict(service.url))))
    return app


def test_a_bell_reaches_a_worker_within_milliseconds(service: Service, publisher: Celery, tmp_path: Path) -> None:
    service.start_worker("--include", "tests.config.bells")
    delays = []
    for number in range(20):
        file = tmp_path / str(number)
        rung_at = time.time()
        publisher.send_task("tests.note_bell", [str(file)])
        delays.append(float(wait_for(partial(_written, file))) - rung_at)
    assert statistics.median(delays) < 0.05
    publisher.close()


def test_bells_ring_on_after_a_restart_of_postgresql(service: Service, publisher: Celery, tmp_path: Path) -> None:
    service.start_worker("--include", "tests.config.bells")
    service.restart_postgres()
    file = tmp_path / "bell"

    def heard() -> bool:
        publisher.send_task("tests.note_bell", [str(file)])
        return file.exists()

    wait_for(heard, timeout=20, what="a bell after the restart", every=0.2)
    publisher.close()


# kombu silences it for as long as it connects; three threads that do so at once undo each other's silence.
@pytest.mark.filterwarnings("ignore:list_queues:UserWarning")
def test_workers_that_start_together_all_start(service: Service, publisher: Celery) -> None:
    """Each of them declares the queue; pgmq's own way ended all but one with DuplicateObject."""

    def declare() -> None:
        with publisher.connection_for_write() as connection, connection.channel() as channel:
            publisher.amqp.queues["signoff"].bind(channel).declare()

    def held_up() -> int:
        query = "SELECT count(DISTINCT pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        return int(service.value(query + "WHERE NOT granted AND datname = current_database()"))

    service.rows("SELECT pgmq.create('signoff')")
    with ThreadPoolExecutor(3) as pool, service.connect() as holder:
        holder.execute("LOCK TABLE pgmq.q_signoff IN ROW EXCLUSIVE MODE")
        declaring = [pool.submit(declare) for _ in range(3)]
        wait_for(lambda: held_up() == 3 or any(each.done() for each in declaring), what="all three are held up")
        holder.rollback()
        for each in declaring:
            each.result(timeout=10)
    query = "SELECT count(*) FROM pg_trigger WHERE tgname = 'trigger_notify_queue_insert_listeners'"
    assert service.value(query) == 1
