"""The project's own files: pinned requirements, the make targets, CI."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from config.home import BASE_DIR

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


def test_ci_is_make_check_test_and_sabotage() -> None:
    script = (BASE_DIR / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make .*$", script, re.MULTILINE) == ["make check test sabotage"]
    assert os.access(BASE_DIR / ".ci" / "run", os.X_OK)
