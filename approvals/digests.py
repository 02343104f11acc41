"""The digest of an action: what people see, what they agree to, and what runs, as one SHA-256.

It covers the step, all its arguments, the summary, the facts, the risk and who decides. Arguments are compared in
typed, canonical form: Decimal("100") and Decimal("100.00") are the same amount, 100 and "100" are different values.
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any


def action_digest(*, step: str, args: str, summary: str, facts: str, risk: str, authority: str) -> bytes:
    """The digest; `args` and `facts` are codec texts, `authority` is Policy.authority()."""
    parts = ("action", step, canonical(args), summary, canonical(facts), risk, authority)
    framed = b"".join(
        b"%d:%b" % (len(part), part) for part in (part.encode("utf-8", "surrogatepass") for part in parts)
    )
    return hashlib.sha256(framed).digest()


def canonical(text: str) -> str:
    """One text for all codec texts that hold equal values of equal types."""
    return _dumped(_canonical(json.loads(text)))


def _dumped(node: Any) -> str:
    return json.dumps(node, sort_keys=True, separators=(",", ":"))


def _canonical(node: Any) -> Any:
    if isinstance(node, list):
        return [_canonical(item) for item in node]
    if not isinstance(node, dict):
        return node
    content = {key: _canonical(item) for key, item in node.items()}
    tag = content.get("$")
    if tag == "decimal":
        content["v"] = _decimal(Decimal(content["v"]))
    elif tag in ("dict", "record", "set", "frozenset"):  # their order means nothing
        content["v"] = sorted(content["v"], key=_dumped)
    return content


def _decimal(number: Decimal) -> str:
    """Exact at any length: Decimal.normalize() would round to the context's precision."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return str(number)
    significant = "".join(map(str, digits)).lstrip("0")
    stripped = significant.rstrip("0")
    if not stripped:
        return "0"
    return f"{'-' if sign else ''}{stripped}E{exponent + len(significant) - len(stripped)}"
