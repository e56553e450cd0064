"""Agents of one host launch their browsers one after another."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from agent.chromium.launching import turn

HOLDS = """
import asyncio, pathlib, sys
from agent.chromium.launching import turn

async def main():
    async with turn(base=pathlib.Path(sys.argv[1])):
        print("mine", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_turns_are_one_at_a_time(tmp_path: Path) -> None:
    at_once, most = 0, 0

    async def launch() -> None:
        nonlocal at_once, most
        async with turn(base=tmp_path) as alone:
            assert alone
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(launch())
    assert most == 1


async def test_the_turn_of_another_process_is_waited_for_in_bounds_and_ends_with_it(
    tmp_path: Path,
) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert await asyncio.to_thread(other.stdout.readline) == "mine\n"
        async with turn(base=tmp_path, wait_s=0.1) as alone:
            assert not alone
        other.kill()
        async with turn(base=tmp_path, wait_s=5) as alone:
            assert alone
    finally:
        other.kill()
        other.wait()
        if other.stdout is not None:
            other.stdout.close()


async def test_a_file_that_can_not_be_opened_is_in_nobodys_way(tmp_path: Path) -> None:
    os.symlink("/etc/passwd", tmp_path / "tabfarm-launch.lock")
    async with turn(base=tmp_path) as alone:
        assert not alone
