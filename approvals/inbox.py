"""The inbox: what waits, the most urgent first, and what was decided, the latest first. No arguments are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from approvals import queries
from approvals.cards import RISK_WORDS, STATUS_MARKS
from approvals.models import Approval
from approvals.states import Risk, Status
from journal.marks import Mark

PAGE = 50
_FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    id: str
    summary: str
    risk: str
    risk_word: str
    run_id: str
    run_title: str
    workflow: str
    action: str
    deadline_at: datetime | None
    decided_at: datetime | None
    decided_by: str
    mark: Mark
    count: int

    @property
    def is_soon(self) -> bool:
        return self.deadline_at is not None and self.deadline_at - datetime.now(UTC) < timedelta(minutes=30)


@dataclass(frozen=True)
class Group:
    word: str
    rows: list[Row]


@dataclass(frozen=True)
class Page:
    rows: list[Row]
    older: str
    is_first: bool

    @property
    def version(self) -> str:
        return "|".join(f"{row.id} {row.count}" for row in self.rows)

    @property
    def groups(self) -> list[Group]:
        """By deadline, in the order of the rows."""
        now = datetime.now(UTC)
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(_when(row.deadline_at, now), []).append(row)
        return [Group(word, rows) for word, rows in found.items()]

    def neighbours(self, approval_id: str) -> tuple[int, Row | None, Row | None]:
        """The place of a row on this page, from 1 (0 if it is not here), and the rows before and after it."""
        ids = [row.id for row in self.rows]
        if approval_id not in ids:
            return 0, None, self.rows[0] if self.rows else None
        at = ids.index(approval_id)
        return at + 1, self.rows[at - 1] if at else None, self.rows[at + 1] if at + 1 < len(ids) else None


def _when(deadline: datetime | None, now: datetime) -> str:
    if deadline is None:
        return "No deadline"
    if deadline - now <= timedelta(hours=1):
        return "Due within the hour"
    return "Due within a day" if deadline - now <= timedelta(days=1) else "Later"


def waiting_page(approvals: QuerySet[Approval], cursor: str) -> Page:
    """Those of a list by deadline that come after `cursor`; one that cannot be read counts as none."""
    after = _read_cursor(cursor)
    if after is not None:
        moment, approval_id = after
        if moment == _FOREVER:
            approvals = approvals.filter(deadline_at=None, id__gt=approval_id)
        else:
            approvals = approvals.filter(
                Q(deadline_at__gt=moment) | Q(deadline_at=moment, id__gt=approval_id) | Q(deadline_at=None)
            )
    rows = _rows(approvals)
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    older = f"{(last.deadline_at or _FOREVER).isoformat()}~{last.id}" if last else ""
    return Page(rows[:PAGE], older, after is None)


def decided_page(approvals: QuerySet[Approval], cursor: str) -> Page:
    """Those of a list by decision that come after `cursor`."""
    after = _read_cursor(cursor)
    if after is not None:
        moment, approval_id = after
        approvals = approvals.filter(Q(decided_at__lt=moment) | Q(decided_at=moment, id__lt=approval_id))
    rows = _rows(approvals)
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    older = f"{last.decided_at.isoformat()}~{last.id}" if last and last.decided_at else ""
    return Page(rows[:PAGE], older, after is None)


def _read_cursor(cursor: str) -> tuple[datetime, str] | None:
    moment, _, approval_id = cursor.partition("~")
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (read, approval_id) if read.tzinfo is not None and approval_id else None


def _rows(approvals: QuerySet[Approval]) -> list[Row]:
    listed = approvals.select_related(None).values(
        "id", "summary", "risk", "action", "run_id", "run__key", "run__workflow",
        "deadline_at", "decided_at", "decided_by_name", "status", "count",
    )  # fmt: skip
    return [_row(found) for found in listed[: PAGE + 1]]


def _row(found: Mapping[str, Any]) -> Row:
    return Row(
        id=found["id"],
        summary=found["summary"],
        risk=found["risk"],
        risk_word=RISK_WORDS[Risk(found["risk"])],
        run_id=found["run_id"],
        run_title=found["run__key"] or found["run_id"],
        workflow=found["run__workflow"],
        action=found["action"],
        deadline_at=found["deadline_at"],
        decided_at=found["decided_at"],
        decided_by=found["decided_by_name"],
        mark=STATUS_MARKS[Status(found["status"])],
        count=found["count"],
    )


def waiting_list(user: Any, scope: str) -> QuerySet[Approval]:
    """`mine`: what the user can decide; `all`: all that they may see."""
    return queries.waiting(user) if scope == "all" else queries.waiting_for(user)


def count_words(counts: dict[str, int]) -> dict[str, str]:
    return {name: _bounded(number) for name, number in counts.items()}


def _bounded(number: int) -> str:
    return f"{number:,}+" if number >= queries.MOST_COUNTED else f"{number:,}"
