"""manage.py list_approvals: the requests, the most urgent first."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from approvals.models import Approval
from approvals.queries import by_deadline, describe, with_votes
from approvals.states import Status


class Command(BaseCommand):
    help = "List approval requests, the most urgent first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--status", choices=[str(status) for status in Status], help="only those")
        parser.add_argument("--json", action="store_true", help="one JSON array")

    def handle(self, *args: Any, **options: Any) -> None:
        approvals = by_deadline(Approval.objects.all())
        if options["status"]:
            approvals = approvals.filter(status=options["status"])
        found = [describe(approval) for approval in with_votes(approvals)]
        if options["json"]:
            self.stdout.write(json.dumps(found))
            return
        for one in found:
            until = f"until {one['deadline_at']}" if one["deadline_at"] else "no deadline"
            self.stdout.write(
                f"{one['id']}  {one['status']:<13}  r{one['revision']}  {one['action']}  {one['run_id']}  {until}"
            )
