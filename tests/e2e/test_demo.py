import re
from pathlib import Path

import psutil
import pytest

from tests.e2e.processes import ended, eventually, family, interrupt, process

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("chromium_executable")]


async def test_the_demonstration_ends_with_its_counts_and_leaves_nothing_running(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    async with process("examples.demo", "-o", str(out), cwd=tmp_path) as demo:
        code, said, talk = await ended(demo, 120)
    assert code == 0, talk
    assert re.fullmatch(
        r"demo: 25 records, 3 artifacts, in \d+\.\d s", said.strip().splitlines()[-1]
    )
    assert "TF-1001" in said
    assert len((out / "catalogue" / "items.jsonl").read_text().splitlines()) == 24
    assert (out / "order" / "artifacts" / "receipt.pdf").read_bytes().startswith(b"%PDF")


async def test_ctrl_c_ends_the_demonstration_with_everything_it_started(tmp_path: Path) -> None:
    async with process("examples.demo", "-o", str(tmp_path / "out"), cwd=tmp_path) as demo:
        # farm, agent, driver: the browser is on its way.
        await eventually(lambda: len(family(demo.pid)) >= 3, 60)
        started = family(demo.pid)
        interrupt(demo)
        code, _, talk = await ended(demo, 15)
    assert code == 130, talk
    await eventually(lambda: not any(_runs(one) for one in started), 5)


def _runs(one: psutil.Process) -> bool:
    return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
