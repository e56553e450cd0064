import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()


def normal(requirement: str) -> str:
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_has_everything_that_the_project_and_its_tests_ask_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    wanted += project["build-system"]["requires"]
    locked = {normal(line) for line in LOCK.splitlines() if re.match(r"[A-Za-z0-9]", line)}
    assert {normal(requirement) for requirement in wanted} <= locked


def test_the_lock_pins_by_hash_and_names_no_registry() -> None:
    entries = LOCK.replace("\\\n", " ").splitlines()
    pinned = [entry for entry in entries if entry and not entry.startswith("#")]
    assert pinned
    for entry in pinned:
        assert "==" in entry
        assert "--hash=sha256:" in entry
    assert "://" not in LOCK
    assert "index-url" not in LOCK
