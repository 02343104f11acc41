"""What makes a row of the inbox a message: a keyed digest over all that its sender said."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from journal import chain

SIGNED = "id, kind, name, key, generation, branch, path, attempt, payload, actor_id, actor_name, sent_at"
"""The columns that `mac` covers, in its order; the run's id comes before them."""


def is_genuine(run_id: str, row: Sequence[Any]) -> bool:
    """Whether a message was written by who holds the key: a row of the columns SIGNED, and then `mac`."""
    return hmac.compare_digest(mac(run_id, row[:-1]), bytes(row[-1]))


def mac(run_id: str, signed: Sequence[Any]) -> bytes:
    """The digest of these columns, in the order of SIGNED."""
    *said, at = signed
    moment: datetime = at
    return chain.mac("message", run_id, *said, moment.astimezone(UTC).isoformat(timespec="microseconds"))
