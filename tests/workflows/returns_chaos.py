"""The returns example with a slow outside world that writes down every call, apart from the journal.

A row is there from before the call; `ended_at` is set when the call is over, and stays empty if its worker died in it.
`too_late` says that the journal already had an outcome for the position when the call began.
"""

from __future__ import annotations

import os
import random
import time
from decimal import Decimal

from django.db import connection

from agents import clients
from agents.clients import Answer, Question, ScriptedClient
from agents.examples import ledger, returns
from journal import current_run, current_step

BEGIN = """
INSERT INTO outside_calls (pid, what, run, path, key, too_late)
VALUES (%s, %s, %s, %s, %s, EXISTS (
    SELECT 1 FROM journal_event WHERE run_id = %s AND path = %s AND kind IN ('step_completed', 'step_refused')))
RETURNING id
"""

SLOWEST = float(os.environ.get("SIGNOFF_TEST_SLOWEST", "1.0"))
_chance = random.Random()


class _Watched:
    """A call of the outside world, from its beginning to its end."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        step, run = current_step(), current_run()
        place = [run.id, step.path]
        with connection.cursor() as cursor:
            cursor.execute(BEGIN, [os.getpid(), self.what, *place, step.idempotency_key, *place])
            (self.id,) = cursor.fetchone()
        connection.close()
        time.sleep(_chance.uniform(0.1, SLOWEST))

    def __exit__(self, *_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE outside_calls SET ended_at = clock_timestamp() WHERE id = %s", [self.id])


class SlowClient(ScriptedClient):
    """The scripted client, taking its time."""

    def answer(self, question: Question) -> Answer:
        with _Watched("model"):
            return super().answer(question)


_pay = ledger.refund


def _slow_refund(*, key: str, invoice: str, amount: Decimal) -> ledger.Receipt:
    with _Watched("refund"):
        return _pay(key=key, invoice=invoice, amount=amount)


clients.CLIENTS["scripted"] = SlowClient
ledger.refund = _slow_refund

__all__ = ["returns"]
