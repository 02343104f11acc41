"""What is at the other end of a database connection: the server, or a pooler in between that keeps no session.

Behind a pooler in transaction mode nothing outlives a transaction but what it committed: the next one may meet
another of the pooler's sessions with the server. A locked key, LISTEN, SET, prepared statements and cursors stay
behind in the last one, for whoever meets that.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.conf import settings


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands before the server: as the session's process it names one that it made up.

    One in session mode does so too, and cannot be told apart: it is taken for the worse."""
    ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
    return bool(pid != connection.info.backend_pid)


def prepare_statements(connection: psycopg.Connection[Any]) -> None:
    """Has each statement prepared from its second time on, if the server itself is at the other end.

    Behind a pooler that does not keep them apart another statement of the same name answers. So connections begin
    without (`prepare_threshold` None), and each is looked at when it is new."""
    if settings.PREPARED_STATEMENTS and connection.prepare_threshold is None and not is_pooled(connection):
        connection.prepare_threshold = 1
