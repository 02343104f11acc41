"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from config.home import BASE_DIR
from tests.harness import Service
from tests.waiting import wait_for

README = (BASE_DIR / "README.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if containing in text]
    assert len(found) == 1
    return str(found[0])


def test_the_workflow_runs_with_the_commands_beside_it(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(block("python", "refund_order"), encoding="utf-8")
    service.env |= {"SIGNOFF_WORKFLOWS": "shop,agents.examples.returns", "PYTHONPATH": str(tmp_path)}
    for person in ("clerk", "mara", "support-lead"):
        service.json("add_person", person, "--groups", "finance")
    start, waiting, decide, show = [
        shlex.split(line)[3:] for line in block("console", "start_run").splitlines() if "manage.py" in line
    ]
    service.start_worker()
    run = service.json(*start)
    approval = wait_for(lambda: service.json(*waiting), 20, "the approval")[0]
    assert approval["run_id"] == run["id"]
    service.json(*[approval["id"] if word == "ID" else word for word in decide])

    def completed() -> dict[str, str] | None:
        shown: dict[str, str] = service.json(*[run["id"] if word == "ID" else word for word in show])
        return shown if shown["status"] == "completed" else None

    shown = wait_for(completed, 20, "the run is completed")
    assert shown
    assert shown["result"].startswith("paid 420.00 under ")


def test_its_links_lead_somewhere() -> None:
    missing = [
        target
        for name in ("README.md", "CONTRIBUTING.md")
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", (BASE_DIR / name).read_text(encoding="utf-8"))
        if not (BASE_DIR / target).exists()
    ]
    assert missing == []
