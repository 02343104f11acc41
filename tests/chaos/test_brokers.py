"""Brokers that refuse, say nothing, or refuse writes; messages doubled, reordered and gone. B1, B5, A30."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from journal import runs
from tests import counts
from tests.chaos.servers import RabbitMQ, Redis, Server, Silent
from tests.harness import PGMQ, Service
from tests.waiting import wait_for
from tests.workflows import plain
from tests.workflows.returns_slow import marks

pytestmark = pytest.mark.timeout(240)
ANSWER_WITHIN = 1.0
"""Seconds in which start and signal answer, whatever the broker does."""


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    yield from _running(Redis(tmp_path))


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[RabbitMQ]:
    yield from _running(RabbitMQ(tmp_path))


def _running(server: Any) -> Iterator[Any]:
    server.start()
    yield server
    server.thaw()
    server.stop()


@pytest.fixture
def farm(service: Service) -> Service:
    service.env["SIGNOFF_WORKFLOWS"] = "tests.workflows.plain"
    return service


START_AND_SIGNAL = """
import json, time
from journal import bells, registry, runs
registry.load_authors_modules()
workflow = registry.workflow_named("asks")
began = time.monotonic()
run = runs.start(workflow, {gates!r})
started = time.monotonic()
runs.signal(run.id, "answer", 1)
signalled = time.monotonic()
bells._ringer.flush(bells.FLUSH)
flushed = time.monotonic()
print(json.dumps(dict(id=run.id, start=started - began, signal=signalled - started, flush=flushed - signalled)))
"""


def disturbed(farm: Service, gates: Path, url: str, *, goes_on: bool = True) -> str:
    """Start and signal while the broker is of no use, timed inside the process that does it; the run goes on."""
    done = farm.manage("shell", "-v", "0", "-c", START_AND_SIGNAL.format(gates=str(gates)), SIGNOFF_BROKER_URL=url)
    assert done.code == 0, done.err
    took = json.loads(done.out.splitlines()[-1])
    assert took["start"] + took["flush"] < ANSWER_WITHIN, took
    assert took["signal"] + took["flush"] < ANSWER_WITHIN, took
    if goes_on:
        completed(farm, took["id"])
        assert len(marks(gates, "asked")) == len(marks(gates, "answered")) == 1
    return str(took["id"])


def completed(farm: Service, run_id: str, timeout: float = 20) -> None:
    try:
        wait_for(lambda: farm.value("SELECT status FROM journal_run WHERE id = %s", run_id) == "completed", timeout)
    except AssertionError:
        logs = "\n".join(child.output()[-3000:] for child in farm.children)
        raise AssertionError(f"run {run_id} did not complete in {timeout} s:\n{logs}") from None


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
@pytest.mark.parametrize("how", ["refused", "silent"])
def test_a_broker_that_refuses_or_says_nothing_holds_up_nobody(
    farm: Service, tmp_path: Path, scheme: str, how: str
) -> None:
    """B5: `delay()` with the broker down hangs without end. Its worker never gets a bell either."""
    silent = Silent()
    port = silent.port
    if how == "refused":
        silent.close()
    try:
        farm.start_worker()  # on the bells of the default broker, which nobody rings
        disturbed(farm, tmp_path, f"{scheme}://127.0.0.1:{port}//")
    finally:
        silent.close()


def test_redis_stopped_frozen_and_full(farm: Service, redis: Redis, tmp_path: Path) -> None:
    """B5 with the real one: workers on it keep working by their sweeps, and by bells when it is back."""
    farm.broker = redis.url
    worker = farm.start_worker()
    for name, harm, cure in (("stopped", redis.stop, redis.start), ("frozen", redis.freeze, redis.thaw)):
        gates = tmp_path / name
        gates.mkdir()
        harm()
        disturbed(farm, gates, redis.url)
        cure()
    (tmp_path / "full").mkdir()
    redis.refuse_writes()
    waiting = disturbed(farm, tmp_path / "full", redis.url, goes_on=False)
    redis.allow_writes()
    if not worker.is_alive:  # Celery ends on that error; whoever supervises it starts it again
        farm.start_worker()
    completed(farm, waiting)
    _rings_again(farm, redis, tmp_path)


def test_rabbitmq_stopped_and_frozen(farm: Service, rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    farm.broker = rabbitmq.url
    farm.start_worker()
    _rings_again(farm, rabbitmq, tmp_path)
    for name, harm, cure in (("frozen", rabbitmq.freeze, rabbitmq.thaw), ("stopped", rabbitmq.stop, rabbitmq.start)):
        gates = tmp_path / name
        gates.mkdir()
        harm()
        disturbed(farm, gates, rabbitmq.url)
        cure()


def _rings_again(farm: Service, server: Server, tmp_path: Path) -> None:
    """A run goes all its way with this broker."""
    gates = tmp_path / "again"
    gates.mkdir(exist_ok=True)
    run = farm.json("start_run", "naps", "--input", f'["{gates}", 0.1]')
    completed(farm, run["id"])
    assert server.url


@pytest.mark.parametrize("kind", ["pgmq", "redis"])
def test_messages_doubled_and_deleted_change_nothing(
    farm: Service, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """B1: a doubled message is a no-op; a deleted one is made up for by the sweep."""
    redis: Redis | None = request.getfixturevalue("redis") if kind == "redis" else None
    farm.broker = redis.url if redis else PGMQ
    worker = farm.start_worker()
    worker.pause()
    ids = []
    for _ in range(20):
        ids.append(farm_start(tmp_path))
        ring(farm, 20)
    if redis:
        redis.delete_all_messages()
    else:
        farm.rows("DELETE FROM pgmq.q_signoff WHERE msg_id % 2 = 0")
    ring(farm, 5)
    worker.proceed()
    for run_id in ids:
        completed(farm, run_id, timeout=30)
    assert len(marks(tmp_path, "woke")) == 20


def farm_start(gates: Path) -> str:
    return runs.start(plain.naps, str(gates), 0).id


def ring(farm: Service, times: int) -> None:
    """Bells by hand, through the service's own broker."""
    code = "from config.celery import app\nfor _ in range({}): app.send_task('journal.bell', queue='signoff')"
    done = farm.manage("shell", "-v", "0", "-c", code.format(times))
    assert done.code == 0, done.err


