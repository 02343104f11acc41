"""A real Redis and a real RabbitMQ for a test, on free ports of the loopback interface, and pgmq on its database.

Each can be of no use in several ways (`troubles`), and its waiting messages be multiplied and deleted.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import amqp  # type: ignore[import-untyped]
import psutil
import psycopg
import redis
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from journal.bells import QUEUE
from tests import counts, machine
from tests.harness import PGMQ, Service
from tests.waiting import wait_for

Trouble = tuple[str, Callable[[], None], Callable[[], None]]
"""What it is called, how it is made, and how it ends."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _program(name: str, *places: str) -> str:
    """Its path: in these places first, then where programs are."""
    return shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", ""), "/usr/sbin"])) or str(
        machine.lacking(f"no {name} on this machine")
    )


def shuffled(messages: list[Any]) -> list[Any]:
    """In another order, the same for the same seed."""
    return Random(counts.SEED).sample(messages, len(messages))


class Server:
    """A process of the test's own that can be stopped, frozen and started again."""

    url: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def _launch(self, command: list[str], env: dict[str, str] | None = None) -> None:
        with (self.folder / f"{type(self).__name__}.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _family(self) -> list[psutil.Process]:
        if self._process is None:
            return []
        parent = psutil.Process(self._process.pid)
        return [parent, *parent.children(recursive=True)]

    def stop(self) -> None:
        """At once, with all that it has in memory."""
        for process in reversed(self._family()):
            process.send_signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)
            self._process = None

    def freeze(self) -> None:
        """It still accepts connections (the kernel does), and never answers."""
        for process in self._family():
            process.suspend()

    def thaw(self) -> None:
        for process in self._family():
            process.resume()


