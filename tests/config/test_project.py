"""The project's own files: pinned requirements, the make targets, CI."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from kombu.transport import TRANSPORT_ALIASES

from config.home import BASE_DIR
from tests import machine
from tests.breaks import Break
from tests.sabotage import BREAKS

HTTP = ("django.http", "django.views", "django.urls", "django.shortcuts", "django.template")
REQUIREMENTS = BASE_DIR / "requirements"


@pytest.mark.parametrize("name", ["base", "dev"])
def test_requirements_are_pinned_with_hashes_and_name_no_index(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    pins = re.split(r"\n(?=\S)", text.strip())
    assert len(pins) > 30
    for pin in pins:
        assert re.match(r"[a-z0-9-]+==\S+ ", pin), pin
        assert "--hash=sha256:" in pin, pin


@pytest.mark.parametrize("name", ["base", "dev"])
def test_everything_asked_for_is_pinned(name: str) -> None:
    wanted = re.findall(r"^([a-z][a-z-]*)", (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8"), re.MULTILINE)
    pinned = re.findall(r"^([a-z0-9-]+)==", (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(wanted) <= set(pinned)


IMPORT_WITH_ONLY = """
import importlib, sys
from importlib.metadata import packages_distributions
module, pinned = sys.argv[1], set(sys.argv[2:])
theirs = {top: {name.lower().replace("_", "-").replace(".", "-") for name in names}
          for top, names in packages_distributions().items()}
class OnlyThePinned:
    def find_spec(self, name, path=None, target=None):
        if name in theirs and not theirs[name] & pinned:
            raise ModuleNotFoundError(f"{name} is of {theirs[name]}, which base.txt does not list", name=name)
sys.meta_path.insert(0, OnlyThePinned())
importlib.import_module(module)
"""


@pytest.mark.parametrize("scheme", ["redis", "rediss", "amqp", "pgmq"])
def test_each_broker_works_with_what_base_txt_lists(scheme: str) -> None:
    pinned = re.findall(r"^([a-z0-9-]+)==", (REQUIREMENTS / "base.txt").read_text(encoding="utf-8"), re.MULTILINE)
    module = TRANSPORT_ALIASES[scheme].partition(":")[0]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_WITH_ONLY, module, *pinned], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_each_documented_broker_is_among_those_tried() -> None:
    table = (BASE_DIR / "docs" / "settings.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `SIGNOFF_BROKER_URL` .*$", table, re.MULTILINE)
    assert set(re.findall(r"`(\w+)://", row)) == {"redis", "amqp", "pgmq"}


def test_manage_py_without_the_requirements_gives_one_clear_line() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "manage.py", "check"], cwd=BASE_DIR, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    said = "this Python has no module django: run `make install` and use .venv/bin/python"
    assert done.stderr.splitlines() == [said]


def test_the_commands_of_the_documents_use_the_python_of_make_install() -> None:
    pages = [BASE_DIR / "README.md", *(BASE_DIR / "docs").glob("*.md")]
    bare = [
        (page.name, line)
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r"(\$ )?python\S* ", line)
    ]
    assert bare == []


def test_what_runs_is_pinned_alike_for_running_and_testing() -> None:
    pins = [dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))
            for path in (REQUIREMENTS / "base.txt", REQUIREMENTS / "dev.txt")]  # fmt: skip
    assert pins[0].items() <= pins[1].items()


def test_the_engine_s_core_does_not_know_http() -> None:
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text(encoding="utf-8"))
    core = project["tool"]["importlinter"]["contracts"][1]["source_modules"]
    assert len(core) > 20
    for module in core:
        tree = ast.parse((BASE_DIR / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        assert not [name for name in imported if name.startswith(HTTP)], module


def test_make_without_a_python_gives_one_clear_error(tmp_path: Path) -> None:
    for name in ("make", "sh", "echo", "rm", "cat", "sed", "expand", "touch"):
        source = next(Path(folder) / name for folder in os.defpath.split(":") if (Path(folder) / name).exists())
        (tmp_path / name).symlink_to(source)
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tmp_path / "python3").chmod(0o755)
    done = subprocess.run(
        [tmp_path / "make", "-f", BASE_DIR / "Makefile", "VENV=" + str(tmp_path / "venv"), "install"],
        cwd=BASE_DIR,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert lines == ["Signoff needs Python 3.11 or newer with its venv module (Debian: apt-get install python3-venv)."]


@pytest.mark.parametrize("each", BREAKS, ids=lambda each: each.name)
def test_each_break_of_make_sabotage_has_its_place_and_its_tests(each: Break) -> None:
    sound = (BASE_DIR / each.file).read_text(encoding="utf-8")
    assert each.broken(sound) != sound
    assert each.tests
    for test in each.tests:
        file, _, name = test.partition("::")
        source = (BASE_DIR / file).read_text(encoding="utf-8")
        assert not name or f"def {name.partition('[')[0]}(" in source, test


def test_each_break_of_make_sabotage_has_a_name_of_its_own() -> None:
    assert len({each.name for each in BREAKS}) == len(BREAKS) >= 25


SABOTAGE = """
import sys
from dataclasses import replace
from tests import sabotage
real = next(each for each in sabotage.BREAKS if each.name == "times have no zone")
sabotage.BREAKS = [real, replace(real, name="harmless", new=real.old + "  # the same")]
sys.exit(sabotage.main())
"""


def test_make_sabotage_fails_if_a_break_turns_no_test_red() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SABOTAGE],
        cwd=BASE_DIR,
        env=machine.environment(DJANGO_SETTINGS_MODULE="tests.settings"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    said = [re.sub(r"\(\d+ s\)", "(1 s)", line) for line in done.stdout.splitlines()]
    red = "red   times have no zone (1 s): pages/test_display.py::test_times_name_their_zone_and_day"
    assert sorted(said[:2]) == ["GREEN harmless (1 s): pytest ended with 0", red]
    assert said[-1] == "1 of 2 breaks turned a test red (1 s)"


def test_ci_is_make_check_make_test_and_make_sabotage() -> None:
    script = (BASE_DIR / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make .*$", script, re.MULTILINE) == ["make check test sabotage"]
    assert os.access(BASE_DIR / ".ci" / "run", os.X_OK)
