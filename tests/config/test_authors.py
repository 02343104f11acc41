"""Authors' modules that do not load: one line that says which, where and why, wherever they are loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from journal import celery_signals, registry
from journal.errors import AuthorsModuleBroken
from tests.harness import Service
from tests.waiting import wait_for

TWICE = """from journal import step


@step(name="pay")
def one() -> None: ...


@step(name="pay")
def other() -> None: ...
"""

CASES = {
    "raises": ("import json\n\njson.loads('no')\n", "{file}:3: JSONDecodeError: Expecting value"),
    "misspelt": ("def one(:\n    pass\n", "{file}:1: SyntaxError: "),
    "lacks": ("\nimport no_such_library\n", "{file}:2: ModuleNotFoundError: No module named 'no_such_library'"),
    "leaves": ("import sys\nsys.exit('enough')\n", "{file}:2: SystemExit: enough"),
    "twice": (TWICE, "{file}:8: two functions are called step pay: "),
    "wordy": ("raise ValueError('one\\ntwo')\n", "{file}:1: ValueError: one two"),
}


@pytest.fixture
def authors(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for authors' modules; what they register is forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    registry.load_authors_modules.cache_clear()
    with registry.isolated():
        yield tmp_path
    registry.load_authors_modules.cache_clear()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("case", CASES)
def test_what_breaks_a_module_is_one_line(authors: Path, settings: Any, case: str) -> None:
    source, expected = CASES[case]
    name = f"shop_that_{case}"
    file = authors / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    settings.SIGNOFF_WORKFLOWS = [name]
    with pytest.raises(AuthorsModuleBroken) as raised:
        registry.load_authors_modules()
    line = str(raised.value)
    assert line.startswith(f"SIGNOFF_WORKFLOWS: module {name} does not load: {expected.format(file=file)}")
    assert len(line.splitlines()) == 1


def test_the_place_is_where_it_broke_not_where_it_was_imported(authors: Path, settings: Any) -> None:
    (authors / "shop_prices.py").write_text("\n\n{}['amount']\n", encoding="utf-8")
    (authors / "shop_with_prices.py").write_text("import shop_prices\n", encoding="utf-8")
    settings.SIGNOFF_WORKFLOWS = ["shop_with_prices"]
    with pytest.raises(AuthorsModuleBroken, match=r"/shop_prices\.py:3: KeyError: 'amount'$"):
        registry.load_authors_modules()


@pytest.mark.parametrize("name", ["no_such_shop", "json.no_such_shop", ".shop", "shop."])
def test_a_module_that_is_not_there_is_named(authors: Path, settings: Any, name: str) -> None:
    settings.SIGNOFF_WORKFLOWS = [name]
    with pytest.raises(AuthorsModuleBroken) as raised:
        registry.load_authors_modules()
    assert str(raised.value).startswith(f"SIGNOFF_WORKFLOWS: module {name} does not load: ")


def test_the_worker_s_own_receiver_ends_it(authors: Path, settings: Any) -> None:
    settings.SIGNOFF_WORKFLOWS = ["no_such_shop"]
    with pytest.raises(SystemExit, match="module no_such_shop does not load"):
        celery_signals.load_workflows()


def test_each_process_says_it_in_one_line_and_ends(service: Service) -> None:
    reason = "SIGNOFF_WORKFLOWS: module no_such_shop does not load: ModuleNotFoundError: No module named 'no_such_shop'"
    service.env["SIGNOFF_WORKFLOWS"] = "no_such_shop"
    started = service.manage("start_run", "anything", "--as", "clerk")
    assert (started.code, started.err.splitlines()) == (1, [f"CommandError: {reason}"])
    checked = service.manage("check")
    assert checked.code == 1
    assert f"(signoff.E013) {reason}" in checked.err
    worker = service.start_worker(wait=False)
    assert worker.wait() != 0
    (line,) = worker.output().strip().splitlines()
    assert line.endswith(reason)
    assert _web_says(service)[0] == f"settings: signoff.E013: {reason}"


def _web_says(service: Service) -> list[str]:
    """The lines of a web server that ends at its start."""
    with pytest.raises(AssertionError):
        service.start_web()
    web = service.children[-1]
    assert web.wait() != 0
    lines = web.output().strip().splitlines()
    assert "Traceback" not in web.output()
    return lines


def test_a_worker_with_unsound_settings_ends(service: Service) -> None:
    worker = service.start_worker(wait=False, SIGNOFF_CHAIN_KEY="short")
    assert worker.wait() != 0
    assert worker.output().splitlines() == [
        "settings: signoff.E005: SIGNOFF_CHAIN_KEY needs at least 32 characters",
    ]


def test_a_signal_before_the_worker_is_started_does_no_harm() -> None:
    celery_signals.drain()
    celery_signals.stop()


def test_the_fingerprint_depends_on_the_chain_s_key(settings: Any) -> None:
    fingerprint = registry.fingerprint.__wrapped__
    first = fingerprint()
    assert fingerprint() == first
    settings.SIGNOFF_CHAIN_KEY = "another-key-0123456789-0123456789-0123456789"
    assert fingerprint() != first


NAP = """from datetime import timedelta
from journal import step, wait_for_signal, workflow


@step
def look() -> str:
    return "seen"


@workflow
def looks() -> str:
    look()
    wait_for_signal("go", timeout=timedelta(hours=1))
    return look()
"""


def test_a_run_that_a_wrong_key_blocked_goes_on_under_the_right_one(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop_that_looks.py").write_text(NAP, encoding="utf-8")
    service.env |= {"SIGNOFF_WORKFLOWS": "shop_that_looks", "PYTHONPATH": str(tmp_path)}
    run = service.json("start_run", "looks")["id"]

    def is_(status: str) -> Any:
        return wait_for(lambda: service.json("show_run", run)["status"] == status, 20, f"the run is {status}")

    right = service.start_worker()
    is_("waiting")
    right.terminate()
    right.wait()
    wrong = service.start_worker(SIGNOFF_CHAIN_KEY="another-key-0123456789-0123456789-0123456789")
    service.json("signal_run", run, "go")
    is_("blocked")
    wrong.terminate()
    wrong.wait()
    service.start_worker()
    is_("completed")
