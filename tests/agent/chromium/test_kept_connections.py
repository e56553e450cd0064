"""The egress proxy's connections over several exchanges: kept where that is safe, and no longer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from agent.chromium.forwarder import Forwarder
from agent.egress.policy import Policy
from agent.ports import Denied
from farm.protocol.plan import Egress
from tests.patience import PATIENCE_S

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
LARGE = 8_000_000


class Site:
    """Answers each request of a connection with the next of its answers, and counts connections.

    After an answer that is followed by `None` it closes the connection.
    """

    def __init__(self, *connections: Sequence[bytes | None]) -> None:
        self._answers = list(connections)
        self.heads: list[bytes] = []
        self.connections = 0
        self.ended = asyncio.Event()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers = self._answers[self.connections]
        self.connections += 1
        try:
            for answer in answers:
                if answer is None:
                    break
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(answer)
                await writer.drain()
            else:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.ended.set()

    def paths(self) -> list[str]:
        return [head.split(b" ")[1].decode() for head in self.heads]


class Browser:
    """One connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def ask(self, url: str, method: str = "GET", *, rest: str = "") -> None:
        self.writer.write(f"{method} {url} HTTP/1.1\r\n{rest}\r\n".encode())

    async def answer(self) -> bytes:
        """Read one answer that says how long it is."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
            return head + await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()


@asynccontextmanager
async def browsing(
    site: Site, *, names: Sequence[str] = ("shop.test",)
) -> AsyncIterator[tuple[Browser, str, Forwarder, list[Denied]]]:
    told: list[Denied] = []

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    server = await asyncio.start_server(site.handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    forwarder = await Forwarder(told.append, resolver=resolve).start()
    forwarder.apply(Policy.of(Egress(allow=tuple(names))))
    host, own = forwarder.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(own))
    try:
        yield Browser(reader, writer), f"http://shop.test:{port}", forwarder, told
    finally:
        writer.close()
        await forwarder.close()
        server.close()
        await server.wait_closed()


async def test_exchanges_with_one_server_share_a_connection_on_either_side() -> None:
    site = Site([OK, OK, OK])
    async with browsing(site) as (browser, base, _, _):
        for path in ("/1", "/2", "/3"):
            browser.ask(base + path)
            assert (await browser.answer()).endswith(b"hi")
    assert site.paths() == ["/1", "/2", "/3"]
    assert site.connections == 1


async def test_each_request_of_a_connection_is_judged_by_itself() -> None:
    site = Site([OK])
    async with browsing(site) as (browser, base, _, told):
        browser.ask(f"{base}/1")
        await browser.answer()
        browser.ask(base.replace("shop.test", "other.test") + "/2")
        answer = await browser.rest()
    assert answer.startswith(b"HTTP/1.1 403")
    assert "other.test" in told[0].url
    assert site.paths() == ["/1"]


async def test_requests_sent_together_are_answered_in_their_order() -> None:
    site = Site([OK.replace(b"hi", b"ab"), OK.replace(b"hi", b"cd")])
    async with browsing(site) as (browser, base, _, _):
        browser.ask(f"{base}/1")
        browser.ask(f"{base}/2")
        assert (await browser.answer()).endswith(b"ab")
        assert (await browser.answer()).endswith(b"cd")


async def test_a_kept_connection_that_the_server_has_left_is_opened_anew() -> None:
    site = Site([OK, None], [OK])
    async with browsing(site) as (browser, base, _, told):
        browser.ask(f"{base}/1")
        await browser.answer()
        await site.ended.wait()
        browser.ask(f"{base}/2")
        assert (await browser.answer()).endswith(b"hi")
    assert told == []
    assert site.connections == 2


async def test_what_has_an_effect_gets_a_connection_of_its_own() -> None:
    site = Site([OK], [OK])
    async with browsing(site) as (browser, base, _, _):
        browser.ask(f"{base}/1")
        await browser.answer()
        browser.ask(f"{base}/2", "POST", rest="Content-Length: 0\r\n")
        assert (await browser.answer()).endswith(b"hi")
    assert site.connections == 2


async def test_a_post_whose_answer_never_comes_is_not_sent_again() -> None:
    site = Site([b"", None], [OK])
    async with browsing(site) as (browser, base, _, told):
        browser.ask(f"{base}/pay", "POST", rest="Content-Length: 0\r\n")
        answer = await browser.rest()
    assert answer.startswith(b"HTTP/1.1 502")
    assert told[0].unreachable
    assert site.paths() == ["/pay"]


async def test_what_comes_after_an_answer_reaches_nobody_and_ends_the_connection() -> None:
    site = Site([OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"], [OK])
    async with browsing(site) as (browser, base, _, _):
        browser.ask(f"{base}/1")
        assert (await browser.answer()).endswith(b"hi")
        browser.ask(f"{base}/2")
        answer = await browser.answer()
    assert answer.endswith(b"hi")
    assert site.connections == 2


async def test_an_answer_without_a_length_lasts_until_the_server_closes() -> None:
    site = Site([b"HTTP/1.1 200 OK\r\n\r\nall of it", None])
    async with browsing(site) as (browser, base, _, _):
        browser.ask(f"{base}/1")
        answer = await browser.rest()
    assert b"Connection: close" in answer
    assert answer.endswith(b"all of it")


async def test_an_answer_that_breaks_off_ends_the_connection_short_of_its_length() -> None:
    site = Site([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", None])
    async with browsing(site) as (browser, base, _, _):
        browser.ask(f"{base}/1")
        answer = await browser.rest()
    assert answer.endswith(b"half")


async def test_another_policy_cuts_what_was_kept() -> None:
    site = Site([OK], [OK])
    async with browsing(site) as (browser, base, forwarder, _):
        browser.ask(f"{base}/1")
        await browser.answer()
        forwarder.apply(Policy.of(Egress(allow=("shop.test", "other.test"))))
        with pytest.raises(ConnectionError):
            await browser.rest()
        async with asyncio.timeout(PATIENCE_S):
            await site.ended.wait()


async def test_a_client_that_does_not_read_holds_the_server_back_and_loses_nothing() -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n".encode()
    site = Site([head + b"x" * LARGE, OK])
    async with browsing(site) as (browser, base, forwarder, _):
        browser.ask(f"{base}/large")
        async with asyncio.timeout(PATIENCE_S):
            await browser.reader.readuntil(b"\r\n\r\n")
            held = [peer.transport.get_write_buffer_size() for peer in forwarder.opened]
            assert max(held) < 1_000_000
            assert await browser.reader.readexactly(LARGE) == b"x" * LARGE
        browser.ask(f"{base}/after")
        assert (await browser.answer()).endswith(b"hi")
    assert site.connections == 1


async def test_of_too_many_kept_connections_the_oldest_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.chromium.forwarder._MAX_IDLE", 1)
    site = Site([OK], [OK])
    async with browsing(site, names=("shop.test", "also.test")) as (browser, base, forwarder, _):
        browser.ask(f"{base}/1")
        await browser.answer()
        browser.ask(base.replace("shop.test", "also.test") + "/2")
        await browser.answer()
        async with asyncio.timeout(PATIENCE_S):
            await site.ended.wait()
        assert len(forwarder.opened) == 2
