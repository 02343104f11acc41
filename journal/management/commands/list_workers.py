"""List the live workers."""

from __future__ import annotations

from typing import Any

from journal.commands import JsonCommand
from journal.models import Worker


class Command(JsonCommand):
    help = "Lists the workers that live, with the runs that each holds."

    def handle(self, **options: Any) -> None:
        workers = Worker.objects.filter(stopped_at=None, death=None).order_by("pk").prefetch_related("runs")
        shown: list[dict[str, Any]] = [
            {
                "pid": worker.pid,
                "host": worker.host,
                "heartbeat_at": worker.heartbeat_at.isoformat(),
                "runs": sorted(run.pk for run in worker.runs.all() if run.status == "running"),
            }
            for worker in workers
        ]
        lines = [
            f"{row['pid']:>8}  {row['host']}  {row['heartbeat_at'][:19]}  {', '.join(row['runs']) or 'idle'}"
            for row in shown
        ]
        self.answer(shown, "\n".join(lines) or "no worker lives; manage.py up starts some")
