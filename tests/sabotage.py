"""`make sabotage`: breaks the engine and the verdict on purpose, one line each, and wants a test to go red.

A cure for tests that cannot fail. Each break is made in a copy of the tree and its tests are run there; one that
stays green fails the whole run. The same tests run on the sound code too, where all of them must be green.
`python -m tests.sabotage NAME …` runs some of the breaks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.approvals.breaks import APPROVALS
from tests.breaks import ENGINE, Break
from tests.chaos.breaks import BROKERS
from tests.databases import DatabaseServer
from tests.pages.breaks import PAGES

BREAKS = [*ENGINE, *BROKERS, *APPROVALS, *PAGES]
ROOT = Path(__file__).resolve().parents[1]
OURS = ("agents", "approvals", "config", "journal", "tests")
PRELOADED = ("celery", "django.core.management", "django.test", "hypothesis", "playwright.sync_api", "pytest")
"""What sessions import and no break touches: imported once, by the process that they are forked from."""


@dataclass(frozen=True)
class Session:
    """What became of one session of pytest."""

    code: int
    failed: list[str]
    """Tests that failed in their call: an error before it says nothing about them."""
    output: str
    seconds: float

    @property
    def is_green(self) -> bool:
        return self.code == pytest.ExitCode.OK

    @property
    def is_red(self) -> bool:
        return self.code == pytest.ExitCode.TESTS_FAILED and bool(self.failed)


class Recorder:
    """A plugin of pytest's: which tests failed in their call."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.when == "call":
            self.failed.append(report.nodeid)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which breaks (default: all)")
    parser.add_argument("--list", action="store_true", help="list them and end")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once (default: 2)")
    options = parser.parse_args()
    unknown = set(options.names) - {each.name for each in BREAKS}
    if unknown:
        parser.error(f"no break is called {', '.join(sorted(unknown))}")
    chosen = [each for each in BREAKS if not options.names or each.name in options.names]
    if options.list:
        for each in chosen:
            print(f"{each.name}: {each.file}: {' '.join(each.tests)}")
        return 0
    for each in chosen:
        each.broken((ROOT / each.file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="signoff-sabotage-") as folder:
        server = DatabaseServer.for_session(Path(folder))
        try:
            return run(chosen, server, options.jobs)
        finally:
            server.close()


def run(chosen: list[Break], server: DatabaseServer, jobs: int) -> int:
    """The tests of each break, and all of them on sound code; each session in a database of its own. The exit code."""
    began = time.monotonic()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    with ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=1) as pool:
        tests = sorted({test for each in chosen for test in each.tests})
        sound = pool.submit(session, None, tests, server.url("sabotage_sound"))
        broken = {
            pool.submit(session, each, each.tests, server.url(f"sabotage_{number}")): each
            for number, each in enumerate(chosen)
        }
        for done in as_completed(broken):
            report(broken[done], Session(*done.result()))
    whole = Session(*sound.result())
    green = [(each.name, its) for done, each in broken.items() if not (its := Session(*done.result())).is_red]
    wrong = [*green, *([] if whole.is_green else [("nothing", whole)])]
    for name, its in wrong:
        print(f"\n--- with {name} broken, pytest ended with {its.code}:\n{its.output[-3000:]}")
    how = "green" if whole.is_green else "RED, so the rest says nothing,"
    print(f"the same tests on sound code: {how} ({whole.seconds:.0f} s)")
    print(f"{len(chosen) - len(green)} of {len(chosen)} breaks turned a test red ({time.monotonic() - began:.0f} s)")
    return 1 if wrong else 0


def session(each: Break | None, tests: Sequence[str], url: str) -> tuple[int, list[str], str, float]:
    """Runs the tests in a copy of the tree with that break; in a process that nothing else is done in.

    What makes a Session: the class itself is no longer known here."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="signoff-sabotage-") as folder:
        tree, output = Path(folder) / "tree", Path(folder) / "output"
        copy_tree(tree)
        if each:
            place = tree / each.file
            place.write_text(each.broken(place.read_text(encoding="utf-8")), encoding="utf-8")
        os.environ |= {"DATABASE_URL": url, "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        move_to(tree)
        recorder = Recorder()
        # Hypothesis is there before pytest can rewrite its assertions.
        options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        try:
            code = pytest.main([*options, *(["-x"] if each else []), *tests], plugins=[recorder])
        except Exception:  # noqa: BLE001 - what a break left behind may fail pytest's own end, after the tests
            traceback.print_exc()
            code = pytest.ExitCode.TESTS_FAILED if recorder.failed else pytest.ExitCode.INTERNAL_ERROR
        sys.stdout.flush()
        said = output.read_text(encoding="utf-8", errors="replace")
        return int(code), recorder.failed, said, time.monotonic() - began


def copy_tree(tree: Path) -> None:
    """The files that git knows, or would: what is being worked on included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file():
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def move_to(tree: Path) -> None:
    """This process knows the code of that tree from now on, and forgets the one that it came from."""
    os.chdir(tree)
    sys.path[:] = [str(tree), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]


def report(each: Break, its: Session) -> None:
    by = its.failed[0].removeprefix("tests/") if its.is_red else f"pytest ended with {its.code}"
    print(f"{'red  ' if its.is_red else 'GREEN'} {each.name} ({its.seconds:.0f} s): {by}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
