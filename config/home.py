"""SIGNOFF_HOME: the folder for what this machine's Signoff keeps outside its database."""

from __future__ import annotations

import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config import env

BASE_DIR = Path(__file__).resolve().parent.parent


def home() -> Path:
    """The folder, absolute; it may not exist yet."""
    return env.folder("SIGNOFF_HOME") or BASE_DIR / ".signoff"


def generated_secret(folder: Path, name: str) -> str:
    """The secret kept in `folder`/`name` (0600), made at the first call.

    Two processes that start at once get the same one: only one of them can create the file.
    """
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            draft = folder / f".{name}.{secrets.token_hex(8)}"
            draft.touch(mode=0o600, exist_ok=False)
            draft.write_text(secrets.token_urlsafe(48), encoding="utf-8")
            try:
                path.hardlink_to(draft)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"SIGNOFF_HOME: {error.filename}: {error.strerror}") from error
