"""What the templates say data, times and states with. Nothing here trusts a value: everything is escaped."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from journal import characters, display, times

register = template.Library()

# Nothing on a page is evaluated or remembered by htmx, and it adds no styles of its own (the policy in the
# response header forbids both anyway). Refusals are swapped in too: they say what happened.
_HTMX = {
    "includeIndicatorStyles": False,
    "allowEval": False,
    "allowScriptTags": False,
    "allowNestedOobSwaps": False,
    "selfRequestsOnly": True,
    "historyCacheSize": 0,
    "refreshOnHistoryMiss": True,
    "historyRestoreAsHxRequest": False,
    "scrollIntoViewOnBoost": False,
    "timeout": 10000,
    "responseHandling": [
        {"code": "204", "swap": False},
        {"code": "[23]..", "swap": True},
        {"code": "4(03|04|09|10|22)", "swap": True, "error": False},
        {"code": "[45]..", "swap": False, "error": True},
    ],
}


@register.simple_tag
def htmx_settings() -> str:
    return json.dumps(_HTMX)


@register.simple_tag
def icon(name: str) -> SafeString:
    """A mark of the sprite in templates/parts/icons.html; readers skip it, since its word stands beside it."""
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><use href="#i-{}"></use></svg>',
        name,
    )


# ---------------------------------------------------------------- data


@register.filter
def marked(value: object) -> SafeString:
    """Text from outside: inert, kept apart from the text around it, with hidden characters as code points."""
    found = characters.pieces(str(value))
    return format_html(
        '<bdi class="data" hx-disable>{}</bdi>', format_html_join("", "{}{}", (_piece(piece) for piece in found))
    )


@register.filter
def spelled(value: object) -> str:
    """As `marked`, where there can be no markup, such as the title of the window."""
    return "".join(f"[{piece.mark}]" if piece.mark else piece.text for piece in characters.pieces(str(value)))


def _piece(piece: characters.Piece) -> tuple[str, SafeString | str]:
    if not piece.mark:
        return piece.text, ""
    mark = format_html('<span class="codepoint">{}</span>', piece.mark)
    return ("" if piece.instead else piece.text), mark


@register.filter
def brief(value: object) -> SafeString:
    """A small plain value, such as the arguments in a difference."""
    return marked("–" if value in (None, "") else json.dumps(value, ensure_ascii=True)[: display.INLINE_LIMIT])


@register.filter
def label(value: object) -> SafeString:
    """A label's value, which can be any small JSON."""
    return marked(display.clipped(display.brief(value), display.FOLD_ABOVE) or "–")


@register.filter
def clipped(value: object) -> str:
    """As much of a message as a page shows."""
    return display.clipped(str(value), 2 * display.FOLD_ABOVE)


@register.filter
def thousands(number: int) -> str:
    return f"{number:,}"


_LOOKS = {
    "step": "step",
    "effect": "side effect",
    "failed": "failed attempt",
    "person": "waits for a person",
    "time": "waits for time or a signal",
}


@register.filter
def look_word(look: str) -> str:
    return _LOOKS[look]


@register.filter
def person(user: Any) -> str:
    """A user's full name, or the name they sign in with."""
    return str(user.get_full_name() or user.get_username())


@register.filter
def short_digest(digest: bytes | str) -> str:
    return display.short(hex_digest(digest))


@register.filter
def hex_digest(digest: bytes | str) -> str:
    return digest if isinstance(digest, str) else bytes(digest).hex()


# ---------------------------------------------------------------- times


def _time(moment: datetime, kind: str, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" data-time="{}" title="{}">{}</time>', times.stamp(moment), kind, times.full(moment), text
    )


@register.filter
def clock(moment: datetime) -> SafeString:
    """The time of day, in UTC until the browser says it in its own zone."""
    return _time(moment, "clock", times.clock(moment, timezone.now()))


@register.filter
def plain_clock(moment: datetime) -> SafeString:
    """For text inside a drawing, where there is no `time`: the script rewrites it by the attribute."""
    return format_html(
        '<tspan data-time="seconds" data-at="{}">{}</tspan>',
        times.stamp(moment),
        times.clock(moment, timezone.now(), seconds=True),
    )


@register.filter
def clock_seconds(moment: datetime) -> SafeString:
    return _time(moment, "seconds", times.clock(moment, timezone.now(), seconds=True))


@register.filter
def ago(moment: datetime) -> SafeString:
    return _time(moment, "ago", times.ago(moment, timezone.now()))


@register.filter
def until(moment: datetime) -> SafeString:
    """`in 42 min`; the clock time always stands beside it."""
    return _time(moment, "until", times.until(moment, timezone.now()))


@register.filter
def left(moment: datetime) -> SafeString:
    """As `until`, without the word: for a column of deadlines."""
    return _time(moment, "left", times.until(moment, timezone.now()).removeprefix("in "))


@register.filter
def since(moment: datetime) -> SafeString:
    """How long something has lasted."""
    return _time(moment, "since", times.length(timezone.now() - moment))


@register.simple_tag
def now_stamp() -> str:
    """The server's clock when the page was made: the browser counts from it, not from its own."""
    return times.stamp(timezone.now())
