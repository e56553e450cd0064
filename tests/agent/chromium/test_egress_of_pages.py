"""Whatever a page does, its requests go through the window's proxy and obey its policy."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Frame, Page

from agent.chromium.browser import ChromiumBrowser
from agent.chromium.windows import Window
from agent.ports import Denied
from farm.protocol.plan import BrowserOptions, Egress
from tests.agent.chromium.conftest import Site
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser


class Denials:
    """The window's page, and what its proxy refused."""

    def __init__(self, page: Page, window: Window) -> None:
        self.page = page
        self.window = window
        self.told: list[Denied] = []

    async def of(self, text: str) -> Denied:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for denied in self.told:
                    if text in denied.url and not denied.unreachable:
                        return denied
                await asyncio.sleep(0.01)


@asynccontextmanager
async def browsing(browser: ChromiumBrowser, site: Site) -> AsyncIterator[Denials]:
    await browser.open_window("w", "c", BrowserOptions())
    window = browser._windows["w"]
    denials = Denials(window.tabs["c"].page, window)
    window._forwarder._tell = denials.told.append
    window.begin("c", Egress(allow=(site.allow,)))
    yield denials
    await browser.close_window("w")


async def by_fetch(page: Page, url: str) -> object:
    return await page.evaluate("url => fetch(url, {mode: 'no-cors'}).catch(() => 0)", url)


async def by_frame(page: Page, url: str) -> object:
    return await page.evaluate(
        "url => { const f = document.createElement('iframe'); f.src = url;"
        " document.body.append(f) }",
        url,
    )


async def by_image(page: Page, url: str) -> object:
    return await page.evaluate("url => { new Image().src = url }", url)


async def by_popup(page: Page, url: str) -> object:
    return await page.evaluate("url => { window.open(url) }", url)


async def by_beacon(page: Page, url: str) -> object:
    return await page.evaluate("url => { navigator.sendBeacon(url, 'x') }", url)


async def by_socket(page: Page, url: str) -> object:
    return await page.evaluate("url => { new WebSocket(url.replace('http', 'ws')) }", url)


async def by_worker(page: Page, url: str) -> object:
    return await page.evaluate(
        "url => { new Worker(URL.createObjectURL(new Blob([`fetch('${url}')`]))) }", url
    )


async def by_navigation(page: Page, url: str) -> object:
    return await page.evaluate("url => { location.href = url }", url)


async def by_form(page: Page, url: str) -> object:
    return await page.evaluate(
        "url => { const f = document.createElement('form'); f.method = 'post'; f.action = url;"
        " document.body.append(f); f.submit() }",
        url,
    )


async def by_event_source(page: Page, url: str) -> object:
    return await page.evaluate("url => { new EventSource(url) }", url)


async def by_prefetch(page: Page, url: str) -> object:
    return await page.evaluate(
        "url => { const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = url;"
        " document.head.append(l) }",
        url,
    )


WAYS = [
    by_fetch,
    by_frame,
    by_image,
    by_popup,
    by_beacon,
    by_socket,
    by_worker,
    by_navigation,
    by_form,
    by_event_source,
    by_prefetch,
]


@pytest.fixture
async def chromium(headless_browser: object) -> AsyncIterator[ChromiumBrowser]:
    one = ChromiumBrowser(headless=True, env=os.environ)
    await one.start(lambda _: None)
    yield one
    await one.kill()


async def test_no_way_of_a_page_leads_to_a_loopback_address_that_is_not_named(
    chromium: ChromiumBrowser, site: Site, other_site: Site
) -> None:
    for way in WAYS:
        async with browsing(chromium, site) as denials:
            await denials.page.goto(site.url + "/")
            await way(denials.page, f"{other_site.url}/{way.__name__}")
            denied = await denials.of(other_site.allow)
            assert "egress.allow" in denied.reason, way.__name__
    assert other_site.seen == []


async def test_every_spelling_of_loopback_goes_through_the_proxy(
    chromium: ChromiumBrowser, site: Site, other_site: Site
) -> None:
    async with browsing(chromium, site) as denials:
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "[::1]", "2130706433", "127.1"):
            response = await denials.page.goto(f"http://{host}:{other_site.port}/")
            assert response is not None
            assert response.headers["x-tabfarm-egress"] == "denied", host
    assert other_site.seen == []