def test_a_short_visibility_timeout_repeats_no_effect(farm: Service, redis: Redis, tmp_path: Path) -> None:
    """B1: Redis hands a message out again that a worker still has; waits are rows, and hold none."""
    farm.broker = redis.url
    farm.env["SIGNOFF_TEST_VISIBILITY"] = "5"
    for _ in range(3):
        farm.start_worker()
    ids = [runs.start(plain.naps, str(tmp_path), 12).id for _ in range(10)]
    for run_id in ids:
        completed(farm, run_id, timeout=40)
    assert len(marks(tmp_path, "woke")) == 10


def test_a_decision_is_not_number_five_thousand(farm: Service, tmp_path: Path) -> None:
    """A30: with the slots busy and starts queued, a woken run is next: within 1.5 s in 19 of 20 cases."""
    starts = counts.of(5000, at_least=500)
    asked = [runs.start(plain.asks, str(tmp_path / f"asked-{n}")).id for n in range(20)]
    for n in range(20):
        (tmp_path / f"asked-{n}").mkdir()
    farm.start_worker()
    farm.start_worker()
    query = "SELECT count(*) FROM journal_run WHERE status = 'waiting'"
    wait_for(lambda: farm.value(query) == 20, 30, "all twenty wait")
    busy = tmp_path / "busy"
    busy.mkdir()
    for _ in range(starts):
        runs.start(plain.slow_step, str(busy), 0.5)
    wait_for(lambda: farm.value("SELECT count(*) FROM journal_run WHERE status = 'running'") >= 8, 30, "slots are busy")
    took = []
    for n, run_id in enumerate(asked):
        began = time.monotonic()
        runs.signal(run_id, "answer", 1)
        wait_for(lambda n=n: marks(tmp_path / f"asked-{n}", "answered"), 20, "the woken run goes on")  # type: ignore[misc]
        took.append(time.monotonic() - began)
    took.sort()
    print(f"woken among {starts} starts: median {statistics.median(took):.3f} s, p95 {took[18]:.3f} s")
    assert took[18] <= 1.5
