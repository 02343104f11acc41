"""Times for people: always with their zone, and lengths in words.

The pages' script (static/js/times.js) says the same in the browser's zone; a test compares their words.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def length(span: timedelta) -> str:
    """`4 s`, `38 min`, `2 h 10 min`, `1 d 18 h`: at most two units; nothing is ever negative."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    for at, (unit, name) in enumerate(_UNITS):
        if seconds >= unit:
            whole, rest = divmod(seconds, unit)
            if at + 1 < len(_UNITS):
                lower, lower_name = _UNITS[at + 1]
                if rest >= lower:
                    return (
                        f"{whole} {name} {rest // lower:02d} {lower_name}"
                        if unit == 3600
                        else f"{whole} {name} {rest // lower} {lower_name}"
                    )
            return f"{whole} {name}"
    return f"{seconds} s"


def took(span: timedelta) -> str:
    """A step's length: `40 ms`, `2.1 s`, then as `length`."""
    seconds = max(0.0, span.total_seconds())
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return length(span)


def ago(moment: datetime, now: datetime) -> str:
    span = now - moment
    return "just now" if span.total_seconds() < 1 else f"{length(span)} ago"


def until(moment: datetime, now: datetime) -> str:
    span = moment - now
    return "past" if span.total_seconds() <= 0 else f"in {length(span)}"


def clock(moment: datetime, now: datetime, *, seconds: bool = False) -> str:
    """`14:21 UTC`; another day says which: `Tue 10:00 UTC`, `4 Dec 10:00 UTC`, `4 Dec 2025 10:00 UTC`."""
    there, here = moment.astimezone(UTC), now.astimezone(UTC)
    text = there.strftime("%H:%M:%S" if seconds else "%H:%M") + " UTC"
    if there.date() == here.date():
        return text
    if abs((there.date() - here.date()).days) < 7:
        return f"{there:%a} {text}"
    day = f"{there.day} {there:%b}"
    return f"{day} {text}" if there.year == here.year else f"{day} {there.year} {text}"


def full(moment: datetime) -> str:
    there = moment.astimezone(UTC)
    return f"{there.day} {there:%b %Y, %H:%M:%S} UTC"


def stamp(moment: datetime) -> str:
    """For the attribute `datetime`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
