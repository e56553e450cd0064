"""The seeds of the episodes, and pages that take theirs from their address.

The same three are drawn each time, so that what failed fails again. `MINIWOB_DRAW=7 pytest …` draws
three others; the name of a test says which.
"""

import os
import random
from pathlib import Path

SEEDS = tuple(random.Random(int(os.environ.get("MINIWOB_DRAW", "0"))).sample(range(1_000_000), 3))

_SEEDED = "\nMath.seedrandom(core.QueryString.seed);\n"
"""The pages' own means, at their start; nothing that runs in a job has to touch them then."""


def with_seeds(html: Path, folder: Path) -> Path:
    """Make a folder of the same pages, whose chance follows the `seed` of their address."""
    for entry in html.iterdir():
        if entry.name != "core":
            (folder / entry.name).symlink_to(entry)
    core = folder / "core"
    core.mkdir()
    for entry in (html / "core").iterdir():
        if entry.name != "core.js":
            (core / entry.name).symlink_to(entry)
    (core / "core.js").write_text((html / "core" / "core.js").read_text() + _SEEDED)
    return folder
