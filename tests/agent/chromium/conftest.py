"""A site to browse, and browsers to browse it with."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from agent.chromium.discovery import Found, find
from agent.ports import BrowserUnavailable
from agent.xvfb import Xvfb, XvfbUnavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """Pages by path, on a loopback port; `seen` are the paths asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, str | Handler] = {"/": "<title>home</title><h1>Home</h1>"}
        self.seen: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def allow(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request.path)
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404, text="no such page")
        if isinstance(page, str):
            return web.Response(text=page, content_type="text/html")
        return await page(request)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A site of the test's own."""
    async with serving() as one:
        yield one


@pytest.fixture
async def other_site() -> AsyncIterator[Site]:
    """A second one, on another port."""
    async with serving() as one:
        yield one


class serving:  # noqa: N801 - used as a context manager
    """Serves a `Site`."""

    async def __aenter__(self) -> Site:
        site = Site()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", site.answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        site.port = self._runner.addresses[0][1]
        return site

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


def _found(*, headless: bool) -> Found:
    try:
        return asyncio.run(find(headless=headless, env=dict(os.environ)))
    except BrowserUnavailable as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def headless_browser() -> Found:
    """The browser used without windows."""
    return _found(headless=True)


@pytest.fixture(scope="session")
def full_browser() -> Found:
    """The browser used with windows."""
    return _found(headless=False)


@pytest.fixture
async def display() -> AsyncIterator[str]:
    """An X server of the test's own."""
    screen = Xvfb()
    try:
        name = await screen.start(os.environ)
    except XvfbUnavailable as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield name
    await screen.stop()
