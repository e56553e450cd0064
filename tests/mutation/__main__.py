"""`make mutants`: each comparison of the rules turned round must make a test fail.

Mutants survive only where `equivalents.toml` says why they may.
"""

import argparse
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from queue import SimpleQueue

from tests.mutation.finding import Mutant, mutants
from tests.mutation.listed import Equivalent, equivalents, stale
from tests.mutation.running import ROOT, SUITES, Fate, Tree, suite_of

_AT_ONCE = 2


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Make every mutant of every file that has a suite."""
    files = {str(p.relative_to(ROOT)) for suite in SUITES for p in ROOT.glob(suite.files)}
    return tuple(m for file in sorted(files) for m in mutants(file, (ROOT / file).read_text()))


def fates(those: Sequence[Mutant], folder: Path) -> list[Fate]:
    """Try each mutant, several at a time, and say of each what became of it."""
    trees: SimpleQueue[Tree] = SimpleQueue()
    for n in range(_AT_ONCE):
        trees.put(Tree(folder / f"{n}"))
    first = trees.get()
    clocks_s = {s: 15 + 3 * first.time(s) for s in {suite_of(m.file) for m in those}}
    trees.put(first)

    def try_out(mutant: Mutant) -> Fate:
        tree = trees.get()
        try:
            fate = tree.try_out(mutant, clock_s=clocks_s[suite_of(mutant.file)])
        finally:
            trees.put(tree)
        print(f"{fate:9} {mutant.file}:{mutant.number}: {mutant.becomes}", flush=True)
        return fate

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            return list(pool.map(try_out, those))
        finally:
            pool.shutdown(cancel_futures=True)


def complaints(
    those: Sequence[Mutant], found: Sequence[Fate], listed: Sequence[Equivalent]
) -> list[str]:
    """Say what is wrong: who survived and may not, and who is listed and did not survive."""
    alive = [m for m, fate in zip(those, found, strict=True) if fate is Fate.SURVIVED]
    wrong = [
        f"survived: {m.file}:{m.number}\n    {m.line}\n    {m.becomes}"
        for m in alive
        if not any(one.is_of(m) for one in listed)
    ]
    tried = {m.file for m in those}
    gone = stale([one for one in listed if one.file in tried], alive)
    return wrong + [f"listed, but does not survive: {one.file}\n    {one.becomes}" for one in gone]


def main() -> None:
    """Read the arguments, try the mutants, say what is wrong; exit 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=["*"], help="patterns of files; default: all")
    patterns = parser.parse_args().files
    those = [m for m in all_mutants() if any(fnmatch(m.file, p) for p in patterns)]
    if not those:
        raise SystemExit("no mutants: no such files")
    listed = equivalents()
    if gone := stale(listed, all_mutants()):
        raise SystemExit(
            "\n".join(f"listed, but not there: {one.file}: {one.line}" for one in gone)
        )
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        found = fates(those, Path(folder))
    wrong = complaints(those, found, listed)
    print(*wrong, f"{len(those)} mutants, {len(wrong)} complaints", sep="\n")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
