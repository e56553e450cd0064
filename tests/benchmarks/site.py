"""The site that is measured against: 200 product pages of 15 KB, a stylesheet and an image.

Run as a process of its own; prints its address. Its CPU counts for nobody.
"""

import asyncio
import struct
import sys
import zlib

from aiohttp import web

from tests.listening import listening

PAGES = 200
ROWS = 20
_PAGE_BYTES = 15_000
_CSS = "body{font:14px sans-serif;margin:2em}td{padding:4px 8px;border-bottom:1px solid #ddd}" * 8


def _png(size: int = 24) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(
        b"\0" + bytes((x * 9 % 256, 90, 160)[i] for x in range(size) for i in range(3))
        for _ in range(size)
    )
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def page(number: int) -> str:
    """Return one product page."""
    rows = "".join(
        f'<tr class="row"><td class="name"><a href="/p/{(number + k) % PAGES}">'
        f'Part {number}-{k}</a></td><td class="price">EUR {number}.{k:02d}</td>'
        f'<td class="stock">{k}</td></tr>'
        for k in range(ROWS)
    )
    head = (
        f"<!doctype html><html><head><title>Product {number}</title>"
        '<link rel="stylesheet" href="/style.css"></head>'
        f'<body><h1>Product {number}</h1><img src="/logo.png" alt=""><table>{rows}</table><p>'
    )
    filler = "Plain words about the product, as long as such pages are. "
    missing = _PAGE_BYTES - len(head) - 30
    return head + (filler * (missing // len(filler) + 1))[:missing] + "</p></body></html>"


def build() -> web.Application:
    """Return the site."""
    pages = [page(number) for number in range(PAGES)]
    png = _png()

    async def product(request: web.Request) -> web.Response:
        return web.Response(text=pages[int(request.match_info["n"])], content_type="text/html")

    async def tiny(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><h1>Tiny</h1>", content_type="text/html")

    async def style(_: web.Request) -> web.Response:
        return web.Response(text=_CSS, content_type="text/css")

    async def logo(_: web.Request) -> web.Response:
        return web.Response(body=png, content_type="image/png")

    async def icon(_: web.Request) -> web.Response:
        return web.Response(status=204)

    app = web.Application()
    app.router.add_get("/p/{n:\\d+}", product)
    app.router.add_get("/style.css", style)
    app.router.add_get("/logo.png", logo)
    app.router.add_get("/tiny", tiny)
    app.router.add_get("/favicon.ico", icon)
    return app


async def main() -> None:
    """Serve until stdin closes."""
    async with listening(build()) as url:
        print(url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
