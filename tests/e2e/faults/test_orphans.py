"""Who is left when one of the processes of a headed agent is killed: nobody, not even a zombie."""

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.e2e.faults.house import House, browser_of, driver_of, lives
from tests.e2e.processes import eventually, family

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def display_of(agent: psutil.Process) -> psutil.Process:
    return next(one for one in agent.children() if "Xvfb" in one.name())


def zombies_of(agent: psutil.Process) -> list[psutil.Process]:
    return [one for one in agent.children() if one.status() == psutil.STATUS_ZOMBIE]


@pytest.fixture
def house() -> Iterator[House]:
    """An empty house with a short path: sockets of a browser with windows lie deep below it."""
    with tempfile.TemporaryDirectory(prefix="house-") as root:
        house = House(root=Path(root))
        try:
            yield house
        finally:
            house.close()


@pytest.fixture
async def headed(house: House, display: None) -> psutil.Process:
    """A lone headed agent with a display of its own."""
    await house.serve()
    agent = await house.agent("headed", AGENT_HEADED="1", DISPLAY="")
    return psutil.Process(agent.pid)


@pytest.fixture
def display() -> None:
    if not any(os.access(f"{folder}/Xvfb", os.X_OK) for folder in os.get_exec_path()):
        if os.environ.get("CI"):
            pytest.fail("there is no Xvfb")
        pytest.skip("there is no Xvfb")


async def test_a_killed_browser_or_driver_is_replaced_and_leaves_no_zombie(
    headed: psutil.Process,
) -> None:
    for victim in (browser_of, driver_of):
        killed = victim(headed)
        old = {killed, *killed.children(recursive=True)}
        killed.kill()
        await eventually(partial(_none_of, old), 10)
        await eventually(partial(_another_than, headed, old), 30)
        await eventually(lambda: zombies_of(headed) == [], 10)


async def test_an_agent_whose_display_is_killed_ends_with_all_it_has_started(
    house: House, headed: psutil.Process
) -> None:
    started = family(headed.pid)
    display_of(headed).kill()
    await eventually(lambda: not lives(headed), 60)
    await eventually(lambda: not any(map(lives, started)), 10)
    assert house.chromium() == set()
    assert list(house.temporary.glob("tabfarm-life-*")) == []


async def test_an_agent_that_is_killed_takes_its_display_and_browser_with_it(
    house: House, headed: psutil.Process
) -> None:
    started = family(headed.pid)
    headed.kill()
    await eventually(lambda: not any(map(lives, started)), 10)
    assert house.chromium() == set()


def _none_of(old: set[psutil.Process]) -> bool:
    return not any(map(lives, old))


def _another_than(agent: psutil.Process, old: set[psutil.Process]) -> bool:
    try:
        return browser_of(agent) not in old
    except (StopIteration, psutil.NoSuchProcess):
        return False
