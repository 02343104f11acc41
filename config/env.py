"""Settings from the environment: small typed readers that fail loudly, with one line.

Each reads one variable; what is unset or empty takes the default. docs/settings.md lists
every variable, and a test compares that table with the calls made here.
"""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_YES = {"1", "true", "yes", "on"}
_NO = {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """The variable as it is, without surrounding blanks."""
    return os.environ.get(name, "").strip() or default


def choice(name: str, default: str, among: tuple[str, ...]) -> str:
    """One of the given words."""
    value = text(name, default)
    if value not in among:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of: {', '.join(among)}")
    return value


def flag(name: str, *, default: bool) -> bool:
    """Yes or no: 1/0, true/false, yes/no, on/off."""
    value = text(name).lower()
    if not value:
        return default
    if value in _YES or value in _NO:
        return value in _YES
    raise ImproperlyConfigured(f"{name} is {value!r}; it must be 1 or 0")


def count(name: str, default: int) -> int:
    """A whole number from 0 up."""
    value = text(name)
    if not value:
        return default
    if not (value.isascii() and value.isdigit()):
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be a whole number from 0 up")
    return int(value)


def names(name: str, default: str = "") -> list[str]:
    """Comma-separated names, in order, without blanks."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def folder(name: str, default: Path | None = None) -> Path | None:
    """A path, made absolute; it need not exist."""
    value = text(name)
    return Path(value).expanduser().absolute() if value else default


def secret(name: str) -> str:
    """A secret from NAME, or from the file that NAME_FILE names; "" when neither is set."""
    file_name = text(f"{name}_FILE")
    if not file_name:
        return text(name)
    if text(name):
        raise ImproperlyConfigured(f"both {name} and {name}_FILE are set; set one")
    try:
        value = Path(file_name).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE: cannot read {file_name}: {error.strerror}") from error
    if not value:
        raise ImproperlyConfigured(f"{name}_FILE: {file_name} is empty")
    return value
