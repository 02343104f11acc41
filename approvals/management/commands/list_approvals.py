"""manage.py list_approvals: the requests, the most urgent first."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from approvals.models import Approval
from approvals.queries import by_deadline, describe, with_votes
from approvals.states import Status
from journal.commands import JsonCommand, terminal


class Command(JsonCommand):
    help = "List approval requests, the most urgent first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--status", choices=[str(status) for status in Status], help="only those")

    def handle(self, *args: Any, **options: Any) -> None:
        approvals = by_deadline(Approval.objects.all())
        if options["status"]:
            approvals = approvals.filter(status=options["status"])
        found = [describe(approval) for approval in with_votes(approvals)]
        self.answer(found, "\n".join(terminal(_line(one)) for one in found) or "none")


def _line(one: dict[str, Any]) -> str:
    until = f"until {one['deadline_at']}" if one["deadline_at"] else "no deadline"
    return (
        f"{one['id']}  {one['status']:<13}  revision {one['revision']}  {one['action']}  run {one['run_id']}  {until}"
    )
