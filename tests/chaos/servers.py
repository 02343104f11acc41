"""A real Redis and a real RabbitMQ for a test, on free ports of the loopback interface."""

from __future__ import annotations

import shutil
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


class Redis:
    """redis-server with nothing on disk; stopped and started again it has forgotten everything."""

    def __init__(self, folder: Path) -> None:
        self._program = shutil.which("redis-server")
        if self._program is None:
            machine.lacking("no redis-server on this machine")
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        with (self._folder / "redis.log").open("ab") as log:
            command = [str(self._program), *options, "--dir", str(self._folder)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self._answers, what="Redis answers")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def pause(self) -> None:
        """It accepts connections (the kernel does) and never answers."""
        assert self._process
        psutil.Process(self._process.pid).suspend()

    def proceed(self) -> None:
        assert self._process
        psutil.Process(self._process.pid).resume()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
