"""kombu's transport for pgmq, with its queue declared safely by any number of processes at once."""

from __future__ import annotations

from typing import Any

from kombu.transport import pgmq

HAS_TRIGGER = """
SELECT EXISTS (
    SELECT 1 FROM pg_trigger
    WHERE tgname = 'trigger_notify_queue_insert_listeners'
      AND tgrelid = to_regclass('pgmq.' || quote_ident(pgmq.format_table_name(%s, 'q')))
)
"""


class Channel(pgmq.Channel):
    def _maybe_enable_notify(self, queue: str, queue_name: str | None = None) -> None:
        """Creates the queue's trigger once, one process at a time.

        pgmq drops and creates it at each declaration, without a lock: of two workers that started together one ended
        with DuplicateObject, and each process that first rang a bell locked the table against all others.
        """
        name = queue_name or self._queue_name(queue)
        client: Any = self.pgmq
        with client.pool.connection() as connection, connection.transaction():
            connection.execute("SELECT pgmq.acquire_queue_lock(%s)", [name])
            if not connection.execute(HAS_TRIGGER, [name]).fetchone()[0]:
                client.enable_notify(name, throttle_interval_ms=self.notify_throttle_interval_ms, conn=connection)
        self.connection._register_notify_queue(name)  # noqa: SLF001 - as the method that this one replaces


class Transport(pgmq.Transport):
    Channel: Any = Channel
