"""Policies: who may decide, how long, what happens at the end, and what passes by rule. From TOML files.

    [policy.refunds]
    seats = [{group = "finance", need = 1}]
    four_eyes = ["starter", "owner"]     # whom the person who decides may not be
    deadline = "48h"                     # s, m, h or d; without it a request waits for ever
    at_end = "reject"                    # what the deadline brings
    valid_for = "72h"                    # an approval that is not used by then is asked again
    risk = "medium"                      # low, medium, high, critical
    reason_required = false              # also of those who approve; a rejection always needs one

    [[policy.refunds.rule]]              # any number; the first that passes, passes
    when = "matched and amount <= 25.00"

The setting SIGNOFF_POLICIES names a file, or a folder of them. They are read once by each process, like code.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, field_validator

from approvals import rules
from approvals.errors import PolicyError
from approvals.roles import is_role
from approvals.states import Party, Risk

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 3650 * 86400


def _duration(value: object) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a duration is a number and s, m, h or d, such as "48h"')
    seconds = int(match[1]) * _UNITS[match[2]]
    if not 0 < seconds <= _LONGEST:
        raise ValueError("a duration is longer than nothing and at most ten years")
    return timedelta(seconds=seconds)


def _seconds(value: timedelta) -> str:
    return f"{value // timedelta(seconds=1)}s"


Duration = Annotated[timedelta, BeforeValidator(_duration), PlainSerializer(_seconds)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Seat(_Part):
    """A group of which so many have to agree."""

    group: str = Field(min_length=1, max_length=150)
    need: int = Field(default=1, ge=1)

    @field_validator("group")
    @classmethod
    def _no_role(cls, group: str) -> str:
        if is_role(group):
            raise ValueError(f"{group!r} is a role, not a group of people")
        return group

    @field_validator("need")
    @classmethod
    def _one(cls, need: int) -> int:
        if need != 1:
            raise ValueError("more than one vote is not supported yet")
        return need


class RuleLine(_Part):
    """What may pass without a person."""

    when: str

    @field_validator("when")
    @classmethod
    def _readable(cls, when: str) -> str:
        rules.parse(when)
        return when


def _list(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class Policy(_Part):
    """One policy, complete with its defaults."""

    seats: Annotated[tuple[Seat, ...], BeforeValidator(_list)] = Field(min_length=1)
    four_eyes: Annotated[tuple[str, ...], BeforeValidator(_list)] = ()
    deadline: Duration | None = None
    at_end: str = "reject"
    valid_for: Duration = timedelta(hours=72)
    risk: Literal["low", "medium", "high", "critical"] = Risk.MEDIUM.value
    reason_required: bool = False
    rule: Annotated[tuple[RuleLine, ...], BeforeValidator(_list)] = ()

    @field_validator("seats")
    @classmethod
    def _one_seat(cls, seats: tuple[Seat, ...]) -> tuple[Seat, ...]:
        if len(seats) != 1:
            raise ValueError("more than one seat is not supported yet")
        return seats

    @field_validator("four_eyes")
    @classmethod
    def _known_parties(cls, parties: tuple[str, ...]) -> tuple[str, ...]:
        for party in parties:
            if party not in list(Party):
                raise ValueError(f"four eyes against {party!r} is not supported; there are: {', '.join(Party)}")
        return tuple(dict.fromkeys(parties))

    @field_validator("at_end")
    @classmethod
    def _reject(cls, at_end: str) -> str:
        if at_end == "approve":
            raise ValueError("a deadline never approves")
        if at_end != "reject":
            raise ValueError(f"{at_end!r} is not supported yet; there is: reject")
        return at_end

    @property
    def seat(self) -> Seat:
        """The only one there is so far."""
        (seat,) = self.seats
        return seat

    @property
    def groups(self) -> list[str]:
        return sorted({seat.group for seat in self.seats})

    def spec(self) -> dict[str, Any]:
        """The policy as plain JSON; `Policy.read` takes it back."""
        return self.model_dump(mode="json")

    @classmethod
    def read(cls, spec: dict[str, Any]) -> Policy:
        return cls.model_validate(spec)

    def authority(self) -> str:
        """Who decides, as canonical text: the part of a policy that an approval's digest covers."""
        return canonical({name: self.spec()[name] for name in ("seats", "four_eyes")})


def canonical(spec: dict[str, Any]) -> str:
    """One text for equal content, whatever the order of its keys."""
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))


def spec_digest(spec: dict[str, Any]) -> bytes:
    return hashlib.sha256(canonical(spec).encode("ascii")).digest()


def configured() -> dict[str, Policy]:
    """The policies of the setting SIGNOFF_POLICIES by name. Raises PolicyError."""
    return load(Path(settings.SIGNOFF_POLICIES))


def find(name: str) -> Policy:
    """The configured policy of that name. Raises PolicyError."""
    found = configured().get(name)
    if found is None:
        raise PolicyError(str(settings.SIGNOFF_POLICIES), f"policy.{name}", "there is no such policy")
    return found


@lru_cache(maxsize=8)
def load(place: Path) -> dict[str, Policy]:
    """The policies of a file, or of all *.toml in a folder. Raises PolicyError, naming file and key."""
    found: dict[str, Policy] = {}
    homes: dict[str, Path] = {}
    for file in sorted(place.glob("*.toml")) if place.is_dir() else [place]:
        for name, policy in _read_file(file):
            if name in found:
                raise PolicyError(str(file), f"policy.{name}", f"{homes[name]} has a policy of that name too")
            found[name] = policy
            homes[name] = file
    return found


def _read_file(file: Path) -> Iterable[tuple[str, Policy]]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(str(file), "", f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(str(file), "", f"is not TOML: {error}") from None
    for key in content.keys() - {"policy"}:
        raise PolicyError(str(file), key, "is not known; a policy begins with [policy.NAME]")
    policies = content.get("policy", {})
    if not isinstance(policies, dict):
        raise PolicyError(str(file), "policy", "a policy begins with [policy.NAME]")
    return [(name, _read_policy(file, name, spec)) for name, spec in policies.items()]


def _read_policy(file: Path, name: str, spec: object) -> Policy:
    try:
        return Policy.model_validate(spec)
    except ValidationError as error:
        first = error.errors()[0]
        key = f"policy.{name}" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise PolicyError(str(file), key, _problem(first["type"], first["msg"])) from None


def _problem(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is not known"
    if kind == "missing":
        return "is missing"
    return message.removeprefix("Value error, ")
