"""What a flow's client takes from servers, and what it does not let them do to us."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from farm.protocol.failures import Reason
from tests.agent.console.conftest import FlowRun, Handler, answering
from tests.agent.steps.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = b"<!doctype html><p>hello"
TEXT = {"type": "extract", "fields": {"text": "body", "url": {"value": "${page.url}"}}}


def redirect(to: str, status: int = 302) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": to})

    return handler


def goto(site: Site, path: str = "/") -> dict[str, object]:
    return {"type": "goto", "url": f"{site.url}{path}"}


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw(serve: Serve) -> AsyncIterator[str]:
    """A server of bytes, one connection at a time."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def test_redirects_are_followed_to_the_page_and_its_address(
    site: Site, flow: FlowRun
) -> None:
    site.pages |= {
        "/": redirect("b?q=ü#frag"),
        "/b": redirect("//" + site.url.partition("//")[2] + "/c", 303),
        "/c": answering(PAGE, "text/html"),
    }
    assert await flow(goto(site), TEXT) is None
    assert flow.items == [{"text": "hello", "url": f"{site.url}/c#frag"}]


async def test_a_circle_of_redirects_has_an_end(site: Site, flow: FlowRun) -> None:
    site.pages["/"] = redirect("/")
    failure = await flow(goto(site))
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED
    assert len(site.requests) == 21


async def test_cookies_last_for_the_attempt_and_no_longer(site: Site, flow: FlowRun) -> None:
    async def counted(request: web.Request) -> web.StreamResponse:
        seen = int(request.cookies.get("n", "0"))
        response = web.Response(text=f"<p>{seen}", content_type="text/html")
        response.set_cookie("n", str(seen + 1))
        return response

    site.pages["/"] = counted
    for _ in range(2):
        assert await flow(goto(site), goto(site), TEXT) is None
        assert flow.items[0]["text"] == "1"


async def test_it_shows_itself_as_the_job_says(site: Site, flow: FlowRun) -> None:
    async def mirror(request: web.Request) -> web.StreamResponse:
        names = ("User-Agent", "Accept-Language", "Referer")
        return web.json_response({name: request.headers.get(name) for name in names})

    site.pages["/"] = mirror
    pre = {"type": "extract", "fields": {"said": {"selector": "pre", "type": "json"}}}
    step = {**goto(site), "referer": "https://from.example/"}
    options = {"locale": "de-AT", "user_agent": "me"}
    assert await flow(step, pre, options=options) is None
    assert flow.items[0]["said"] == {
        "User-Agent": "me",
        "Accept-Language": "de-AT,de;q=0.9",
        "Referer": "https://from.example/",
    }


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", lambda body: gzip.compress(body[:5]) + gzip.compress(body[5:])),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body)[2:-4]),
        ("identity", bytes),
        ("deflate, gzip", lambda body: gzip.compress(zlib.compress(body))),
    ],
)
async def test_what_is_compressed_is_unpacked(
    site: Site, flow: FlowRun, coding: str, encode: Callable[[bytes], bytes]
) -> None:
    site.pages["/"] = answering(encode(PAGE), "text/html", **{"Content-Encoding": coding})
    assert await flow(goto(site), TEXT) is None
    assert flow.items[0]["text"] == "hello"


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (gzip.compress(bytes(50_000_000)), "gzip"),
        (gzip.compress(gzip.compress(bytes(80_000_000))), "gzip, gzip"),
        (b"a" * 2_000_001, "identity"),
        (b"this is no gzip", "gzip"),
        (PAGE, "br"),
    ],
    ids=["bomb", "bomb in a bomb", "long", "broken", "unasked"],
)
async def test_a_body_that_can_not_be_had_fails_the_step(
    site: Site, flow: FlowRun, body: bytes, coding: str
) -> None:
    site.pages["/"] = answering(body, "text/html", **{"Content-Encoding": coding})
    failure = await flow(goto(site))
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED


async def test_a_body_without_an_end_is_cut_off_at_the_limit(flow: FlowRun) -> None:
    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            writer.write(b"<p>" * 20_000)
            await writer.drain()

    async with raw(endless) as url:
        failure = await flow({"type": "goto", "url": url})
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED


