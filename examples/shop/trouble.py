"""Pages that misbehave: slow, hanging, crashing, redirecting, asking."""

import asyncio
from html import escape

from aiohttp import web

from examples.shop.pages import layout

# Splitting asks for one array larger than the JavaScript engine can hold, which ends the renderer
# at once; most other excesses only raise RangeError in the page.
_CRASH = "'a'.repeat(1 << 28).split('')"


def _page(title: str, body: str) -> web.Response:
    return web.Response(text=layout(title, body), content_type="text/html")


def milliseconds(request: web.Request, name: str) -> int:
    """Read a delay of at most a minute from the query; what is not a number is none."""
    value = request.query.get(name, "0")
    return min(int(value), 60_000) if value.isdecimal() else 0


async def slow(request: web.Request) -> web.Response:
    """Answer `?ms=` milliseconds late."""
    ms = milliseconds(request, "ms")
    await asyncio.sleep(ms / 1000)
    return _page("Slow", f"<h1>Slow</h1><p>This took <span id='ms'>{ms}</span> ms.</p>")


async def hang(request: web.Request) -> web.Response:
    """A page whose script never ends, so that nothing on it can be asked any more."""
    return _page("Hang", "<h1>Hang</h1><script>setTimeout(() => { for (;;) {} }, 0)</script>")


async def hang_response(request: web.Request) -> web.Response:
    """Never answer; ends when the client gives up or the shop closes."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets that event")


async def crash(request: web.Request) -> web.Response:
    """A page that ends its own renderer."""
    return _page("Crash", f"<h1>Crash</h1><script>setTimeout(() => {{ {_CRASH}; }}, 0)</script>")


async def redirect(request: web.Request) -> web.Response:
    """Send the browser to `?to=`, wherever that is."""
    return web.Response(status=302, headers={"Location": request.query.get("to", "/")})


async def popup(request: web.Request) -> web.Response:
    """Open a second window as soon as the page is there, and another one on a click."""
    return _page(
        "Popup",
        "<h1>Popup</h1><p><a id='open' target='_blank' href='/products'>Open the products</a></p>"
        "<script>window.open('/')</script>",
    )


async def status(request: web.Request) -> web.Response:
    """Answer with the status named in the path."""
    code = int(request.match_info["code"])
    body = layout(f"Status {code}", f"<h1>Status <span id='status'>{code}</span></h1>")
    return web.Response(status=code, text=body, content_type="text/html")


async def dialog(request: web.Request) -> web.Response:
    """Ask a question that stops the page until it is answered."""
    message = escape(request.query.get("message", "Shall we go on?"), quote=True)
    return _page(
        "Dialog",
        f"<h1>Dialog</h1><p id='answer' data-message=\"{message}\">not asked</p><script>"
        "const p = document.getElementById('answer');"
        "p.textContent = confirm(p.dataset.message) ? 'yes' : 'no'</script>",
    )


ROUTES = (
    web.get("/slow", slow),
    web.get("/hang", hang),
    web.get("/hang-response", hang_response),
    web.get("/crash", crash),
    web.get("/redirect", redirect),
    web.get("/popup", popup),
    web.get(r"/status/{code:[2-5]\d\d}", status),
    web.get("/dialog", dialog),
)
"""The routes of this module."""