class Redis(Server):
    """redis-server with nothing on disk: stopped and started again it has forgotten everything."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._binary = _program("redis-server")
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis(port=self.port, socket_timeout=1)

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._launch([self._binary, *options, "--dir", str(self.folder)])
        wait_for(self._answers, what="Redis answers")

    @property
    def troubles(self) -> list[Trouble]:
        return [
            ("refuses connections", self.stop, self.start),
            ("says nothing", self.freeze, self.thaw),
            ("refuses writes", self.refuse_writes, self.allow_writes),
        ]

    def refuse_writes(self) -> None:
        """As with a full memory: reading works, writing is an error."""
        self.client.config_set("maxmemory", 1)

    def allow_writes(self) -> None:
        self.client.config_set("maxmemory", 0)

    def count(self) -> int:
        """Messages that no worker has taken."""
        return int(self.client.llen(QUEUE))

    def multiply(self, times: int) -> None:
        """Puts each of them there so many times, in another order."""
        found: Any = self.client.lrange(QUEUE, 0, -1)
        self.client.delete(QUEUE)
        self.client.rpush(QUEUE, *shuffled(found * times))

    def delete_all(self) -> None:
        self.client.delete(QUEUE)

    def in_hands(self) -> int:
        """Messages that a worker has taken and not begun: what is handed out again when their time is over."""
        return int(self.client.zcard("unacked_index"))

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False


class RabbitMQ(Server):
    """rabbitmq-server as a node of its own, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._home = folder / "rabbitmq"
        # The wrappers in /usr/sbin change to the user `rabbitmq`; the scripts behind them run as we are.
        self._binary = _program("rabbitmq-server", "/usr/lib/rabbitmq/bin")
        self._control = _program("rabbitmqctl", "/usr/lib/rabbitmq/bin")
        self.port, self._distribution = free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._node = f"signoff-{secrets.token_hex(4)}@localhost"

    def start(self) -> None:
        self._home.mkdir(exist_ok=True)
        (self._home / "enabled_plugins").write_text("[].\n")
        self._launch([self._binary], self._env())
        wait_for(self._answers, timeout=60, what="RabbitMQ answers", every=0.2)

    @property
    def troubles(self) -> list[Trouble]:
        return [
            ("refuses connections", self.stop, self.start),
            ("says nothing", self.freeze, self.thaw),
            ("refuses writes", self.refuse_writes, self.allow_writes),
        ]

    def refuse_writes(self) -> None:
        """The alarm of a full memory: whoever publishes is not read any more."""
        self._set_memory(0.00001)
        wait_for(lambda: "memory resource limit alarm set" in self._log(), what="the memory alarm")

    def allow_writes(self) -> None:
        self._set_memory(0.6)

    def count(self) -> int:
        with self._connect() as connection:
            return int(connection.channel().queue_declare(QUEUE, passive=True).message_count)

    def multiply(self, times: int) -> None:
        with self._connect() as connection:
            channel = connection.channel()
            found = list(iter(lambda: channel.basic_get(QUEUE, no_ack=True), None))
            for message in shuffled(found * times):
                channel.basic_publish(amqp.Message(message.body, **message.properties), routing_key=QUEUE)

    def delete_all(self) -> None:
        with self._connect() as connection:
            connection.channel().queue_purge(QUEUE)

    def _connect(self) -> amqp.Connection:
        return amqp.Connection(f"127.0.0.1:{self.port}")

    def _set_memory(self, share: float) -> None:
        command = [self._control, "set_vm_memory_high_watermark", f"{share:f}"]
        subprocess.run(command, env=self._env(), check=True, capture_output=True, timeout=60)

    def _log(self) -> str:
        return "".join(path.read_text() for path in (self._home / "log").glob("*.log"))

    def _env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"] + ":/usr/sbin",
            "HOME": str(self._home),
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(self._home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self._home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._home / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(self._home / "pid"),
            "RABBITMQ_CONF_ENV_FILE": str(self._home / "none.conf"),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return connection.recv(8)[:1] == b"\x01"  # the broker's connection.start
        except OSError:
            return False


class PgBouncer(Server):
    """pgbouncer in transaction mode: each transaction meets the next of its sessions with the database of `url`."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._binary = _program("pgbouncer")
        database = conninfo_to_dict(url)
        port = free_port()
        self.url = make_conninfo(url, host="127.0.0.1", port=port)
        self._console = make_conninfo(self.url, dbname="pgbouncer")
        self._settings = folder / "pgbouncer.ini"
        self._settings.write_text(
            "[databases]\n"
            "* = host={host} port={port} user={user} password={password}\n"
            "[pgbouncer]\n"
            "pool_mode = transaction\n"
            "server_round_robin = 1\n"
            "min_pool_size = 5\n"
            "server_login_retry = 1\n"
            "ignore_startup_parameters = options\n"
            "auth_type = any\n"
            "admin_users = {user}\n"
            "unix_socket_dir =\n"
            "listen_addr = 127.0.0.1\n"
            "listen_port = {listen}\n".format(**database, listen=port)
        )

    def start(self) -> None:
        # It refuses to run as root.
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        self._launch([self._binary, *user, str(self._settings)])
        wait_for(self._answers, what="pgbouncer answers")

    def reconnect(self) -> None:
        """Each of its sessions with PostgreSQL is closed when its transaction is over."""
        with psycopg.connect(self._console, autocommit=True) as console:
            console.execute("RECONNECT")

    def log(self) -> str:
        return (self.folder / f"{type(self).__name__}.log").read_text(errors="replace")

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True


class Pgmq:
    """The broker of a service that names none: tables in its own PostgreSQL."""

    url = PGMQ

    def __init__(self, service: Service) -> None:
        self._service = service
        self._holder: psycopg.Connection[Any] | None = None

    @property
    def troubles(self) -> list[Trouble]:
        """It refuses connections only with the whole database, which is another test's matter."""
        return [("says nothing", self.freeze, self.thaw), ("refuses writes", self.refuse_writes, self.allow_writes)]

    def freeze(self) -> None:
        """Another session holds its table: whoever asks for anything waits."""
        self._holder = self._service.connect()
        self._holder.execute("LOCK TABLE pgmq.q_signoff IN ACCESS EXCLUSIVE MODE")

    def thaw(self) -> None:
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def refuse_writes(self) -> None:
        """As with a full disk."""
        self._service.rows(NO_SPACE)

    def allow_writes(self) -> None:
        self._service.rows("DROP FUNCTION no_space() CASCADE")

    def count(self) -> int:
        return int(self._service.value("SELECT count(*) FROM pgmq.q_signoff WHERE vt <= clock_timestamp()"))

    def multiply(self, times: int) -> None:
        self._service.rows(MULTIPLY, times)

    def delete_all(self) -> None:
        self._service.rows("DELETE FROM pgmq.q_signoff")


NO_SPACE = """
CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_space BEFORE INSERT OR UPDATE ON pgmq.q_signoff FOR EACH ROW EXECUTE FUNCTION no_space()
"""

MULTIPLY = """
WITH gone AS (DELETE FROM pgmq.q_signoff RETURNING message, headers)
INSERT INTO pgmq.q_signoff (vt, message, headers)
SELECT clock_timestamp(), message, headers FROM gone, generate_series(1, %s) ORDER BY random()
"""

Broker = Pgmq | Redis | RabbitMQ


class Silent:
    """A port that accepts connections and never says a word."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]

    def close(self) -> None:
        self._listener.close()
