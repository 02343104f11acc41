"""What start_run and list_approvals print for people."""

from __future__ import annotations

from pathlib import Path

from tests.harness import Service
from tests.waiting import wait_for

SHOP = """from approvals import requires_approval
from journal import step, workflow


@workflow
def fails(text: str) -> str:
    raise ValueError(text)


@workflow
def says(text: str) -> str:
    return text


@requires_approval(policy="refunds", summary=lambda order: f"Pay {order}")
@step
def pay(order: str) -> str:
    return "paid"


@workflow(owner="support-lead")
def asks(order: str) -> str:
    return pay(order)
"""


def start_shop(service: Service, folder: Path) -> None:
    (folder / "shop_for_commands.py").write_text(SHOP, encoding="utf-8")
    service.env |= {"SIGNOFF_WORKFLOWS": "shop_for_commands,agents.examples.returns", "PYTHONPATH": str(folder)}
    service.start_worker()


def test_start_run_wait_says_where_to_look_and_what_came_out(service: Service, tmp_path: Path) -> None:
    start_shop(service, tmp_path)
    said = service.manage("start_run", "says", "--input", '["done \\u001b[31m"]', "--wait")
    run = said.err.removeprefix("waiting for run ").strip()
    assert said.out.splitlines() == [f"run {run} of says@1 is completed", '"done \\u001b[31m"']
    failed = service.manage("start_run", "fails", "--input", '["no"]', "--wait")
    assert failed.code == 1
    assert failed.out.splitlines()[1].endswith("ValueError: no")


def test_approvals_are_listed_with_what_they_are_about_the_newest_first(service: Service, tmp_path: Path) -> None:
    start_shop(service, tmp_path)
    for person in ("clerk", "mara", "support-lead"):
        service.json("add_person", person, "--groups", "finance")
    listed: list[str] = []

    def is_listed(count: int) -> bool:
        listed[:] = service.manage("list_approvals").out.splitlines()
        return len(listed) == count and listed != ["none"]

    for number, order in enumerate(("first", "second \\u001b[31m"), start=1):
        service.json("start_run", "asks", "--input", f'["{order}"]', "--as", "clerk")
        wait_for(lambda number=number: is_listed(number), 20, "the approval is listed")  # type: ignore[misc]
    newest, oldest = listed
    assert newest.endswith("  pay: Pay second \\u001b[31m")
    assert oldest.endswith("  pay: Pay first")
    assert "until 20" in newest
    urgent = service.manage("list_approvals", "--status", "waiting").out.splitlines()
    assert urgent == [oldest, newest]
