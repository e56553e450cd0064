"""A tab made as a new one in place: nothing is left, or it is not said to be clean."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from agent.chromium.discovery import Found
from farm.protocol.plan import BrowserOptions, Geolocation
from tests.agent.chromium.conftest import Site
from tests.agent.chromium.journal import goto
from tests.agent.chromium.rig import Rig

pytestmark = pytest.mark.browser

LEAVE = """async () => {
  sessionStorage.setItem('left', 'behind');
  localStorage.setItem('left', 'behind');
  document.cookie = 'left=behind; max-age=3600';
  window.name = 'behind';
  await (await caches.open('left')).put('/left', new Response('behind'));
  await (await navigator.storage.getDirectory()).getFileHandle('left', {create: true});
  await new Promise((done, failed) => {
    const request = indexedDB.open('left', 1);
    request.onsuccess = () => { request.result.close(); done(); };
    request.onerror = failed;
  });
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  await new Promise(done => new BroadcastChannel('left').postMessage('x') || done());
  setInterval(() => localStorage.setItem('late', 'behind'), 1);
  addEventListener('beforeunload', () => localStorage.setItem('last', 'behind'));
  history.pushState({}, '', '#behind');
  await Notification.requestPermission();
  await navigator.storage.persist();
  const shared = new SharedWorker('/shared.js');
  await new Promise(done => { shared.port.onmessage = done; shared.port.start(); });
}"""
FIND = """async () => {
  const files = [];
  for await (const one of (await navigator.storage.getDirectory()).keys()) files.push(one);
  const shared = new SharedWorker('/shared.js');
  return {
    session: sessionStorage.length,
    local: localStorage.length,
    cookies: document.cookie,
    name: window.name,
    caches: await caches.keys(),
    files,
    databases: (await indexedDB.databases()).length,
    workers: (await navigator.serviceWorker.getRegistrations()).length,
    history: history.length,
    permissions: await Promise.all(
      ['geolocation', 'notifications', 'persistent-storage', 'camera', 'storage-access'].map(
        async name => (await navigator.permissions.query({name})).state)),
    persisted: await navigator.storage.persisted(),
    usage: (await navigator.storage.estimate()).usage,
    visits: await new Promise(done => {
      shared.port.onmessage = event => done(event.data); shared.port.start(); }),
  };
}"""
KIND = Geolocation(latitude=59.9, longitude=10.7)
OPTIONS = BrowserOptions(permissions=("geolocation",), geolocation=KIND)


def script(text: str) -> web.Response:
    return web.Response(text=text, content_type="application/javascript")


async def cached(_: web.Request) -> web.Response:
    answer = script("window.cached = true")
    answer.headers["Cache-Control"] = "max-age=3600"
    return answer


async def secret(request: web.Request) -> web.Response:
    if "Authorization" in request.headers:
        return web.Response(text="in")
    return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})


def furnish(site: Site) -> None:
    async def worker(_: web.Request) -> web.Response:
        return script(
            "addEventListener('install', () => skipWaiting());"
            "addEventListener('activate', event => event.waitUntil(clients.claim()))"
        )

    async def shared(_: web.Request) -> web.Response:
        return script("let n = 0; onconnect = event => event.ports[0].postMessage(++n)")

    site.pages |= {
        "/": "<title>home</title><script src=/cached.js></script>",
        "/worker.js": worker,
        "/shared.js": shared,
        "/cached.js": cached,
        "/secret": secret,
    }


@pytest.fixture(params=["headless", "full"])
def executable(request: pytest.FixtureRequest) -> str:
    """A headless shell, where there is one, and a full browser."""
    found: Found = request.getfixturevalue(f"{request.param}_browser")
    return found.executable


@pytest.fixture
async def rig(executable: str) -> AsyncIterator[Rig]:
    async with Rig(executable=executable) as one:
        yield one


async def opened(rig: Rig) -> None:
    await rig.browser.open_window("w", "c", OPTIONS, resets=True)


async def visits(rig: Rig, *urls: str, allow: str, do: str = LEAVE) -> Any:
    """Run an attempt that opens pages, and do something in each; return what the last gave."""
    found = None
    for url in urls:
        outcome = await rig.run(goto(url), egress={"allow": [allow]})
        assert outcome.outcome == "succeeded", outcome
        found = await rig.page().evaluate(do)
    return found


async def test_nothing_that_a_job_can_leave_is_found_by_the_next_one(rig: Rig, site: Site) -> None:
    furnish(site)
    await opened(rig)
    localhost = site.url.replace("127.0.0.1", "localhost")
    new = await visits(rig, f"{site.url}/", allow="127.0.0.0/8", do=FIND)
    assert await rig.browser.reset("c")
    assert site.seen.count("/cached.js") == 1
    for url in (site.url, localhost):
        await visits(rig, f"{url}/", allow="127.0.0.0/8")
        left = await rig.page().evaluate(FIND)
        # There was something to be seen; but permissions are what they were, whatever is asked for.
        changed = {key for key in left if left[key] != new[key]}
        assert changed == set(new) - {"permissions", "persisted"}
    assert await rig.browser.reset("c")
    assert rig.page().url == "about:blank"
    scripts = site.seen.count("/cached.js")
    found = [
        await visits(rig, f"{url}/", allow="127.0.0.0/8", do=FIND) for url in (localhost, site.url)
    ]
    assert found[0] == new
    assert found[1] == {**new, "history": new["history"] + 1}
    assert site.seen.count("/cached.js") == scripts + 2


async def test_a_tab_is_reset_again_and_again(rig: Rig, site: Site) -> None:
    furnish(site)
    await opened(rig)
    new = None
    for _ in range(4):
        found = await visits(rig, f"{site.url}/", allow=site.allow, do=FIND)
        new = new or found
        assert found == new
        await rig.page().evaluate(LEAVE)
        assert await rig.browser.reset("c")


@pytest.mark.parametrize(
    ("page", "do"),
    [
        ("/", "() => window.open('/other')"),
        ("/frames", "() => 1"),
        ("/asks", "() => 1"),
    ],
    ids=["popup", "frame of another site", "password"],
)
async def test_what_can_not_be_cleared_makes_a_tab_unfit(
    headless_browser: Found, site: Site, page: str, do: str
) -> None:
    furnish(site)
    localhost = site.url.replace("127.0.0.1", "localhost")
    site.pages |= {
        "/frames": f"<iframe src='{localhost}/'></iframe>",
        "/asks": "<script src=/secret></script>",
        "/other": "other",
    }
    async with Rig() as rig:
        await opened(rig)
        await visits(rig, f"{site.url}{page}", allow="127.0.0.0/8", do=do)
        assert not await rig.browser.reset("c")


async def test_only_a_window_that_was_opened_for_it_is_reset(
    headless_browser: Found, site: Site
) -> None:
    async with Rig() as rig:
        await rig.window()
        await visits(rig, f"{site.url}/", allow=site.allow, do="() => 1")
        assert not await rig.browser.reset("c")
        assert not await rig.browser.reset("nobody")


async def test_a_tab_that_closes_as_it_is_about_to_be_reset_is_not_clean(
    headless_browser: Found,
) -> None:
    async with Rig() as rig:
        await opened(rig)
        resetting = asyncio.ensure_future(rig.browser.reset("c"))
        await asyncio.sleep(0)  # until it has found the tab
        window = rig.browser._windows["w"]
        window._on_tab_closed(window.tabs["c"])
        assert not await resetting
