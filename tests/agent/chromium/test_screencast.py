"""Capturing a page that will not have it for a moment, as between two pages; without a browser."""

import asyncio
import base64
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError

from agent.chromium import between, screencast
from agent.chromium.screencast import Picture, Screencast
from agent.clock import wall_clock
from farm.protocol.live import Want
from tests.patience import PATIENCE_S

BETWEEN = "Protocol error (Page.startScreencast): Not attached to an active page"


class Page:
    """A CDP session that captures when it is asked to, unless it is to refuse what comes next."""

    def __init__(self) -> None:
        self.refuses: dict[str, int] = {}
        self.asked: list[str] = []
        self.late: list[dict[str, Any]] = []
        """Pictures that are taken and come only after the next acknowledgement."""
        self._cast = 0
        self._numbers = itertools.count()
        self._tell: Callable[[dict[str, Any]], None] = lambda _: None

    def on(self, _: str, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell

    async def send(self, method: str, _: Any = None) -> None:
        self.asked.append(method)
        if self.refuses.get(method, 0) > 0:
            self.refuses[method] -= 1
            raise PlaywrightError(BETWEEN)
        if method == "Page.startScreencast":
            self._cast += 1
            self.changes()
        if method == "Page.screencastFrameAck" and self.late:
            asyncio.get_running_loop().call_later(0.01, self._tell, self.late.pop())

    def changes(self) -> None:
        self._tell(self.taken())

    def changes_and_is_slow_to_tell(self) -> None:
        self.late.append(self.taken())

    def taken(self) -> dict[str, Any]:
        data = base64.b64encode(f"picture {next(self._numbers)}".encode()).decode()
        metadata = {"deviceWidth": 800, "deviceHeight": 600, "timestamp": wall_clock()}
        return {"sessionId": self._cast, "data": data, "metadata": metadata}


@pytest.fixture(autouse=True)
def without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screencast, "_SETTLE_S", 0.0)
    monkeypatch.setattr(between, "_PAUSE_S", 0.0)


async def captured(
    page: Page, pictures: int, then: Callable[[int], Callable[[], None] | None] | None = None
) -> list[Picture]:
    """Capture until there are so many pictures.

    Each but the last is followed by a change, or by what `then` gives for its number.
    """
    shown: list[Picture] = []
    enough = asyncio.Event()

    async def show(picture: Picture) -> None:
        shown.append(picture)
        if len(shown) == pictures:
            enough.set()
        elif (follows := page.changes if then is None else then(len(shown))) is not None:
            asyncio.get_running_loop().call_soon(follows)

    cast = Screencast(page, show)  # type: ignore[arg-type]
    cast.want(Want(fps=60))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        capture = group.create_task(cast.run())
        ended = group.create_task(enough.wait())
        await asyncio.wait({capture, ended}, return_when=asyncio.FIRST_COMPLETED)
        if capture.done():
            ended.cancel()
        capture.cancel()
    return shown


@pytest.mark.parametrize("method", ["Page.startScreencast", "Page.stopScreencast"])
async def test_a_page_that_refuses_for_a_moment_is_captured_after_it(method: str) -> None:
    page = Page()
    page.refuses[method] = 3
    assert len(await captured(page, 1)) == 1


async def test_an_acknowledgement_refused_begins_the_capture_anew() -> None:
    page = Page()
    page.refuses["Page.screencastFrameAck"] = 1
    assert len(await captured(page, 3)) == 3
    assert page.asked.count("Page.startScreencast") > 1


async def test_what_is_changed_while_a_second_picture_is_on_its_way_is_seen() -> None:
    page = Page()
    # Two are out when the page changes again, but only one of them has come.
    slow = {1: page.changes_and_is_slow_to_tell}
    await captured(page, 3, slow.get)
    assert page.asked.count("Page.startScreencast") == 2


async def test_a_page_that_refuses_for_good_is_given_up() -> None:
    page = Page()
    page.refuses["Page.startScreencast"] = 10_000
    with pytest.raises(ExceptionGroup) as failed:
        await captured(page, 1)
    assert failed.group_contains(PlaywrightError, match="Not attached")
