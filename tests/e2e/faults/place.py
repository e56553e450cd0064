"""A place to send jobs to: the sample shop, and pages whose answers wait until a test says so."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from examples.shop.app import Orders, build_app
from tests.listening import listening

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True, kw_only=True)
class Place:
    """What was asked of the place, and what it still holds back."""

    url: str = ""
    orders: Orders = field(default_factory=Orders)
    hits: Counter[str] = field(default_factory=Counter)
    """Requests by `METHOD path`, once everything has been done for them but the answer."""
    hosts: set[str] = field(default_factory=set)
    """Every name the place was called by."""
    abandoned: Counter[str] = field(default_factory=Counter)
    """Held requests whose asker went away, by path."""
    _open: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ordered(self) -> int:
        return len(self.orders.placed)

    def hold(self, path: str) -> None:
        """From now on answers to this path wait, after everything has been done."""
        self._open[path].clear()

    def let_go(self, path: str) -> None:
        """Give the answers, those held and those to come."""
        self._open[path].set()

    async def asked(self, what: str, times: int = 1, within_s: float = 60.0) -> None:
        """Wait until `METHOD path` was asked for so often, and has taken effect."""
        await self._until(lambda: self.hits[what] >= times, within_s)

    async def left(self, path: str, times: int = 1, within_s: float = 20.0) -> None:
        """Wait until so many held requests were given up by who had made them."""
        await self._until(lambda: self.abandoned[path] >= times, within_s)

    async def _until(self, condition: Callable[[], bool], within_s: float) -> None:
        async with asyncio.timeout(within_s):
            while not condition():
                self._moved.clear()
                await self._moved.wait()

    @web.middleware
    async def middleware(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        self.hosts.add(request.host.rpartition(":")[0])
        try:
            answer = await handler(request)
        finally:
            self.hits[f"{request.method} {request.path}"] += 1
            self._moved.set()
        held = request.method == "POST" or request.path.startswith("/held/")
        if held and request.path in self._open:
            try:
                await self._open[request.path].wait()
            except asyncio.CancelledError:
                self.abandoned[request.path] += 1
                self._moved.set()
                raise
        return answer


@asynccontextmanager
async def opened(host: str = "127.0.0.1") -> AsyncIterator[Place]:
    """Open a place on a free port; who goes away in the middle of a request is noticed."""
    place = Place()
    app = build_app(place.orders)
    app.middlewares.append(place.middleware)
    app.add_routes(
        [
            web.get("/held/posts", _posts),
            web.get("/held/{name}", _held),
            web.get("/posts", _posts),
            web.post("/posted", _posted),
            web.get("/calls", _calls),
            web.get("/big", _big),
            web.get("/traces", _traces),
            web.get("/worker.js", _worker),
            web.get("/cached.js", _cached),
        ]
    )
    async with listening(app, host, cancels=True) as place.url:
        yield place


def _html(body: str) -> web.Response:
    return web.Response(text=f"<!doctype html><title>Place</title>{body}", content_type="text/html")


async def _held(request: web.Request) -> web.Response:
    return _html(f"<h1>{request.match_info['name']}</h1>")


async def _posts(request: web.Request) -> web.Response:
    """A page that changes something by being loaded."""
    return _html(
        "<script>fetch('/posted', {method: 'POST'}).then(() => {"
        "document.body.insertAdjacentHTML('beforeend', '<p id=done>done</p>')})</script>"
    )


async def _posted(request: web.Request) -> web.Response:
    return web.Response(status=204)


_WAYS = {
    "fetch": "fetch(to, {mode: 'no-cors'}).then(() => 'open', () => 'closed').then(say)",
    "iframe": "const f = document.createElement('iframe'); f.src = to;"
    "f.onload = () => say('loaded'); document.body.append(f)",
    "image": "const i = new Image(); i.onerror = () => say('closed'); i.onload = () => say('open');"
    "i.src = to",
    "popup": "window.open(to); say('asked')",
    "websocket": "const s = new WebSocket(to.replace('http', 'ws')); s.onopen = () => say('open');"
    "s.onerror = () => say('closed')",
}


async def _calls(request: web.Request) -> web.Response:
    """A page that asks another server for something, in the way that `?how=` says."""
    to = json.dumps(request.query["to"])
    return _html(
        "<script>addEventListener('load', () => { const say = what => "
        "document.body.insertAdjacentHTML('beforeend', `<p id=said>${what}</p>`);"
        f"const to = {to}; {_WAYS[request.query['how']]} }})</script>"
    )


async def _big(request: web.Request) -> web.Response:
    return _html(f"<p>{'x' * int(request.query['bytes'])}</p>")


async def _worker(request: web.Request) -> web.Response:
    script = "self.addEventListener('fetch', () => {})"
    return web.Response(text=script, content_type="text/javascript")


async def _cached(request: web.Request) -> web.Response:
    headers = {"Cache-Control": "public, max-age=3600"}
    return web.Response(text="var cached = 1", content_type="text/javascript", headers=headers)


async def _traces(request: web.Request) -> web.Response:
    """A page that first says what earlier visits left, and then leaves all that a page can."""
    return _html(f"<script src='/cached.js'></script><script>{_TRACES}</script>")


_TRACES = """
const opened = name => new Promise((done, failed) => {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore('things');
  request.onsuccess = () => { request.result.close(); done(); };
  request.onerror = failed;
});
const state = async name => (await navigator.permissions.query({name})).state;
const found = async () => ({
  cookies: document.cookie,
  local: localStorage.length,
  session: sessionStorage.length,
  databases: (await indexedDB.databases()).length,
  caches: (await caches.keys()).length,
  workers: (await navigator.serviceWorker.getRegistrations()).length,
  name: window.name,
  history: history.length,
  geolocation: await state('geolocation'),
  notifications: await state('notifications'),
});
const leave = async () => {
  document.cookie = 'left=behind; max-age=3600';
  localStorage.setItem('left', 'behind');
  sessionStorage.setItem('left', 'behind');
  await opened('left');
  await (await caches.open('left')).put('/left', new Response('behind'));
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  window.name = 'behind';
  history.pushState({}, '', '#behind');
};
addEventListener('load', async () => {
  const out = document.createElement('pre');
  try {
    const before = await found();
    await leave();
    out.textContent = JSON.stringify({before, after: await found()});
  } catch (error) {
    out.textContent = JSON.stringify({error: String(error)});
  }
  out.id = 'out';
  document.body.append(out);
});
"""
