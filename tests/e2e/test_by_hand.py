"""A person at a headed browser: seen on the screen, and clicked with a mouse of the X server."""

import contextlib
import ctypes
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageGrab

from agent.xvfb import Xvfb, XvfbUnavailable
from farm.cli.exits import ExitCode
from overlay import COLOURS, State
from tests.e2e.processes import ended, eventually, process

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("chromium_executable")]

BUTTON = (0x9A, 0xA0, 0xA6)
BUTTONS = ("pause", "take over", "stop")
"""From left to right; small ones follow."""


@pytest.fixture
async def display() -> AsyncIterator[str]:
    screen = Xvfb()
    try:
        name = await screen.start(os.environ)
        ctypes.CDLL("libXtst.so.6")
    except (XvfbUnavailable, OSError) as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield name
    await screen.stop()


def seen(display: str) -> Image.Image:
    """What is on the screen."""
    return ImageGrab.grab(xdisplay=display).convert("RGB")


def has(picture: Image.Image, colour: str) -> bool:
    """Whether there is much of a colour."""
    wanted = tuple(bytes.fromhex(colour[1:]))
    colours = picture.getcolors(1 << 24) or []
    return any(count > 2000 and found == wanted for count, found in colours)


def button(picture: Image.Image, which: str) -> tuple[int, int] | None:
    """A point within a button of the panel: its upper edge is a line of one colour."""
    for y in range(picture.height):
        if len(edges := sorted(_lines(picture, y))) >= len(BUTTONS):
            x, _, length = edges[BUTTONS.index(which)]
            return x + length // 2, y + 8
    return None


def _lines(picture: Image.Image, y: int) -> Iterator[tuple[int, int, int]]:
    began = None
    for x in range(picture.width + 1):
        on = x < picture.width and picture.getpixel((x, y)) == BUTTON
        if on and began is None:
            began = x
        elif not on and began is not None:
            if x - began >= 16:
                yield began, y, x - began
            began = None


def click(display: str, x: int, y: int) -> None:
    """Move the mouse there, and press and let go its first button."""
    x11, xtst = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    opened = ctypes.c_void_p(x11.XOpenDisplay(display.encode()))
    with contextlib.ExitStack() as last:
        last.callback(x11.XCloseDisplay, opened)
        xtst.XTestFakeMotionEvent(opened, -1, x, y, ctypes.c_ulong(0))
        xtst.XTestFakeButtonEvent(opened, 1, 1, ctypes.c_ulong(0))
        xtst.XTestFakeButtonEvent(opened, 1, 0, ctypes.c_ulong(0))
        x11.XSync(opened, 0)


async def press(display: str, which: str) -> None:
    """Click a button of the overlay with the X server's mouse."""
    await eventually(lambda: button(seen(display), which) is not None)
    place = button(seen(display), which)
    assert place is not None
    click(display, *place)


async def test_a_person_pauses_a_job_lets_it_go_on_and_stops_it_by_real_clicks(
    display: str, tmp_path: Path
) -> None:
    """Under the guard, so not one of them comes through the page."""
    job = tmp_path / "job.yaml"
    steps = "- wait: 1500\n" * 20
    job.write_text(f"name: long\nsteps:\n- goto: 'data:text/html,<h1>x'\n{steps}")
    # Without a window manager one that is prepared would lie on the one that is at work.
    env = {"DISPLAY": display, "AGENT_PREPARED_WINDOWS": "0"}
    command = ("farm.cli", "run", str(job), "--headed", "-o", str(tmp_path / "out"))
    async with process(*command, cwd=tmp_path, env=env) as run:
        await eventually(lambda: has(seen(display), COLOURS[State.WORKING]), 60)
        await press(display, "pause")
        await eventually(lambda: has(seen(display), COLOURS[State.PAUSED]))
        await press(display, "pause")
        await eventually(lambda: has(seen(display), COLOURS[State.WORKING]))
        await press(display, "stop")
        code, _, talk = await ended(run, 30)
    assert code == ExitCode.CANCELLED, talk
    assert "a person stopped it in the browser" in talk + (tmp_path / "out/job.json").read_text()
