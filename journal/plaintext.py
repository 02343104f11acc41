"""Text for columns that cannot hold all of Unicode: PostgreSQL's text has no NUL, and neither has lone surrogates."""

from __future__ import annotations

from typing import Any

LONGEST_KEY = 500
"""Characters of a run's or a signal's key. It is indexed, and an entry of an index must fit on a third of a page."""
LONGEST_NAME = 100
"""Characters of a signal's name, which stands in one index with its key."""

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


def storable(text: Any) -> bool:
    """Whether it is text that such a column holds as it is."""
    return isinstance(text, str) and cleaned(text) == text


def checked(text: Any, what: str, *, longest: int | None = None) -> str:
    """`text`, if such a column holds it as it is; ValueError else: two keys must not become one by cleaning.

    `longest` is in characters. Raises TypeError for what is not text. PostgreSQL would refuse as well, but that ends
    the caller's transaction."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is text, not a {type(text).__name__}")
    if longest is not None and len(text) > longest:
        raise ValueError(f"{what} has {len(text):,} characters; at most {longest} fit")
    if not storable(text):
        raise ValueError(f"{what} contains a character that cannot be stored (NUL or half a surrogate pair)")
    return text


def checked_key(key: Any, what: str = "key") -> str | None:
    """The key of a run or a signal, or None for none. Raises TypeError, ValueError."""
    return None if key is None else checked(key, what, longest=LONGEST_KEY)


def checked_signal(name: Any) -> str:
    """The name of a signal. Raises TypeError, ValueError."""
    if not checked(name, "a signal's name", longest=LONGEST_NAME):
        raise ValueError("a signal has a name")
    return str(name)
