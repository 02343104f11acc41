"""This thread's database connections, before and after somebody else's code has had them."""

from __future__ import annotations

from django.db import connections

from journal.errors import TransactionLeftOpen


def close_all() -> None:
    """Gives the thread's connections back. One that is in a transaction is rolled back and forgotten."""
    for connection in connections.all(initialized_only=True):
        dirty = in_transaction(connection)
        connection.close()
        if dirty:  # a closed wrapper would still believe in its transaction, and refuse to connect again
            del connections[connection.alias]


def close_after_step() -> None:
    """The same, and raises TransactionLeftOpen if a step has left one of them in a transaction."""
    dirty = any(map(in_transaction, connections.all(initialized_only=True)))
    close_all()
    if dirty:
        raise TransactionLeftOpen()


def in_transaction(connection: object) -> bool:
    """Whether a transaction is open there."""
    in_atomic: bool = connection.in_atomic_block  # type: ignore[attr-defined]
    return in_atomic or (not connection.autocommit and connection.connection is not None)  # type: ignore[attr-defined]
