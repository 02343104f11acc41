"""Brokers that refuse, say nothing, or refuse writes; messages multiplied, reordered and gone. B1, B5, B7, A30."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import pytest
from celery import Celery
from psycopg.conninfo import conninfo_to_dict

from approvals.models import Revision
from approvals.people import add_person
from config.broker import celery_settings
from config.database import conninfo
from config.home import BASE_DIR
from journal import bells, runs
from tests import counts
from tests.agents.shop import OWNER, REVIEWER, STARTER
from tests.chaos.servers import Broker, Pgmq, RabbitMQ, Redis, Silent, free_port
from tests.harness import Child, Service, Web
from tests.waiting import wait_for
from tests.workflows import asking, plain
from tests.workflows.returns_slow import marks, open_gate

pytestmark = pytest.mark.timeout(600)
ANSWER_WITHIN = 1.0
"""Seconds in which start, signal and decide answer, whatever the broker does."""
LONG = 30
"""Seconds of trouble in which every heartbeat and timeout between a worker and its broker has struck."""
VISIBILITY = 5
"""Seconds after which Redis hands out again what a worker took and has not begun."""
PASSWORD = "a long enough password"


@pytest.fixture
def farm(service: Service) -> Service:
    service.env["SIGNOFF_WORKFLOWS"] = "tests.workflows.plain,tests.workflows.asking"
    add_person(STARTER)
    add_person(OWNER)
    add_person(REVIEWER, groups=["finance"], password=PASSWORD)
    return service


@pytest.fixture(params=["pgmq", "redis", "rabbitmq"])
def broker(request: pytest.FixtureRequest, farm: Service) -> Broker:
    """Each of the three, as the broker of the farm."""
    made: Broker = request.getfixturevalue(request.param)
    farm.broker = made.url
    return made


@pytest.fixture
def pgmq(farm: Service) -> Iterator[Pgmq]:
    made = Pgmq(farm)
    yield made
    made.thaw()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    yield from _running(Redis(tmp_path))


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    """One for all tests, since it takes seconds to start; what bells one leaves there mean nothing to the next."""
    yield from _running(RabbitMQ(tmp_path_factory.mktemp("rabbitmq")))


def _running(server: Any) -> Iterator[Any]:
    server.start()
    yield server
    server.thaw()
    server.stop()


class Desk:
    """A process of the service that starts, signals and decides; each call has to answer in time."""

    def __init__(self, farm: Service, url: str) -> None:
        self._log = farm.folder / "desk.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.desk"], cwd=BASE_DIR, text=True,
                env=farm.environment(SIGNOFF_BROKER_URL=url), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._process:  # closes its pipes and reaps it
            pass

    def start(self, gates: Path) -> str:
        return str(self._ask("start", str(gates)))

    def signal(self, run_id: str) -> None:
        self._ask("signal", run_id)

    def approve(self, run_id: str) -> None:
        self._ask("approve", run_id)

    def ring(self) -> None:
        self._ask("ring")

    def end(self) -> float:
        """Seconds for which its last bell holds it up."""
        assert self._process.stdin
        self._process.stdin.close()
        return self._answer()[1]

    def _ask(self, *request: str) -> Any:
        print(json.dumps(request), file=self._process.stdin, flush=True)
        value, took = self._answer()
        assert took < ANSWER_WITHIN, f"{request} took {took:.3f} s"
        return value

    def _answer(self) -> tuple[Any, float]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"it ended:\n{self._log.read_text()[-3000:]}"
        value, took = json.loads(line)
        return value, took


class Errand:
    """A run that is started and signalled at the desk, and waits for a decision then."""

    def __init__(self, farm: Service, desk: Desk, gates: Path) -> None:
        self._farm, self._gates = farm, gates
        gates.mkdir(parents=True)
        self.run = desk.start(gates)
        desk.signal(self.run)

    def wait_until_it_asks(self) -> None:
        query = "SELECT count(*) FROM journal_wait WHERE run_id = %s AND kind = 'approval'"
        wait_for(lambda: self._farm.value(query, self.run), 30, f"run {self.run} asks")

    def check_done(self) -> None:
        completed(self._farm, self.run)
        assert [len(marks(self._gates, place)) for place in ("asked", "answered", "approved")] == [1, 1, 1]


class Reviewer:
    """Signed in at the web server, with a browser that only sends forms."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._cookies = CookieJar()
        self._opener = build_opener(HTTPCookieProcessor(self._cookies))
        self._send("/sign-in/", username=REVIEWER, password=PASSWORD)

    def approve(self, run_id: str) -> None:
        """Sees it and approves it; the page has to answer in time."""
        seen = Revision.objects.get(approval__run=run_id)
        fields = {"revision": str(seen.number), "digest": bytes(seen.digest).hex()}
        took = self._send(f"/approvals/{seen.approval_id}/approve", **fields)
        assert took < ANSWER_WITHIN, f"the page took {took:.3f} s"
        seen.approval.refresh_from_db()
        assert seen.approval.status == "approved"

    def _send(self, path: str, **fields: str) -> float:
        """Opens the form, sends it, and follows to the next page; how long the latter two took."""
        self._opener.open(self._web.url + path).close()
        token = next(str(cookie.value) for cookie in self._cookies if cookie.name == "csrftoken")
        data = urlencode({**fields, "csrfmiddlewaretoken": token}).encode()
        began = time.monotonic()
        self._opener.open(self._web.url + path, data).close()
        return time.monotonic() - began


