"""kombu's transport for pgmq: its queue declared safely by many processes at once, and nothing kept in sessions
behind a pooler."""

from __future__ import annotations

from typing import Any

from kombu.transport import pgmq
from pgmq import PGMQueue
from psycopg_pool import ConnectionPool

from journal.poolers import is_pooled

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
    client: Any

    def establish_connection(self) -> Any:
        """Listens only where it would hear: a pooler's session that was told LISTEN serves others from then on."""
        made: Any = super().establish_connection()  # type: ignore[no-untyped-call]
        pgmq_client: Any = self._get_pgmq_client()
        with pgmq_client.pool.connection() as connection:
            self.client.transport_options["use_notify"] = not is_pooled(connection)
        return made

    def _create_pgmq_client(self) -> PGMQueue:
        """pgmq's own pool would prepare statements, which not every pooler keeps apart (journal.poolers)."""
        options = self.client.transport_options
        pool = ConnectionPool(
            options["conn_string"],
            kwargs={"prepare_threshold": None},
            min_size=1,
            max_size=options["pool_size"],
            timeout=options["pool_timeout"],
            open=True,
        )
        client = PGMQueue(
            conn_string=options["conn_string"], vt=options["visibility_timeout"], init_extension=False, pool=pool
        )
        client._own_pool = True  # noqa: SLF001 - it closes the pool with itself
        return client
