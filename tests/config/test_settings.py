"""The settings as a whole: the table in the docs, and what each mode demands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from config import checks
from config.home import BASE_DIR
from tests import machine

TABLE = (BASE_DIR / "docs" / "settings.md").read_text(encoding="utf-8")
CALL = re.compile(r'env\.(\w+)\(\s*"(\w+)"')
WRAPPED_CALL = re.compile(r'_key\("(\w+)"')

PRODUCTION = {
    "SIGNOFF_ENV": "production",
    "SIGNOFF_BASE_URL": "https://signoff.example.org",
    "SIGNOFF_SECRET_KEY": "only-for-this-test-0123456789-0123456789-abcdefghijkl",
    "SIGNOFF_CHAIN_KEY": "only-for-this-test-9876543210-9876543210",
    "SIGNOFF_BROKER_URL": "redis://broker.invalid",
    "DATABASE_URL": "postgresql://signoff@database.invalid/signoff",
}


def run(tmp_path: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`manage.py ARGS` with no Signoff variable but these."""
    return subprocess.run(
        [sys.executable, "manage.py", *args],
        cwd=BASE_DIR,
        env=machine.environment(SIGNOFF_HOME=str(tmp_path), **env),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_table_names_exactly_the_variables_that_the_code_reads() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (BASE_DIR / "config").rglob("*.py")]
    secrets = {name for text in sources for kind, name in CALL.findall(text) if kind == "secret"}
    secrets |= {name for text in sources for name in WRAPPED_CALL.findall(text)}
    read = secrets | {name for text in sources for _, name in CALL.findall(text)}
    rows = re.findall(r"^\| `([A-Z_]+)`( \(\*secret\*\))? \|", TABLE, re.MULTILINE)
    assert {name for name, _ in rows} == read
    assert {name for name, secret in rows if secret} == secrets


def test_the_table_names_exactly_the_checks_of_the_code() -> None:
    source = (BASE_DIR / "config" / "checks.py").read_text(encoding="utf-8")
    raised = set(re.findall(r'id="(signoff\.[EW]\d+)"', source))
    assert set(re.findall(r"^\| `(signoff\.\w+)` \|", TABLE, re.MULTILINE)) == raised == set(checks.IDS)


def test_production_passes_the_deployment_checks(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir()), "production makes up no keys"


@pytest.mark.parametrize("name", ["SIGNOFF_SECRET_KEY", "SIGNOFF_CHAIN_KEY"])
def test_production_refuses_to_make_up_a_key(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, "check", **{**PRODUCTION, name: ""})
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"settings: {name} is not set; production needs it (SIGNOFF_ENV is production)"]


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"SIGNOFF_CHAIN_KEY": "short"}, "signoff.E005"),
        ({"SIGNOFF_CHAIN_KEY": PRODUCTION["SIGNOFF_SECRET_KEY"]}, "signoff.E006"),
        ({"SIGNOFF_BROKER_URL": "memory://"}, "signoff.E009"),
        ({"SIGNOFF_BASE_URL": "signoff.example.org"}, "signoff.E010"),
        ({"SIGNOFF_BASE_URL": "http://signoff.example.org"}, "signoff.E011"),
        ({"SIGNOFF_WORKFLOWS": "no_such_shop"}, "signoff.E013"),
        ({"SIGNOFF_PREPARED_STATEMENTS": "0"}, "signoff.W001"),
    ],
)
def test_an_unsound_setting_is_found(tmp_path: Path, change: dict[str, str], check: str) -> None:
    done = run(tmp_path, "check", "--fail-level", "WARNING", **{**PRODUCTION, **change})
    assert done.returncode == 1
    assert check in done.stderr


def test_servers_default_to_production_and_refuse_without_keys(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import config.wsgi"],
        cwd=BASE_DIR,
        env=machine.environment(SIGNOFF_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "SIGNOFF_CHAIN_KEY is not set; production needs it" in done.stderr.splitlines()[-1]


def test_development_keeps_its_keys(tmp_path: Path) -> None:
    code = "from django.conf import settings as s; print(s.SECRET_KEY, s.SIGNOFF_CHAIN_KEY)"
    first, second = (run(tmp_path, "shell", "--no-imports", "-c", code).stdout for _ in range(2))
    assert first == second
    assert len(set(first.split())) == 2
    for name in ("secret_key", "chain_key"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_a_command_without_a_database_says_so_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "showmigrations")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["no database: run `manage.py up` or set DATABASE_URL"]
    assert done.stdout == ""


def test_a_command_with_an_unreachable_database_says_so_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "showmigrations", DATABASE_URL="postgresql://signoff@127.0.0.1:1/signoff")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("database unavailable: ")


def test_an_address_that_is_none_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "check", DATABASE_URL="mysql://nowhere/")
    assert done.stderr.startswith("settings: DATABASE_URL is not a PostgreSQL address")


def test_no_command_imports_an_sdk(tmp_path: Path) -> None:
    code = "import sys; print({'anthropic', 'slack_sdk', 'redis', 'gunicorn'} & set(sys.modules))"
    assert run(tmp_path, "shell", "--no-imports", "-c", code).stdout.strip() == "set()"