def completed(farm: Service, run_id: str, timeout: float = 30) -> None:
    try:
        wait_for(lambda: farm.value("SELECT status FROM journal_run WHERE id = %s", run_id) == "completed", timeout)
    except AssertionError:
        logs = "\n".join(child.output()[-3000:] for child in farm.children)
        raise AssertionError(f"run {run_id} did not complete in {timeout} s:\n{logs}") from None


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_a_broker_that_was_never_there_holds_up_nobody(farm: Service, tmp_path: Path, how: str) -> None:
    """B5: `delay()` with the broker down hangs without end. The worker never gets a bell either."""
    farm.start_worker()  # on the bells of the default broker, which nobody rings
    with ExitStack() as stack:
        silent = Silent()
        stack.callback(silent.close)
        if how == "refused":
            silent.close()
        urls = {scheme: f"{scheme}://127.0.0.1:{silent.port}//" for scheme in ("redis", "amqp", "pgmq")}
        desks = {scheme: stack.enter_context(Desk(farm, url)) for scheme, url in urls.items()}
        for scheme, desk in desks.items():
            errand = Errand(farm, desk, tmp_path / scheme)
            errand.wait_until_it_asks()
            desk.approve(errand.run)
            assert desk.end() < ANSWER_WITHIN, scheme
            errand.check_done()


def test_start_signal_and_decide_answer_and_the_runs_go_on(farm: Service, broker: Broker, tmp_path: Path) -> None:
    """B5 with the real ones: it went away, it says nothing, it takes nothing more; then all is as before."""
    worker = farm.start_worker()
    reviewer = Reviewer(farm.start_web())
    with Desk(farm, broker.url) as desk:
        for name, harm, cure in broker.troubles:
            before = [Errand(farm, desk, tmp_path / name / place) for place in ("at the desk", "on the page")]
            for errand in before:
                errand.wait_until_it_asks()
            worker.pause()
            ring(farm, 10)  # it is taking bells when the trouble begins
            harm()
            worker.proceed()
            meanwhile = [Errand(farm, desk, tmp_path / name / "meanwhile")]
            desk.approve(before[0].run)
            reviewer.approve(before[1].run)
            for errand in before:
                errand.check_done()
            if counts.FULL:
                time.sleep(LONG)
                meanwhile.append(Errand(farm, desk, tmp_path / name / "long after"))
            for errand in meanwhile:
                errand.wait_until_it_asks()
            cure()
            for errand in meanwhile:
                desk.approve(errand.run)
                errand.check_done()
            rings_again(desk, broker, worker)


def rings_again(desk: Desk, broker: Broker, worker: Child) -> None:
    """The desk's bells get to the broker, and the worker takes them."""

    def is_heard() -> bool:
        desk.ring()
        return broker.count() > 0

    worker.pause()
    wait_for(is_heard, 30, "a bell gets to the broker", every=0.2)
    worker.proceed()
    wait_for(lambda: broker.count() == 0, 60, "the worker takes it", every=0.2)


def test_messages_multiplied_reordered_and_deleted_change_nothing(
    farm: Service, broker: Broker, tmp_path: Path
) -> None:
    """B1: a doubled message is a no-op; a deleted one is made up for by the sweep."""
    ids = [runs.start(plain.slow_step, str(tmp_path), 0.05).id for _ in range(20)]
    ring(farm, 10)
    broker.multiply(20)
    wait_for(lambda: broker.count() >= 200, what="each message is there twenty times")
    workers = [farm.start_worker(), farm.start_worker()]
    for run_id in ids:
        completed(farm, run_id)
    wait_for(lambda: broker.count() == 0, 30, "each message was taken")
    for worker in workers:
        worker.pause()
    ids = [runs.start(plain.slow_step, str(tmp_path), 0.05).id for _ in range(20)]
    ring(farm, 20)
    wait_for(lambda: broker.count() > 0, what="there are messages to delete")
    broker.delete_all()
    assert broker.count() == 0
    for worker in workers:
        worker.proceed()
    for run_id in ids:
        completed(farm, run_id)
    assert [len(marks(tmp_path, place)) for place in ("takes", "after")] == [40, 40]


def ring(farm: Service, times: int) -> None:
    """Bells by hand, through the service's broker."""
    app = Celery("publisher", set_as_current=False)
    app.config_from_object(celery_settings(farm.broker, conninfo(conninfo_to_dict(farm.url))))
    with app.connection_for_write() as connection:
        for _ in range(times):
            app.send_task(bells.BELL, queue=bells.QUEUE, connection=connection)
    app.close()


