"""A process that starts, signals and decides as a web server or a command does, and says how long each took.

Reads one JSON list a line, the name of a function and its arguments, and answers with one line: what came of it and
the seconds, measured in here. At the end of its input it says how long its last bell holds it up, and ends.
"""

from __future__ import annotations

import json
import sys
import time

import django

django.setup()

from django.db import connection  # noqa: E402 - Django has to be set up before the models are imported

from journal import bells, registry  # noqa: E402
from tests.workflows import asking  # noqa: E402

FUNCTIONS = {each.__name__: each for each in (asking.start, asking.signal, asking.approve, bells.ring)}


def main() -> None:
    registry.load_authors_modules()
    connection.ensure_connection()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        began = time.monotonic()
        value = FUNCTIONS[name](*arguments)
        answer(value, began)
    began = time.monotonic()
    bells.flush()
    answer(None, began)


def answer(value: object, began: float) -> None:
    print(json.dumps([value, time.monotonic() - began]), flush=True)


if __name__ == "__main__":
    main()
