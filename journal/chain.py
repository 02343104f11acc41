"""Keyed digests: the chain of a run's events, and the seal on its head.

The key is outside the database (SIGNOFF_CHAIN_KEY), so somebody who can only write rows cannot make
a fitting digest. The head that the run's row keeps is a seal over the last digest and its number, not that
digest itself: cutting the tail off and setting the row back would take a seal that stands nowhere.
"""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from functools import cache

from django.conf import settings

Part = bytes | str | int | None


def mac(*parts: Part) -> bytes:
    """HMAC-SHA256 over the parts, each with its type and length, so that no two lists of parts agree by shifting."""
    return hmac.digest(_key(settings.SIGNOFF_CHAIN_KEY), b"".join(map(_framed, parts)), "sha256")


def event_digest(
    previous: bytes,
    run_id: str,
    seq: int,
    position: tuple[int, int, str, int],
    kind: str,
    name: str,
    args_digest: bytes | None,
    data_hash: bytes | None,
    at: datetime,
) -> bytes:
    """The digest of one event: everything its row says, and the event before it."""
    moment = at.astimezone(UTC).isoformat(timespec="microseconds")
    return mac("event", previous, run_id, seq, *position, kind, name, args_digest, data_hash, moment)


def seal(digest: bytes, seq: int, generation: int = 0, branch: int = 0) -> bytes:
    """What the run's row keeps as its head. Covers the line of history that it is on: another would repeat effects."""
    return mac("head", digest, seq, generation, branch)


def _framed(part: Part) -> bytes:
    if part is None:
        return b"-"
    if isinstance(part, int):
        part = str(part)
    body = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
    return b"%d:%b" % (len(body), body)


@cache
def _key(text: str) -> bytes:
    return text.encode()