def test_a_short_visibility_timeout_repeats_no_effect(farm: Service, redis: Redis, tmp_path: Path) -> None:
    """B1: Redis hands out again what a busy and then stopped worker has in its hands; waits are rows, and hold none."""
    farm.broker = redis.url
    options = {"visibility_timeout": VISIBILITY, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}
    options = celery_settings(redis.url, "")["broker_transport_options"] | options
    setting = f"broker.transport_options=(json){json.dumps(options)}"
    others = [farm.start_worker(setting), farm.start_worker(setting)]
    for worker in others:
        worker.pause()
    busy = farm.start_worker(setting)
    held = [runs.start(plain.three_steps, str(tmp_path)).id for _ in range(4)]
    wait_for(lambda: len(marks(tmp_path, "second")) == 4, 20, "its slots are busy")
    naps = [runs.start(plain.naps, str(tmp_path), 60 if counts.FULL else 12).id for _ in range(10)]
    ring(farm, 20)
    wait_for(lambda: redis.in_hands() == 4, what="it has bells in its hands")
    busy.pause()
    for worker in others:
        worker.proceed()
    # It must be over before the lease of what the stopped worker holds.
    wait_for(lambda: redis.in_hands() == redis.count() == 0, 2 * VISIBILITY, "the others got its bells")
    busy.proceed()
    open_gate(tmp_path, "second")
    for run_id in held + naps:
        completed(farm, run_id, timeout=90)
    assert len(marks(tmp_path, "woke")) == 10
    assert [len(marks(tmp_path, place)) for place in ("first", "second", "third")] == [4, 4, 4]


def test_a_decision_is_not_number_five_thousand(farm: Service, tmp_path: Path) -> None:
    """A30: with the slots busy and starts queued, a woken run is next: within 1.5 s in 19 of 20 cases."""
    starts = counts.of(5000, at_least=500)
    asked = {}
    for number in range(20):
        gates = tmp_path / f"asked-{number}"
        gates.mkdir()
        asked[asking.start(str(gates))] = gates
    farm.start_worker()
    farm.start_worker()
    wait_for(lambda: waiting_for(farm, "signal") == 20, 30, "all twenty wait")
    busy = tmp_path / "busy"
    busy.mkdir()
    for _ in range(starts):
        runs.start(plain.slow_step, str(busy), 0.5)
    wait_for(lambda: farm.value("SELECT count(*) FROM journal_run WHERE status = 'running'") >= 8, 30, "slots are busy")
    signalled = [next_step(asking.signal, run_id, asked[run_id], "answered") for run_id in asked]
    wait_for(lambda: waiting_for(farm, "approval") == 20, 30, "all twenty ask")
    decided = [next_step(asking.approve, run_id, asked[run_id], "approved") for run_id in asked]
    assert farm.value("SELECT count(*) FROM journal_run WHERE status = 'ready'") > 0, "starts still wait"
    for what, took in (("signalled", signalled), ("decided", decided)):
        p95 = sorted(took)[18]
        print(f"{what} among {starts} starts: median {statistics.median(took):.3f} s, p95 {p95:.3f} s")
        assert p95 <= 1.5


def waiting_for(farm: Service, kind: str) -> int:
    return int(farm.value("SELECT count(*) FROM journal_wait WHERE kind = %s", kind))


def next_step(answer: Callable[[str], None], run_id: str, gates: Path, place: str) -> float:
    """Seconds from before the answer to the step behind it."""
    began = time.monotonic()
    answer(run_id)
    wait_for(lambda: marks(gates, place), 20, "the woken run goes on")
    return time.monotonic() - began


def test_nothing_that_has_a_session_forks(farm: Service) -> None:
    """B7: children break the sessions of their parent. Workers are threads, and gunicorn's own process has none."""
    prefork = farm.start_worker("--pool", "processes", wait=False)
    assert prefork.wait() != 0
    assert "--pool=threads" in prefork.output()
    worker, web = farm.start_worker(), farm.start_web()
    Reviewer(web)
    query = "SELECT substring(application_name FROM 'signoff-([0-9]+)') AS pid FROM pg_stat_activity WHERE datname = %s"
    pids = {int(row["pid"]) for row in farm.rows(query, farm.database) if row["pid"]}
    server = {child.pid for child in psutil.Process(web.pid).children()}
    assert psutil.Process(worker.pid).children() == []
    assert pids - {os.getpid()} == {worker.pid, *server}


def test_a_worker_that_finds_no_database_ends_and_says_so(farm: Service, redis: Redis) -> None:
    """Its broker is there, so Celery calls it ready. It must not take bells for ever and no work."""
    farm.broker = redis.url
    worker = farm.start_worker(wait=False, DATABASE_URL=f"postgresql://nobody@127.0.0.1:{free_port()}/nothing")
    assert worker.wait(60) != 0
    assert "this worker cannot reach the database" in worker.output()
