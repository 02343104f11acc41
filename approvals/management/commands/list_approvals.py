"""manage.py list_approvals: the requests; what waits with the most urgent first, all others the newest first."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC
from typing import Any

from approvals.models import Approval
from approvals.queries import by_deadline, describe, with_votes
from approvals.states import Status
from journal.commands import JsonCommand, terminal


class Command(JsonCommand):
    help = "List approval requests, the newest first; with --status waiting the most urgent first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--status", choices=[str(status) for status in Status], help="only those")

    def handle(self, *args: Any, **options: Any) -> None:
        status = options["status"]
        approvals = Approval.objects.order_by("-created_at", "-id")
        if status:
            approvals = approvals.filter(status=status)
        if status == Status.WAITING:
            approvals = by_deadline(approvals)
        found = list(with_votes(approvals))
        self.answer([describe(approval) for approval in found], "\n".join(map(_line, found)) or "none")


def _line(approval: Approval) -> str:
    """One line; times are UTC, to the minute."""
    until = "no deadline"
    if approval.deadline_at:
        until = f"until {approval.deadline_at.astimezone(UTC):%Y-%m-%d %H:%M}Z"
    return terminal(
        f"{approval.id}  {approval.status:<13}  revision {approval.revision}  {until:<23}  "
        f"run {approval.run_id}  {approval.action}: {approval.summary}"
    )
