"""Workers that die exactly there: the test's side. tests/crash_parent.py has the other, and what `when` means."""

from __future__ import annotations

import json
import subprocess
import sys

DEAD = 77
"""Exit code of a worker that died as it was told."""


class Crashing:
    """A preloaded parent process that forks a worker for each death."""

    def __init__(self, env: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.crash_parent"]
        self._parent = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def work(self, at: int = 0, when: str = "before") -> tuple[bool, int]:
        """Lets a worker work until nothing is ready or due, or until it dies at its append number `at` (0: never).

        Whether it died, and how many appends it made."""
        assert self._parent.stdin
        assert self._parent.stdout
        print(json.dumps({"at": at, "when": when}), file=self._parent.stdin, flush=True)
        line = self._parent.stdout.readline()
        assert line, "the parent of the workers is gone"
        answer = json.loads(line)
        assert answer["code"] in (0, DEAD), answer
        return answer["code"] == DEAD, answer["appends"]

    def close(self) -> None:
        assert self._parent.stdin
        assert self._parent.stdout
        self._parent.stdin.close()
        self._parent.wait(10)
        self._parent.stdout.close()
