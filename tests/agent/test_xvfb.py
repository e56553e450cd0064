"""The private X server."""

import asyncio
import os
import subprocess
import sys

import pytest

from agent.chromium import processes
from agent.xvfb import Xvfb, XvfbUnavailable
from tests.patience import PATIENCE_S

PARENT = """
import asyncio, os
from agent.xvfb import Xvfb

async def main():
    screen = Xvfb()
    print(await screen.start(os.environ), screen._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def screen() -> Xvfb:
    one = Xvfb()
    try:
        await one.start(os.environ)
    except XvfbUnavailable as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    return one


async def test_it_lives_until_it_is_stopped(screen: Xvfb) -> None:
    assert screen._process is not None
    pid = screen._process.pid
    assert processes.look(pid) is not None
    await screen.stop()
    await screen.stop()
    assert processes.look(pid) is None


async def test_two_get_different_displays(screen: Xvfb) -> None:
    other = Xvfb()
    third = Xvfb()
    assert await other.start(os.environ) != await third.start(os.environ)
    for one in (screen, other, third):
        await one.stop()


async def test_a_machine_without_it_says_what_to_install() -> None:
    with pytest.raises(XvfbUnavailable, match="apt-get install -y xvfb"):
        await Xvfb().start({"PATH": "/nonexistent"})


async def test_it_ends_with_a_parent_that_is_killed(screen: Xvfb) -> None:
    await screen.stop()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as parent:
        assert parent.stdout is not None
        _, pid = parent.stdout.readline().split()
        ended = asyncio.Event()
        watch = processes.Watch(int(pid), ended.set)
        parent.kill()
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
        watch.close()
