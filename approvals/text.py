"""Text as the database can hold it, and as one line."""

from __future__ import annotations

HEADLINE = 200
"""The most characters of a headline."""


def storable(text: str) -> str:
    """The text with U+FFFD for what PostgreSQL cannot hold: NUL and halves of characters."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def headline(text: str) -> str:
    """The text on one line, cut with an ellipsis if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= HEADLINE else f"{line[: HEADLINE - 1]}…"
