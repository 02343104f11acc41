"""What `make sabotage` breaks in what must hold whatever the broker does."""

from __future__ import annotations

from tests.breaks import Break


def _broker(name: str, file: str, old: str, new: str, test: str) -> Break:
    return Break(name, file, old, new, (f"tests/chaos/test_brokers.py::test_{test}",))


BROKERS = [
    _broker(
        "a process that ends waits for its broker", "journal/bells.py",
        "FLUSH = 0.5", "FLUSH = 3.0",
        "a_broker_that_was_never_there_holds_up_nobody[silent]",
    ),
    _broker(
        "only bells make a worker look for work", "journal/worker.py",
        "                self._kick()\n            except", "            except",
        "a_broker_that_was_never_there_holds_up_nobody[refused]",
    ),
    _broker(
        "a bell claims what another worker holds", "journal/statements.py",
        "WHERE status = 'ready' AND code = ANY(%(capabilities)s)",
        "WHERE status IN ('ready', 'running') AND code = ANY(%(capabilities)s)",
        "messages_multiplied_reordered_and_deleted_change_nothing[redis]",
    ),
    _broker(
        "a woken run queues up behind the starts", "journal/sql/triggers.sql",
        "CASE WHEN woken THEN interval '1 hour'", "CASE WHEN woken THEN interval '0'",
        "a_decision_is_not_number_five_thousand",
    ),
    _broker(
        "any pool will do", "journal/celery_signals.py",
        'if not sender.pool_cls.__module__.endswith(".thread"):', 'if sender.pool_cls.__module__.endswith(".solo"):',
        "nothing_that_has_a_session_forks",
    ),
]  # fmt: skip
