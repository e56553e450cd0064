"""Which tests should see a mutant, and whether they do."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path
from time import monotonic

from tests.mutation.finding import Mutant

ROOT = Path(__file__).parents[2]
_COPIED = ("farm", "agent", "tests")
_PLUGINS = ("_hypothesis_pytestplugin", "pytest_asyncio.plugin", "tests.mutation.profile")
_PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line"]
_PYTEST += ["-p", "no:cacheprovider", *(word for name in _PLUGINS for word in ("-p", name))]
_PYTEST += ["--hypothesis-profile=mutation", "-m", "not slow"]


class Fate(StrEnum):
    """What the tests made of a text."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "SURVIVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The narrowest set of tests that should see any mutant of some files."""

    files: str
    """A pattern, as `fnmatch` reads it."""
    room: str
    """The folder of the tests; what is set up for others is not loaded."""
    tests: tuple[str, ...]
    """Patterns of files in the room, those first that are likely to see it."""
    only: str = ""
    """What `pytest -k` is told."""

    def command(self) -> list[str]:
        """Return the command that runs it, in the root of a tree."""
        found = [p for pattern in self.tests for p in sorted((ROOT / self.room).glob(pattern))]
        names = [str(p.relative_to(ROOT)) for p in dict.fromkeys(found)]
        return [*_PYTEST, f"--confcutdir={self.room}", "-k", self.only, *names]


SUITES = (
    Suite(
        files="farm/core/reservation.py",
        room="tests/stores",
        tests=("test_registry*.py",),
        only="not redis and not Both",
    ),
    Suite(
        files="farm/core/namespaces.py",
        room="tests/stores",
        tests=("test_namespaces.py",),
        only="not postgres",
    ),
    Suite(files="farm/core/*.py", room="tests/core", tests=("test_*.py",)),
    Suite(
        files="farm/stores/redis/scripts/command_*.lua",
        room="tests/stores",
        tests=("test_commands*.py",),
        only="redis",
    ),
    Suite(
        files="farm/stores/redis/scripts/route*.lua",
        room="tests/stores",
        tests=("test_routes.py", "test_delivery*.py", "test_lapsed*.py"),
    ),
    Suite(
        files="farm/stores/redis/scripts/parcel*.lua",
        room="tests/stores",
        tests=("test_parcels.py",),
    ),
    Suite(
        files="farm/stores/redis/scripts/event*.lua",
        room="tests/stores",
        tests=("test_cluster_events.py",),
    ),
    Suite(
        files="farm/stores/redis/scripts/*.lua",
        room="tests/stores",
        tests=("test_registry.py", "test_f*.py", "test_re*.py", "test_lapsed*.py"),
        only="redis or Both",
    ),
)


def suite_of(file: str) -> Suite:
    """Return the first suite whose pattern the file has."""
    return next(suite for suite in SUITES if fnmatch(file, suite.files))


class Tree:
    """A copy of what the tests need, to put one mutant at a time into."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for name in _COPIED:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", root)

    def try_out(self, mutant: Mutant, *, clock_s: float) -> Fate:
        """Run the mutant's suite until a test fails, for at most so long."""
        with self._with(mutant):
            return self.run(suite_of(mutant.file), clock_s=clock_s)

    def time(self, suite: Suite) -> float:
        """Return how many seconds a suite takes without any mutant; it has to pass."""
        began = monotonic()
        if self.run(suite, clock_s=900.0) is not Fate.SURVIVED:
            raise SystemExit(f"without any mutant this fails: {' '.join(suite.command())}")
        return monotonic() - began

    @contextmanager
    def _with(self, mutant: Mutant) -> Iterator[None]:
        before = (self._root / mutant.file).read_text()
        self._write(mutant.file, mutant.text)
        try:
            yield
        finally:
            self._write(mutant.file, before)

    def _write(self, file: str, text: str) -> None:
        path = self._root / file
        path.write_text(text)
        # A mutant may have the size and the second of what it replaces, by which Python goes.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()

    def run(self, suite: Suite, *, clock_s: float) -> Fate:
        """Run a suite on the tree as it is."""
        # CI: a test that finds no Redis must not pass by skipping.
        env = {**os.environ, "CI": "1", "PYTHONPATH": str(self._root)}
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        with subprocess.Popen(
            suite.command(),
            cwd=self._root,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                code = process.wait(clock_s)
            except subprocess.TimeoutExpired:
                return Fate.TIMED_OUT
            finally:
                # Also what the tests started.
                _kill(process.pid)
        if code not in (0, 1, 2):
            raise SystemExit(f"pytest could not run: {' '.join(suite.command())}")
        return Fate.KILLED if code else Fate.SURVIVED


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
