import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_settings_is_current() -> None:
    command = [sys.executable, "-m", "scripts.settings", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_setting_says_what_it_means() -> None:
    rows = [
        line.strip("|").split(" | ")
        for line in (ROOT / "docs" / "settings.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    assert rows
    assert [row[0] for row in rows if not row[-1].strip(" |")] == []
