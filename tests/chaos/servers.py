"""A real Redis and a real RabbitMQ for a test, on free ports of the loopback interface."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import psutil

from tests import machine
from tests.waiting import wait_for


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _program(name: str, *places: str) -> str:
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *places])) or str(
        machine.lacking(f"no {name} on this machine")
    )


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

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._launch([self._binary, *options, "--dir", str(self.folder)])
        wait_for(lambda: self._says("PING").startswith("+PONG"), what="Redis answers")

    def refuse_writes(self) -> None:
        """As with a full memory: reading works, writing is an error."""
        self._says("CONFIG SET maxmemory 1")

    def allow_writes(self) -> None:
        self._says("CONFIG SET maxmemory 0")

    def delete_all_messages(self) -> None:
        self._says("FLUSHALL")

    def _says(self, command: str) -> str:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(command.encode() + b"\r\n")
                return connection.recv(64).decode()
        except OSError:
            return ""


class RabbitMQ(Server):
    """rabbitmq-server as a node of its own, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._binary = _program("rabbitmq-server", "/usr/lib/rabbitmq/bin")
        self.port, self._distribution = free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._node = f"signoff-{secrets.token_hex(4)}@localhost"

    def start(self) -> None:
        home = self.folder / "rabbitmq"
        home.mkdir(exist_ok=True)
        (home / "enabled_plugins").write_text("[].\n")
        env = {
            "PATH": os.environ["PATH"] + ":/usr/sbin",
            "HOME": str(home),
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(home / "pid"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "none.conf"),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        # The wrapper in /usr/sbin changes to the user `rabbitmq`; the script behind it runs as we are.
        binary = "/usr/lib/rabbitmq/bin/rabbitmq-server"
        self._launch([binary if Path(binary).exists() else self._binary], env)
        wait_for(self._answers, timeout=60, what="RabbitMQ answers", every=0.2)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return connection.recv(8)[:1] == b"\x01"  # the broker's connection.start
        except OSError:
            return False


class Silent:
    """A port that accepts connections and never says a word."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]

    def close(self) -> None:
        self._listener.close()
