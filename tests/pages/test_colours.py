"""The colours of static/css/tokens.css can be read: text 4.5:1, marks and borders of inputs 3:1, in both themes."""

from __future__ import annotations

import re

import pytest

from config.home import BASE_DIR

TOKENS = (BASE_DIR / "static" / "css" / "tokens.css").read_text(encoding="utf-8")
_COLOUR = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6});")


def colours(theme: str) -> dict[str, str]:
    light, _, dark = TOKENS.partition("prefers-color-scheme: dark")
    found = dict(_COLOUR.findall(light))
    return found | dict(_COLOUR.findall(dark)) if theme == "dark" else found


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


MEANINGS = ("green", "amber", "red", "blue", "violet")
PAIRS = [
    *(("text", ground, 4.5) for ground in ("canvas", "surface", "sunken", "selected")),
    *(("text-2", ground, 4.5) for ground in ("canvas", "surface", "sunken", "selected")),
    *(("text-3", ground, 4.5) for ground in ("surface", "sunken")),
    ("on-ink", "ink", 4.5),
    ("on-ink", "ink-busy", 4.5),
    ("control", "surface", 3.0),
    ("focus", "surface", 3.0),
    *((meaning, "surface", 4.5) for meaning in MEANINGS),
    *((meaning, f"{meaning}-tint", 4.5) for meaning in MEANINGS),
    *(("text-2", f"{meaning}-tint", 4.5) for meaning in ("amber", "red")),
    *((f"{meaning}-mark", "surface", 3.0) for meaning in MEANINGS),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("front", "back", "least"), PAIRS)
def test_what_is_written_can_be_read(theme: str, front: str, back: str, least: float) -> None:
    found = colours(theme)
    assert contrast(found[front], found[back]) >= least


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_white_on_red_can_be_read(theme: str) -> None:
    assert contrast("#ffffff", colours(theme)["solid-red"]) >= 4.5
