"""Characters that a reader would not see, or would take for others, and how they are drawn: as code points."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

# Invisible or ambiguous though Unicode calls them letters, marks or symbols: variation selectors, fillers, blanks.
_INVISIBLE = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)
_LOOKALIKE_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL")
# Letters of other scripts that are drawn like Latin ones; a word made of nothing else is a disguise.
_DISGUISES = frozenset("аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅԌοαιρυνΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
_WORD = re.compile(r"\w+")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){3,}")


@dataclass(frozen=True)
class Piece:
    """A stretch of text; with `mark`, text that a reader would not see or would misread, and its code points."""

    text: str
    mark: str = ""
    instead: bool = False
    """The mark is drawn in place of the text: the text itself is invisible, or would move its neighbours."""


def pieces(text: str) -> list[Piece]:
    """`text` in order, with hidden, reordering and disguised characters and long blank stretches set apart."""
    if text.isascii() and text.replace("\n", "").isprintable() and "\n\n\n" not in text and text.strip() == text:
        return [Piece(text)] if text else []
    return list(_merged(_marked(text)))


def count_hidden(text: str) -> int:
    """How many characters of `text` are drawn as code points."""
    return sum(len(piece.text) for piece in pieces(text) if piece.mark and piece.mark.startswith("U+"))


def _marked(text: str) -> Iterator[Piece]:
    disguised = set() if text.isascii() else _disguised(text)
    blank = {found.start(): found.end() for found in _BLANK_LINES.finditer(text)}
    first, last = len(text) - len(text.lstrip(" ")), len(text.rstrip(" "))
    at = 0
    while at < len(text):
        end = blank.get(at)
        if end is not None:
            yield Piece(text[at:end], f"{text.count(chr(10), at, end) - 1} blank lines", instead=True)
            at = end
            continue
        letter = text[at]
        if at < first or at >= last or is_hidden(letter):
            yield Piece(letter, _code_point(letter), instead=True)
        elif at in disguised:
            yield Piece(letter, _code_point(letter))
        else:
            yield Piece(letter)
        at += 1


def is_hidden(letter: str) -> bool:
    """Whether this character cannot be seen, or changes how others are shown."""
    if letter == "\n":
        return False
    return not letter.isprintable() or ord(letter) in _INVISIBLE


def _merged(found: Iterator[Piece]) -> Iterator[Piece]:
    """Neighbours that are shown alike become one: plain text, and repetitions of one code point."""
    held: list[Piece] = []
    for piece in found:
        if held and (held[0].mark, held[0].instead) != (piece.mark, piece.instead):
            yield _joined(held)
            held = []
        held.append(piece)
    if held:
        yield _joined(held)


def _joined(held: list[Piece]) -> Piece:
    mark = held[0].mark
    if mark.startswith("U+") and len(held) > 1:
        mark = f"{mark} × {len(held)}"
    return Piece("".join(piece.text for piece in held), mark, held[0].instead)


def _code_point(letter: str) -> str:
    return f"U+{ord(letter):04X}"


def _disguised(text: str) -> set[int]:
    """Places of letters that look like letters of another script: in a mixed word, or a word of nothing else."""
    places: set[int] = set()
    for found in _WORD.finditer(text):
        word = found.group()
        if word.isascii():
            continue
        foreign = [at for at, letter in enumerate(word) if _script(letter) in _LOOKALIKE_SCRIPTS]
        mixed = any(_script(letter) == "LATIN" for letter in word)
        styled = any(_script(word[at]) in ("FULLWIDTH", "MATHEMATICAL") for at in foreign)
        letters = [letter for letter in word if letter.isalpha()]
        if foreign and (mixed or styled or all(letter in _DISGUISES for letter in letters)):
            places.update(found.start() + at for at in foreign)
    return places


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0] if letter.isalpha() else ""