async def test_a_redirect_is_judged_where_it_leads(
    chromium: ChromiumBrowser, site: Site, other_site: Site
) -> None:
    async def redirect(_: web.Request) -> web.Response:
        raise web.HTTPFound(other_site.url + "/secret")

    site.pages["/away"] = redirect
    async with browsing(chromium, site) as denials:
        response = await denials.page.goto(site.url + "/away")
        assert response is not None
        assert response.status == 403
        await denials.of("/secret")
    assert other_site.seen == []


async def test_a_service_worker_is_held_too(
    chromium: ChromiumBrowser, site: Site, other_site: Site
) -> None:
    async def script(_: web.Request) -> web.Response:
        return web.Response(
            text=f"onmessage = () => fetch('{other_site.url}/by-worker', {{mode: 'no-cors'}})",
            content_type="text/javascript",
        )

    site.pages["/sw.js"] = script
    async with browsing(chromium, site) as denials:
        await denials.page.goto(site.url + "/")
        await denials.page.evaluate(
            "async () => { await navigator.serviceWorker.register('/sw.js');"
            " const r = await navigator.serviceWorker.ready; r.active.postMessage(1) }"
        )
        await denials.of("/by-worker")
    assert other_site.seen == []


async def test_metadata_is_out_of_reach_even_where_everything_is_allowed(
    chromium: ChromiumBrowser, site: Site
) -> None:
    async with browsing(chromium, site) as denials:
        everything = ("0.0.0.0/0", "::/0", "metadata.google.internal")
        denials.window.begin("c", Egress(allow=everything))
        for host in (
            "169.254.169.254",
            "metadata.google.internal",
            "[fe80::1]",
            "[::ffff:a9fe:a9fe]",
        ):
            response = await denials.page.goto(f"http://{host}/latest/")
            assert response is not None
            assert response.headers["x-tabfarm-egress"] == "denied", host


async def test_a_page_gets_nowhere_by_a_scheme_of_the_browsers_own(
    chromium: ChromiumBrowser, site: Site
) -> None:
    async with browsing(chromium, site) as denials:
        page = denials.page
        for url in ("file:///etc/passwd", "chrome://version", f"view-source:{site.url}/"):
            for way in (by_navigation, by_frame, by_popup):
                await page.goto(site.url + "/")
                async with page.expect_console_message(
                    lambda message: "Not allowed to load" in message.text, timeout=5000
                ):
                    await way(page, url)
            assert await by_fetch(page, url) == 0
        for one in page.context.pages:
            for frame in one.frames:
                assert not frame.url.startswith(("file:", "view-source:", "chrome:"))
                assert "root:" not in await text_of(frame)


async def text_of(frame: Frame) -> str:
    """What a frame shows; nothing where it cannot be asked, as an error page in a frame."""
    with contextlib.suppress(PlaywrightError, TimeoutError):
        async with asyncio.timeout(1):
            return str(await frame.evaluate("document.documentElement.innerText"))
    return ""


async def test_what_is_named_works_as_without_a_proxy(
    chromium: ChromiumBrowser, site: Site
) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str("got " + await socket.receive_str())
        await socket.close()
        return socket

    async def post(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.method} {len(await request.text())}")

    site.pages |= {"/ws": echo, "/post": post}
    async with browsing(chromium, site) as denials:
        page = denials.page
        await page.goto(site.url + "/")
        said = await page.evaluate(
            "url => new Promise(done => { const s = new WebSocket(url);"
            " s.onopen = () => s.send('it'); s.onmessage = m => done(m.data) })",
            site.url.replace("http", "ws") + "/ws",
        )
        assert said == "got it"
        sent = await page.evaluate(
            "url => fetch(url, {method: 'POST', body: 'x'.repeat(9e5)}).then(r => r.text())",
            site.url + "/post",
        )
        assert sent == "POST 900000"
        many = await page.evaluate(
            "url => Promise.all([...Array(40)].map(() => fetch(url).then(r => r.status)))",
            site.url + "/",
        )
        assert set(many) == {200}
        assert denials.told == []
