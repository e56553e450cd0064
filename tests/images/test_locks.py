"""What the images install is what is tested: the same versions with the same hashes."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _pins(lock: Path) -> dict[str, str]:
    """Return the version and hashes of each package, and not on which machines it is wanted."""
    text = re.sub(r"^#.*$", "", lock.read_text(), flags=re.MULTILINE)
    text = re.sub(r" ; .*(?= \\$)", "", text, flags=re.MULTILINE)
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    return {entry.split("==")[0]: entry.strip() for entry in entries}


@pytest.mark.parametrize("name", ["runtime.lock", "build.lock"])
def test_the_locks_of_the_images_agree_with_the_one_of_the_tests(name: str) -> None:
    everything = _pins(ROOT / "requirements.lock")
    ours = _pins(ROOT / "docker" / name)
    assert ours
    assert {package for package, pin in ours.items() if everything.get(package) != pin} == set()


def test_the_runtime_lock_has_everything_that_tabfarm_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = project["dependencies"] + [
        need for extra in project["optional-dependencies"].values() for need in extra
    ]
    wanted = {re.split(r"[\[>=<~! ]", need)[0] for need in needs}
    pinned = set(_pins(ROOT / "docker" / "runtime.lock"))
    assert {name.replace(".", "-").lower() for name in wanted} <= pinned
