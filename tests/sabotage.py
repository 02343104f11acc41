"""`make sabotage`: breaks the engine and the verdict on purpose, one line each, and wants a test to go red.

A cure for tests that cannot fail. Each break is made in a copy of the tree and the tests that must notice it are run
there; one that stays green fails the whole run. `python -m tests.sabotage NAME …` runs some of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.approvals.breaks import APPROVALS
from tests.breaks import ENGINE, Break
from tests.pages.breaks import PAGES

BREAKS = [*ENGINE, *APPROVALS, *PAGES]
ROOT = Path(__file__).resolve().parents[1]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
TESTS_FAILED = 1  # pytest's exit code; others mean that they were not run


@dataclass(frozen=True)
class Outcome:
    """What became of one break."""

    broken: Break
    code: int
    output: str
    seconds: float

    @property
    def is_caught(self) -> bool:
        """By a failed test, not by an error of loading: that would say nothing about the tests."""
        return self.code == TESTS_FAILED and "error" not in self.output.splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which breaks (default: all)")
    parser.add_argument("--list", action="store_true", help="list them and end")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once, each in a copy of its own (default: 2)")
    options = parser.parse_args()
    unknown = set(options.names) - {each.name for each in BREAKS}
    if unknown:
        parser.error(f"no break is called {', '.join(sorted(unknown))}")
    chosen = [each for each in BREAKS if not options.names or each.name in options.names]
    if options.list:
        for each in chosen:
            print(f"{each.name}: {each.file}: {' '.join(each.tests)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="signoff-sabotage-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            trees.put(copy_tree(Path(folder) / str(number)))
        outcomes = list(pool.map(lambda each: report(in_a_tree(trees, each)), chosen))
    green = [outcome for outcome in outcomes if not outcome.is_caught]
    for outcome in green:
        print(
            f"\n--- {outcome.broken.name} was not caught by {' '.join(outcome.broken.tests)}:\n{outcome.output[-3000:]}"
        )
    print(f"{len(outcomes) - len(green)} passed, {len(green)} failed")
    return 1 if green else 0


def copy_tree(folder: Path) -> Path:
    """The files that git knows, or would: what is being worked on included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    tree = folder / "tree"
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file():
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return tree


def in_a_tree(trees: SimpleQueue[Path], each: Break) -> Outcome:
    """In a copy that nobody else is breaking."""
    tree = trees.get()
    try:
        return sabotage(tree, each)
    finally:
        trees.put(tree)


def sabotage(tree: Path, each: Break) -> Outcome:
    """Breaks, tests, mends."""
    path = tree / each.file
    sound = path.read_text()
    if sound.count(each.old) != 1:
        raise SystemExit(f"{each.name}: {each.file} has {sound.count(each.old)} places like {each.old!r}; it needs one")
    path.write_text(sound.replace(each.old, each.new))
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *each.tests],
            cwd=tree, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    finally:
        path.write_text(sound)
    return Outcome(each, done.returncode, done.stdout + done.stderr, time.monotonic() - began)


def report(outcome: Outcome) -> Outcome:
    red = FAILED.search(outcome.output)
    by = red[1].rpartition("::")[2] if outcome.is_caught and red else f"exit {outcome.code}"
    print(
        f"{'red  ' if outcome.is_caught else 'GREEN'} {outcome.broken.name} ({outcome.seconds:.0f} s): {by}", flush=True
    )
    return outcome


if __name__ == "__main__":
    sys.exit(main())
