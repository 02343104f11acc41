"""How Django connects: prepared statements, isolation, timeouts, the pool (ENGINE.md, rule 35)."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from psycopg.conninfo import conninfo_to_dict

from config.database import conninfo, django_database, session_params


def show(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return str(cursor.fetchone()[0])


def prepared() -> dict[str, int]:
    """Statements that the server keeps prepared for this session, and how often each ran."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, generic_plans + custom_plans FROM pg_prepared_statements")
        return dict(cursor.fetchall())


@pytest.mark.django_db
def test_a_statement_of_the_orm_is_prepared_from_the_second_time_on() -> None:
    for name in ("ada", "bob", "eve", "joe"):
        list(User.objects.filter(username=name))
    found = {statement: runs for statement, runs in prepared().items() if '"auth_user"."username" = $1' in statement}
    assert list(found.values()) == [3]


@pytest.mark.django_db
def test_a_plain_cursor_on_django_s_connection_is_prepared_too() -> None:
    connection.ensure_connection()
    cursor = psycopg.Cursor(connection.connection)
    for number in range(4):
        assert cursor.execute("SELECT %s::int + 1", [number]).fetchone() == (number + 1,)
    assert prepared()["SELECT $1::int + 1"] == 3


@pytest.mark.django_db
def test_sessions_have_our_settings() -> None:
    assert show("transaction_isolation") == "read committed"
    assert show("default_transaction_isolation") == "read committed"
    assert show("idle_in_transaction_session_timeout") == "1min"
    assert show("TimeZone") == "UTC"
    assert show("synchronous_commit") == show("fsync") == "on"


@pytest.mark.django_db
def test_connections_come_from_a_pool() -> None:
    connection.ensure_connection()
    first = connection.connection.info.backend_pid
    pool = connection.pool  # type: ignore[attr-defined]
    assert pool.get_stats()["pool_size"] >= 1
    assert first in {each["pid"] for each in sessions()}


def sessions() -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid, application_name FROM pg_stat_activity WHERE datname = current_database()")
        return [{"pid": pid, "name": name} for pid, name in cursor.fetchall()]


def test_the_peer_s_silence_is_noticed() -> None:
    assert session_params({})["tcp_user_timeout"] == "10000"


def test_what_the_address_says_wins_and_options_add_up() -> None:
    params = session_params({"tcp_user_timeout": "1", "options": "-c lock_timeout=5s"})
    assert params["tcp_user_timeout"] == "1"
    assert params["options"].endswith("-c lock_timeout=5s")
    assert "idle_in_transaction_session_timeout" in params["options"]


def test_an_address_becomes_key_and_value_pairs() -> None:
    text = conninfo(dict(conninfo_to_dict("postgresql://me:p%40ss%20word@/mine?host=/run/pg&sslmode=require")))
    assert "://" not in text
    back = conninfo_to_dict(text)
    assert (back["user"], back["password"], back["dbname"]) == ("me", "p@ss word", "mine")
    assert (back["host"], back["sslmode"]) == ("/run/pg", "require")


def test_without_a_pool_each_thread_has_a_connection_of_its_own() -> None:
    assert "pool" not in django_database({"dbname": "x"}, pool_size=0)["OPTIONS"]


@pytest.mark.django_db(transaction=True)
def test_statements_are_not_prepared_where_that_is_switched_off(settings: Any) -> None:
    settings.PREPARED_STATEMENTS = False
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    connection.ensure_connection()
    assert connection.connection.prepare_threshold is None
