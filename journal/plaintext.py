"""Text for columns that cannot hold all of Unicode: PostgreSQL's text has no NUL, and neither has lone surrogates."""

from __future__ import annotations

from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def cleaned(text: str) -> str:
    """`text` with a replacement character for what such a column cannot hold. For what people read, not for data."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", REPLACEMENT)


def cleaned_all(value: Any) -> Any:
    """The same in every text of a JSON value."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, dict):
        return {cleaned_all(key): cleaned_all(item) for key, item in value.items()}
    if isinstance(value, list):
        return [cleaned_all(item) for item in value]
    return value


def checked(text: str, what: str) -> str:
    """`text`, if such a column holds it as it is; ValueError else: two keys must not become one by cleaning."""
    if cleaned(text) != text:
        raise ValueError(f"{what} contains a character that cannot be stored (NUL or half a surrogate pair)")
    return text
