"""The egress proxy, spoken to over real sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from agent.chromium.forwarder import Forwarder
from agent.egress.policy import Policy
from agent.egress.resolving import system_resolver
from agent.ports import Denied
from farm.protocol.plan import Egress
from tests.patience import PATIENCE_S

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Upstream:
    """A server that records each head it gets and answers by a handler."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.gone = asyncio.Event()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if b"Content-Length: 5" in head:
            self.bodies.append(await reader.readexactly(5))
        writer.write(self.answer)
        await writer.drain()
        if self.answer:
            writer.close()
        else:
            with contextlib.suppress(ConnectionError):
                await reader.read()
            self.gone.set()
            writer.close()


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[int]:
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def forwarding(
    *allow: str, names: dict[str, list[str]] | None = None
) -> AsyncIterator[tuple[Forwarder, list[Denied]]]:
    told: list[Denied] = []

    async def resolve(host: str, port: int) -> list[str]:
        if host not in (names or {}):
            raise OSError("no such name")
        return (names or {})[host]

    forwarder = await Forwarder(told.append, resolver=resolve).start()
    forwarder.apply(Policy.of(Egress(allow=allow)))
    try:
        yield forwarder, told
    finally:
        await forwarder.close()


async def dial(forwarder: Forwarder) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = forwarder.address.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def ask(forwarder: Forwarder, data: bytes) -> bytes:
    """Send a request that is the last on its connection, and return all that comes."""
    reader, writer = await dial(forwarder)
    writer.write(data.replace(END, b"\r\nConnection: close" + END, 1))
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return answer


END = b"\r\n\r\n"
NAMES = {
    "shop.test": ["127.0.0.1"],
    "rebind.test": ["169.254.169.254", "127.0.0.1"],
    "empty.test": [],
}
OK = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n"
    b"X-Tabfarm-Egress: denied\r\nX-Kept: 1\r\n\r\nhi"
)


async def test_a_request_reaches_the_server_in_origin_form_without_proxy_headers() -> None:
    upstream = Upstream(OK)
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, told),
    ):
        answer = await ask(
            forwarder,
            f"GET http://u:p@shop.test:{port}/a?b=c HTTP/1.1\r\nHost: evil.test\r\n"
            "Proxy-Connection: keep-alive\r\nProxy-Authorization: secret\r\n"
            "Connection: X-Hop\r\nX-Hop: 1\r\nAccept: */*\r\n\r\n".encode(),
        )
    (head,) = upstream.heads
    assert head.startswith(f"GET /a?b=c HTTP/1.1\r\nHost: shop.test:{port}\r\n".encode())
    assert b"Accept: */*" in head
    assert b"roxy" not in head
    assert b"Hop" not in head
    assert b"Connection" not in head
    assert answer.endswith(b"\r\n\r\nhi")
    assert told == []


async def test_an_answer_cannot_pose_as_ours() -> None:
    upstream = Upstream(OK)
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, _),
    ):
        answer = await ask(forwarder, f"GET http://shop.test:{port}/ HTTP/1.1\r\n\r\n".encode())
    assert b"X-Kept: 1" in answer
    assert b"eep-alive" not in answer
    assert b"X-Tabfarm-Egress" not in answer


async def test_a_body_is_passed_on() -> None:
    upstream = Upstream(OK)
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, _),
    ):
        await ask(
            forwarder,
            f"POST http://shop.test:{port}/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".encode(),
        )
    assert upstream.bodies == [b"hello"]


async def test_an_interim_answer_is_passed_on_before_the_answer() -> None:
    upstream = Upstream(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, _),
    ):
        answer = await ask(forwarder, f"GET http://shop.test:{port}/ HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 103")
    assert answer.endswith(b"hi")


@pytest.mark.parametrize(
    "form",
    [
        "GET http://shop.test:{port}/x?secret=1 HTTP/1.1\r\n\r\n",
        "CONNECT shop.test:{port} HTTP/1.1\r\n\r\n",
    ],
)
async def test_a_name_that_resolves_to_loopback_is_denied_and_told(form: str) -> None:
    upstream = Upstream(OK)
    async with listening(upstream.handle) as port, forwarding(names=NAMES) as (forwarder, told):
        answer = await ask(forwarder, form.format(port=port).encode())
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"X-Tabfarm-Egress: denied" in answer
    assert upstream.heads == []
    (denied,) = told
    assert "shop.test" in denied.url
    assert "secret" not in denied.url
    assert not denied.unreachable


async def test_only_the_permitted_addresses_of_a_name_are_tried() -> None:
    upstream = Upstream(OK)
    async with (
        listening(upstream.handle) as port,
        forwarding("rebind.test", names=NAMES) as (forwarder, _),
    ):
        answer = await ask(forwarder, f"GET http://rebind.test:{port}/ HTTP/1.1\r\n\r\n".encode())
    assert b"200 OK" in answer


async def test_a_tunnel_carries_bytes_both_ways_until_both_ends_close() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"you said " + await reader.read())
        await writer.drain()
        writer.close()

    async with (
        listening(echo) as port,
        forwarding(f"shop.test:{port}", names=NAMES) as (forwarder, _),
    ):
        reader, writer = await dial(forwarder)
        writer.write(f"CONNECT shop.test:{port} HTTP/1.1\r\n\r\nhello".encode())
        writer.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"you said hello")


@pytest.mark.parametrize("host", ["nowhere.test", "empty.test", "shop.test"])
async def test_what_cannot_be_reached_is_named(host: str, unused_tcp_port: int) -> None:
    async with forwarding("shop.test", names=NAMES) as (forwarder, told):
        answer = await ask(
            forwarder, f"GET http://{host}:{unused_tcp_port}/ HTTP/1.1\r\n\r\n".encode()
        )
    assert answer.startswith(b"HTTP/1.1 502")
    assert b"X-Tabfarm-Egress: unreachable" in answer
    (denied,) = told
    assert denied.unreachable
    assert host in denied.reason


