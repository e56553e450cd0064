"""Serves the hostile pages, and the answers that are hostile by themselves."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aiohttp import web

from tests.e2e.hostile.page import Hostile

_HTML = b"Content-Type: text/html\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the pages are, the server without manners, and one nobody can trust."""

    url: str
    raw: str
    tls: str


@asynccontextmanager
async def opened(pages: Iterable[Hostile], certificate: Path) -> AsyncIterator[Site]:
    """Serve the pages on ports of loopback until the end of the block."""
    by_name = {page.name: page for page in pages}

    async def page(request: web.Request) -> web.Response:
        there = by_name.get(request.match_info["name"])
        markup = (
            "<!doctype html><title>plain</title><h1>Plain</h1>" if there is None else there.markup
        )
        headers = {} if there is None else dict(there.headers)
        return web.Response(text=markup, content_type="text/html", headers=headers)

    app = web.Application()
    app.add_routes([web.route("*", "/page/{name}", page), *_ROUTES])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    raw = await asyncio.start_server(_raw, "127.0.0.1", 0)
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        ports = [address[1] for address in runner.addresses]
        yield Site(
            url=f"http://127.0.0.1:{ports[0]}",
            raw=f"http://127.0.0.1:{raw.sockets[0].getsockname()[1]}",
            tls=f"https://127.0.0.1:{ports[1]}",
        )
    finally:
        raw.close()
        await runner.cleanup()


async def _never(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets that event")


async def _nothing(request: web.Request) -> web.Response:
    return web.Response(status=204)


def _endless(
    piece: bytes, **headers: str
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={k.replace("_", "-"): v for k, v in headers.items()})
        await stream.prepare(request)
        with suppress(ConnectionError):
            while True:
                await stream.write(piece)
                await asyncio.sleep(0.002)  # as fast as pages read, and no faster than others run
        return stream

    return answer


async def _around(request: web.Request) -> web.Response:
    turn = int(request.query.get("n", "0"))
    raise web.HTTPFound(f"/endless-redirect?n={turn + 1}")


async def _to_metadata(request: web.Request) -> web.Response:
    raise web.HTTPFound("http://169.254.169.254/latest/meta-data/")


async def _password(request: web.Request) -> web.Response:
    return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'}, text="401")


@cache
def _bomb() -> bytes:
    return gzip.compress(b"<p>" * (1 << 27), compresslevel=9)


async def _compressed_bomb(request: web.Request) -> web.Response:
    body = await asyncio.to_thread(_bomb)
    return web.Response(
        body=body, headers={"Content-Encoding": "gzip", "Content-Type": "text/html"}
    )


async def _worker(request: web.Request) -> web.Response:
    script = (
        "onfetch = e => e.respondWith(fetch('/nothing?' + Math.random()));"
        "setInterval(() => registration.update(), 1); for (let i = 0; i < 9; i++) fetch('/nothing')"
    )
    return web.Response(text=script, content_type="text/javascript")


_ROUTES = (
    web.get("/never", _never),
    web.route("*", "/nothing", _nothing),
    web.get("/no-content", _nothing),
    web.get("/endless-body", _endless(b"<p>x</p>" * 500, Content_Type="text/html")),
    web.get(
        "/endless-download",
        _endless(
            b"x" * 9999,
            Content_Type="application/octet-stream",
            Content_Disposition="attachment; filename=x.bin",
        ),
    ),
    web.get("/endless-events", _endless(b"data: x\n\n" * 99, Content_Type="text/event-stream")),
    web.get(
        "/replaces-itself",
        _endless(
            b"--x\r\nContent-Type: text/html\r\n\r\n<p>x\r\n",
            Content_Type="multipart/x-mixed-replace; boundary=x",
        ),
    ),
    web.get("/endless-redirect", _around),
    web.get("/to-metadata", _to_metadata),
    web.get("/asks-for-password", _password),
    web.get("/compressed-bomb", _compressed_bomb),
    web.get("/worker.js", _worker),
)


async def _raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        head = await reader.readuntil(b"\r\n\r\n")
        name = head.split()[1].rpartition(b"/")[2].decode()
        async for piece in _PIECES.get(name, _garbage)():
            writer.write(piece)
            await writer.drain()
    writer.close()


async def _drip() -> AsyncIterator[bytes]:
    for byte in b"HTTP/1.1 200 OK\r\n" + _HTML + b"X: " + b"x" * 999:
        yield bytes((byte,))
        await asyncio.sleep(0.2)


async def _huge_headers() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n" + _HTML + b"X: " + b"x" * 5_000_000 + b"\r\n\r\n<p>x"


async def _endless_headers() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X: x\r\n" * 999


async def _endless_continue() -> AsyncIterator[bytes]:
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n"
        await asyncio.sleep(0.001)


async def _garbage() -> AsyncIterator[bytes]:
    yield bytes(range(256)) * 99


async def _breaks_off() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n" + _HTML + b"Content-Length: 9999\r\n\r\n<title>x</title>"


async def _wrong_length() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n" + _HTML + b"Content-Length: 3\r\nContent-Length: 9\r\n\r\n<p>x"


async def _split_answer() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n" + _HTML + b"Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nxx"


_PIECES = {
    "drip": _drip,
    "huge-headers": _huge_headers,
    "endless-headers": _endless_headers,
    "endless-continue": _endless_continue,
    "garbage": _garbage,
    "breaks-off": _breaks_off,
    "wrong-length": _wrong_length,
    "split-answer": _split_answer,
}