async def _drop(writer: asyncio.StreamWriter, piece: bytes) -> None:
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("piece", [b"HTTP/1.1 200 OK\r\n", b"", b"HTTP/1.1 200 OK\r\n\r\n<p>"])
async def test_a_server_that_takes_for_ever_is_waited_for_as_long_as_the_step_says(
    flow: FlowRun, piece: bytes
) -> None:
    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(piece)
        await _drop(writer, b"X: y\r\n" if piece.count(b"\r\n") == 1 else b"x")

    async with raw(slow) as url:
        failure = await flow({"type": "goto", "url": url, "timeout": 300})
    assert failure is not None
    # A head that grows for ever is broken off before the time is over.
    assert failure.reason in (Reason.NAVIGATION_TIMEOUT, Reason.NAVIGATION_FAILED)


@pytest.mark.parametrize(
    "head",
    [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", b"", b"\x00" * 99],
)
async def test_what_is_not_http_fails_the_step(flow: FlowRun, head: bytes) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)

    async with raw(serve) as url:
        failure = await flow({"type": "goto", "url": url})
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",  # the same
        "http://metadata.google.internal/",
        "http://10.0.0.1/",
        "http://127.1:1/",
        "http://localhost:1/",
        "file:///etc/passwd",
        "chrome://version",
    ],
)
async def test_what_a_page_may_not_reach_a_flow_may_not_either(flow: FlowRun, url: str) -> None:
    failure = await flow({"type": "goto", "url": url}, egress={"allow": []})
    assert failure is not None
    assert failure.reason is Reason.EGRESS_DENIED


@pytest.mark.parametrize(
    "to", ["http://169.254.169.254/", "http://10.0.0.1/", "http://metadata.goog/x"]
)
async def test_a_redirect_leads_to_no_place_that_is_closed(
    site: Site, flow: FlowRun, to: str
) -> None:
    site.pages["/"] = redirect(to)
    failure = await flow(goto(site))
    assert failure is not None
    assert failure.reason is Reason.EGRESS_DENIED


async def test_a_name_is_judged_by_what_it_resolves_to_and_connected_to_just_there(
    site: Site, flow: FlowRun
) -> None:
    site.pages["/"] = answering(PAGE, "text/html")
    port = site.url.rpartition(":")[2]
    answers: list[Sequence[str]] = [["169.254.169.254", "127.0.0.1"], ["169.254.169.254"]]

    async def rebinding(_: str, __: int) -> Sequence[str]:
        return answers.pop(0)

    flow.resolver = rebinding
    assert await flow({"type": "goto", "url": f"http://a.example:{port}/"}) is None
    assert len(answers) == 1
    failure = await flow({"type": "goto", "url": f"http://a.example:{port}/"})
    assert failure is not None
    assert failure.reason is Reason.EGRESS_DENIED


async def test_nothing_is_sent_once_the_farm_may_have_taken_the_agent_for_gone(
    site: Site, flow: FlowRun
) -> None:
    flow.may_act = False
    failure = await flow(goto(site))
    assert failure is not None
    assert failure.reason is Reason.AGENT_LOST
    assert site.requests == []


@pytest.mark.parametrize(
    ("kind", "more", "reason"),
    [
        ("application/pdf", {}, Reason.NAVIGATION_FAILED),
        ("text/html", {"Content-Disposition": "attachment"}, Reason.NAVIGATION_FAILED),
        ("application/xhtml+xml", {}, Reason.NEEDS_BROWSER),
    ],
)
async def test_what_is_no_page_of_html_is_told_apart(
    site: Site, flow: FlowRun, kind: str, more: dict[str, str], reason: Reason
) -> None:
    site.pages["/"] = answering(PAGE, kind, **more)
    failure = await flow(goto(site))
    assert failure is not None
    assert failure.reason is reason


async def test_nobody_at_the_address_is_a_failed_navigation(flow: FlowRun) -> None:
    failure = await flow({"type": "goto", "url": "http://127.0.0.1:1/"})
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED


async def test_a_data_url_is_a_page(flow: FlowRun) -> None:
    assert await flow({"type": "goto", "url": "data:text/html;base64,PHA+aGk="}, TEXT) is None
    assert flow.items[0]["text"] == "hi"