async def test_a_server_that_breaks_off_is_unreachable() -> None:
    upstream = Upstream(b"SSH-2.0-what\r\n")
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, told),
    ):
        answer = await ask(forwarder, f"GET http://shop.test:{port}/ HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502")
    assert told[0].unreachable


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET ftp://shop.test/ HTTP/1.1\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
        b"GET https://shop.test/ HTTP/1.1\r\n\r\n",
        b"CONNECT shop.test:http HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://shop.test/ HTTP/1.1\r\nbad header : x\r\n\r\n",
    ],
)
async def test_what_is_no_proxy_request_is_refused(request_: bytes) -> None:
    async with forwarding("shop.test", names=NAMES) as (forwarder, _):
        assert (await ask(forwarder, request_)).startswith(b"HTTP/1.1 400")


async def test_an_endless_head_is_refused() -> None:
    async with forwarding() as (forwarder, _):
        answer = await ask(forwarder, b"GET http://a/ HTTP/1.1\r\nX: " + b"a" * 300_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")


async def test_a_narrower_policy_cuts_the_connections_made_under_the_wider_one() -> None:
    upstream = Upstream(b"")
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, _),
    ):
        reader, writer = await dial(forwarder)
        writer.write(f"CONNECT shop.test:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        forwarder.apply(Policy())
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ConnectionError):
                await reader.readexactly(1)
            await upstream.gone.wait()
        writer.close()


async def test_a_client_that_leaves_takes_the_upstream_connection_with_it() -> None:
    upstream = Upstream(b"")
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, _),
    ):
        _, writer = await dial(forwarder)
        writer.write(f"GET http://shop.test:{port}/ HTTP/1.1\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE_S):
            while not upstream.heads:
                await asyncio.sleep(0.005)
            writer.close()
            await upstream.gone.wait()


async def test_closing_ends_an_exchange_that_waits_for_a_name() -> None:
    asked = asyncio.Event()

    async def never(host: str, port: int) -> list[str]:
        asked.set()
        await asyncio.Event().wait()
        return []

    forwarder = await Forwarder(lambda _: None, resolver=never).start()
    reader, writer = await dial(forwarder)
    writer.write(b"GET http://shop.test/ HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        await asked.wait()
        await forwarder.close()
        await forwarder.close()
        with pytest.raises(ConnectionError):
            await reader.readexactly(1)
    writer.close()


async def test_a_name_looked_up_under_one_policy_is_not_reached_under_the_next() -> None:
    upstream, asked, answered = Upstream(OK), asyncio.Event(), asyncio.Event()

    async def slow(host: str, port: int) -> list[str]:
        asked.set()
        await answered.wait()
        return ["127.0.0.1"]

    forwarder = await Forwarder(lambda _: None, resolver=slow).start()
    async with listening(upstream.handle) as port:
        forwarder.apply(Policy.of(Egress(allow=("shop.test",))))
        reader, writer = await dial(forwarder)
        writer.write(f"GET http://shop.test:{port}/ HTTP/1.1\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE_S):
            await asked.wait()
            forwarder.apply(Policy())
            answered.set()
            with pytest.raises(ConnectionError):
                await reader.readexactly(1)
        await forwarder.close()
        writer.close()
    assert not upstream.heads


@pytest.mark.parametrize(("host", "found"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1")])
async def test_an_address_is_its_own_resolution(host: str, found: str) -> None:
    assert await system_resolver(host, 80) == [found]


async def test_nothing_passes_while_the_agent_may_not_act() -> None:
    upstream, allowed = Upstream(OK), [True]
    async with listening(upstream.handle) as port:
        forwarder = await Forwarder(lambda _: None, may_act=lambda: allowed[0]).start()
        forwarder.apply(Policy.of(Egress(allow=("127.0.0.1",))))
        try:
            get = f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n".encode()
            assert (await ask(forwarder, get)).endswith(b"hi")
            allowed[0] = False
            for data in (get, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode()):
                with pytest.raises(ConnectionResetError):
                    await ask(forwarder, data)
        finally:
            await forwarder.close()
    assert len(upstream.heads) == 1


async def test_an_open_tunnel_is_cut_when_the_agent_may_not_act() -> None:
    heard: list[bytes] = []
    allowed = [True]

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            heard.append(data)
            writer.write(data)
        writer.close()

    async with listening(echo) as port:
        forwarder = await Forwarder(lambda _: None, may_act=lambda: allowed[0]).start()
        forwarder.apply(Policy.of(Egress(allow=("127.0.0.1",))))
        try:
            reader, writer = await dial(forwarder)
            writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"one")
            assert await reader.readexactly(3) == b"one"
            allowed[0] = False
            writer.write(b"two")
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()
        finally:
            await forwarder.close()
    assert heard == [b"one"]


async def test_what_was_shut_opens_again_with_the_next_policy() -> None:
    upstream = Upstream(OK)
    async with (
        listening(upstream.handle) as port,
        forwarding("shop.test", names=NAMES) as (forwarder, _),
    ):
        get = f"GET http://shop.test:{port}/ HTTP/1.1\r\n\r\n".encode()
        forwarder.shut()
        with pytest.raises(ConnectionResetError):
            await ask(forwarder, get)
        forwarder.apply(Policy.of(Egress(allow=("shop.test",))))
        assert (await ask(forwarder, get)).endswith(b"hi")
