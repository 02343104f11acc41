"""The parent of the workers that die: everything is imported, nothing is connected; each job forks one.

`{"at": 3, "when": "before"}` lets the child die at its append number 3:

    before   the outcome is known, nothing is written
    inside   the statement has run; where it is in a transaction, that is not committed
    after    it is committed, and nobody has been told
    cut      it does not die: the connection falls after the commit, and the writer cannot know
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import django

django.setup()

from django.db import OperationalError  # noqa: E402 - Django has to be set up before models are imported

from journal import leases, registry, statements  # noqa: E402
from journal.writer import Writer  # noqa: E402
from tests.crashing import DEAD  # noqa: E402
from tests.journal.inprocess import TestHolder  # noqa: E402

APPEND = "UPDATE journal_run SET seq = seq +"


class Counter:
    """Counts the appends of this process, and dies at the one it is told."""

    def __init__(self, at: int, when: str, report: int) -> None:
        self._at = at
        self._when = when
        self._report = report
        self._count = 0
        self._persist = Writer._persist
        self._rows = statements.rows

    def install(self) -> None:
        counter = self

        def persist(writer: Writer, attempt: Callable[[], None], built: Any) -> None:
            counter.append(writer, attempt, built)

        Writer._persist = persist  # type: ignore[method-assign, assignment]

    def append(self, writer: Writer, attempt: Callable[[], None], built: Any) -> None:
        self._count += 1
        if self._count == self._at:
            if self._when == "before":
                self.end(DEAD)
            if self._when == "inside":
                statements.rows = self._dying_rows
            if self._when == "cut":
                attempt = _cut(attempt)
        self._persist(writer, attempt, built)
        if self._count == self._at and self._when == "after":
            self.end(DEAD)

    def _dying_rows(self, sql: str, params: Any) -> Any:
        found = self._rows(sql, params)
        if APPEND in sql:
            self.end(DEAD)
        return found

    def end(self, code: int) -> None:
        """At once, every connection as it is."""
        os.write(self._report, str(self._count).encode())
        os._exit(code)


def _cut(attempt: Callable[[], None]) -> Callable[[], None]:
    tried: list[bool] = []

    def once() -> None:
        attempt()
        if not tried:
            tried.append(True)
            raise OperationalError("the connection fell after the commit")

    return once


def child(job: dict[str, Any], report: int) -> None:
    counter = Counter(job["at"], job["when"], report)
    counter.install()
    try:
        holder = TestHolder()
        leases.sweep_dead(holder.row.pk, may_suspect=False)
        holder.work()
        leases.retire(holder.row.pk)
    except BaseException as error:  # noqa: BLE001 - told to the test by the exit code
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        counter.end(1)
    counter.end(0)


def main() -> None:
    registry.load_authors_modules()
    for line in sys.stdin:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            child(json.loads(line), writing)
        os.close(writing)
        _, status = os.waitpid(pid, 0)
        appends = int(os.read(reading, 20))
        os.close(reading)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status), "appends": appends}), flush=True)


if __name__ == "__main__":
    main()
