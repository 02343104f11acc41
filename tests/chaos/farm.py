"""Workers that come from a preloaded parent and go by `kill -9`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.harness import Service


class Farm:
    """Three workers, or as many as are asked for; a killed one is replaced."""

    def __init__(self, service: Service, *, threads: int) -> None:
        self._folder = Path(service.folder)
        env = service.environment(SIGNOFF_TEST_THREADS=str(threads))
        command = [sys.executable, "-m", "tests.worker_parent"]
        log = (self._folder / "parent.log").open("ab")
        self._parent = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        log.close()
        self.pids: list[int] = []
        self._made = 0

    def add(self) -> int:
        self._made += 1
        pid = int(self._ask(f"start {self._folder / f'forked-{self._made}.log'}"))
        self.pids.append(pid)
        return pid

    def kill(self, pid: int) -> None:
        """`kill -9`, reaped by its parent."""
        os.kill(pid, signal.SIGKILL)
        self.reap(pid)

    def reap(self, pid: int) -> None:
        """Takes leave of one that is dead."""
        self._ask(f"reap {pid}")
        self.pids.remove(pid)

    def close(self) -> None:
        for pid in list(self.pids):
            self.kill(pid)
        assert self._parent.stdin
        assert self._parent.stdout
        self._parent.stdin.close()
        self._parent.wait(10)
        self._parent.stdout.close()

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("*.log")))

    def _ask(self, line: str) -> str:
        assert self._parent.stdin
        assert self._parent.stdout
        print(line, file=self._parent.stdin, flush=True)
        answer = self._parent.stdout.readline().strip()
        assert answer, f"the parent of the workers is gone:\n{self.logs()[-4000:]}"
        return answer
