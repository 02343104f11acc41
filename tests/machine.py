"""What this machine has. A test that needs more is skipped with one line, and fails in CI."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


_OURS = ("SIGNOFF_", "DATABASE_", "DJANGO_", "PG")


def environment(**more: str) -> dict[str, str]:
    """The machine's own environment for a child process, without what this test process set, and with `more`."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {**mine, "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONUNBUFFERED": "1", **more}


def lacking(what: str) -> NoReturn:
    """Ends the test: a skip on a person's machine, a failure under CI=true."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def chromium() -> str:
    """Path of a Chromium; the test ends when there is none."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    return lacking(f"no browser: install one of {', '.join(BROWSERS)}")


def real_data() -> Path:
    """The folder of the real inputs (SIGNOFF_TEST_DATA); the test ends when there is none."""
    name = os.environ.get("SIGNOFF_TEST_DATA", "")
    if not name:
        return lacking("no real inputs: SIGNOFF_TEST_DATA is unset")
    if not Path(name).is_dir():
        return lacking(f"no real inputs: SIGNOFF_TEST_DATA names {name}, which is no folder")
    return Path(name).absolute()
