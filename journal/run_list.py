"""The list of runs: a page of rows by keyset, and bounded counts for the tabs. No payload is ever loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Left

from journal.marks import WAIT_ORDER, Mark, run_mark
from journal.models import Run, Wait
from journal.states import RunStatus, WaitKind

Fields = Mapping[str, Any]
PAGE = 50
COUNT_LIMIT = 1000
"""Counts stop here and read "1,000+": counting on would take as long as there are runs."""


@dataclass(frozen=True)
class Tab:
    slug: str
    word: str
    condition: Q


_WAITS_FOR_PERSON = Exists(Wait.objects.filter(run=OuterRef("pk"), kind=WaitKind.APPROVAL))

TABS = (
    Tab("", "All", Q()),
    Tab("person", "Waiting for a person", Q(_WAITS_FOR_PERSON, status=RunStatus.WAITING)),
    Tab("time", "Waiting", Q(~_WAITS_FOR_PERSON, status=RunStatus.WAITING)),
    Tab("worker", "Waiting for a worker", Q(status=RunStatus.READY)),
    Tab("running", "Running", Q(status=RunStatus.RUNNING)),
    Tab("blocked", "Blocked", Q(status=RunStatus.BLOCKED)),
    Tab("failed", "Failed", Q(status=RunStatus.FAILED)),
    Tab("completed", "Completed", Q(status=RunStatus.COMPLETED)),
)


def tab_named(slug: str) -> Tab:
    return next((tab for tab in TABS if tab.slug == slug), TABS[0])


@dataclass(frozen=True)
class Row:
    id: str
    title: str
    workflow: str
    mark: Mark
    state_at: datetime
    created_at: datetime
    events: int
    first: str
    """What it waits for, or where it failed."""
    second: str
    due_at: datetime | None
    is_error: bool


@dataclass(frozen=True)
class Page:
    tab: Tab
    rows: list[Row]
    older: str
    """The cursor of the next page, or nothing."""
    is_first: bool

    @property
    def version(self) -> str:
        """Changes when anything that the list shows has changed."""
        return "|".join(f"{row.id} {row.state_at.timestamp()} {row.events} {row.second}" for row in self.rows)


def page_of(runs: QuerySet[Run], tab: Tab, cursor: str) -> Page:
    """The newest runs of a tab, or those older than `cursor`; one that cannot be read counts as none."""
    order = "created_at" if not tab.slug else "state_at"
    found = runs.filter(tab.condition).order_by(f"-{order}", "-id")
    after = _read_cursor(cursor)
    if after is not None:
        moment, run_id = after
        found = found.filter(Q(**{f"{order}__lt": moment}) | Q(**{order: moment, "id__lt": run_id}))
    listed: list[Fields] = list(
        found.values(
            "id", "key", "workflow", "status", "state_at", "created_at", "seq", "progress",
            title=Left(KeyTextTransform("title", "labels"), 160),
            error_type=Left(KeyTextTransform("type", "error"), 80),
            error_message=Left(KeyTextTransform("message", "error"), 160),
            error_path=KeyTextTransform("path", "error"),
            difference=Left(KeyTextTransform("reason", "blocked"), 160),
            difference_path=KeyTextTransform("path", "blocked"),
        )[: PAGE + 1]
    )  # fmt: skip
    more, listed = len(listed) > PAGE, listed[:PAGE]
    waits = first_waits(row["id"] for row in listed if row["status"] == RunStatus.WAITING)
    older = f"{listed[-1][order].isoformat()}~{listed[-1]['id']}" if more else ""
    return Page(tab, [_row(row, waits.get(row["id"])) for row in listed], older, after is None)


def _read_cursor(cursor: str) -> tuple[datetime, str] | None:
    moment, _, run_id = cursor.partition("~")
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (read, run_id) if read.tzinfo is not None and run_id else None


def first_waits(run_ids: Iterable[str]) -> dict[str, Fields]:
    """The most telling open wait of each run, in one query."""
    ids = list(run_ids)
    if not ids:
        return {}
    rank = Case(
        *(When(kind=kind, then=Value(at)) for at, kind in enumerate(WAIT_ORDER)),
        default=Value(len(WAIT_ORDER)),
        output_field=IntegerField(),
    )
    found = (
        Wait.objects.filter(run_id__in=ids)
        .annotate(rank=rank)
        .order_by("run_id", "rank", "due_at")
        .distinct("run_id")
        .values("run_id", "kind", "name", "path", "detail", "due_at", "since", "reference")
    )
    return {wait["run_id"]: wait for wait in found}


def _row(run: Fields, wait: Fields | None) -> Row:
    first, second, due_at = _about(run, wait)
    return Row(
        id=run["id"],
        title=run["title"] or run["key"] or run["workflow"],
        workflow=run["workflow"],
        mark=run_mark(run["status"], wait["kind"] if wait else None),
        state_at=run["state_at"],
        created_at=run["created_at"],
        events=run["seq"],
        first=first,
        second=second,
        due_at=due_at,
        is_error=run["status"] in (RunStatus.FAILED, RunStatus.BLOCKED),
    )


def _about(run: Fields, wait: Fields | None) -> tuple[str, str, datetime | None]:
    status = run["status"]
    if wait is not None:
        return f"Step {wait['path']} {wait['name']}".strip(), wait["detail"], wait["due_at"]
    if status == RunStatus.FAILED:
        where = f"Step {run['error_path']}" if run["error_path"] else "The workflow itself"
        return where, f"{run['error_type']}: {run['error_message']}", None
    if status == RunStatus.BLOCKED:
        where = f"Step {run['difference_path']}" if run["difference_path"] else "The run itself"
        return where, run["difference"] or "", None
    if status == RunStatus.READY:
        return "Nobody took it yet", run["progress"], None
    return run["progress"], "", None


def counts(runs: QuerySet[Run]) -> dict[str, str]:
    """How many runs the tabs hold, but for those that only grow: one query, and no more work than the limit."""
    counted = [tab for tab in TABS if tab.slug not in ("", "completed")]
    parts: list[str] = []
    params: list[Any] = []
    for tab in counted:
        sql, values = runs.filter(tab.condition).order_by().values("id")[:COUNT_LIMIT].query.sql_with_params()
        parts.append(f"(SELECT count(*) FROM ({sql}) AS counted)")  # noqa: S608 - the ORM wrote it, with its own placeholders
        params += values
    # One round trip; the ORM has no query without a table to hang these on.
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(parts), params)
        found = cursor.fetchone()
    return {tab.slug: _bounded(number) for tab, number in zip(counted, found, strict=True)}


def _bounded(number: int) -> str:
    return f"{number:,}+" if number >= COUNT_LIMIT else f"{number:,}"
