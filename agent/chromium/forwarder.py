"""The egress proxy of one window: Chromium's only way out, on a loopback port of its own.

It resolves names itself, asks the policy about each address, and connects to an address the
policy has seen: what a name resolves to later makes no difference. Plain HTTP is one exchange a
connection, so that no second request can ride on the first one's permission; everything else
(https, WebSockets) is a tunnel.
"""

import asyncio
import contextlib
import ipaddress
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from agent.chromium.egress import Policy
from agent.chromium.http_heads import (
    MalformedHead,
    Request,
    own_answer,
    read_request,
    rewrite_response,
)
from agent.ports import Denied

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses; raises OSError where there are none."""

_HEAD_LIMIT = 256 * 1024
_HEAD_TIMEOUT_S = 30.0
_RESOLVE_TIMEOUT_S = 15.0
_CONNECT_TIMEOUT_S = 10.0
_CHUNK = 64 * 1024
_INTERIM_LIMIT = 10

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Refused(Exception):  # noqa: N818 - ends one exchange, by an answer of our own
    def __init__(self, reason: str, *, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unreachable = unreachable


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Resolve by the operating system; an address stands for itself, and takes no thread."""
    with contextlib.suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Forwarder:
    """One listener with one policy; `tell` hears of every request it answered itself.

    Nothing passes, either way, once `may_act` says no: an agent that the farm may have taken for
    gone, frozen for a while, say, must not let a page do what another attempt has done since.
    """

    def __init__(
        self,
        tell: Callable[[Denied], None],
        *,
        resolver: Resolver = system_resolver,
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._tell = tell
        self._resolver = resolver
        self._may_act = may_act
        self._shut = False
        self._policy = Policy()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._exchanges: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """The proxy's URL, as Chromium is given it."""
        if self._server is None:
            raise RuntimeError("the forwarder is not listening")
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def start(self) -> Self:
        """Begin to listen, on a free loopback port, with a policy that opens only the internet."""
        self._server = await asyncio.start_server(
            self._serve, host="127.0.0.1", port=0, limit=_HEAD_LIMIT
        )
        return self

    def apply(self, policy: Policy) -> None:
        """Change the policy, and open what was shut; connections under another one are cut."""
        self._shut = False
        if policy != self._policy:
            self._policy = policy
            self._cut()

    def shut(self) -> None:
        """Let nothing pass any more, from this moment, until a policy is applied again."""
        self._shut = True
        self._cut()

    def _is_open(self) -> bool:
        return not self._shut and self._may_act()

    async def close(self) -> None:
        """Stop listening and cut every connection. Does nothing the second time."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self._cut()
        for exchange in tuple(self._exchanges):
            exchange.cancel()
        if self._exchanges:
            await asyncio.wait(self._exchanges, timeout=2.0)
        await server.wait_closed()

    def _cut(self) -> None:
        for writer in tuple(self._open):
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        exchange = asyncio.current_task()
        assert exchange is not None  # noqa: S101 - for the type checker
        self._exchanges.add(exchange)
        self._open.add(writer)
        try:
            await self._exchange(reader, writer)
        except* (OSError, EOFError):
            _reset(writer)
        except* asyncio.CancelledError:
            # The server owns this task, and reports one that ends as cancelled as an error.
            if self._server is not None:
                raise
        finally:
            self._open.discard(writer)
            self._exchanges.discard(exchange)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_TIMEOUT_S):
                request = read_request(await reader.readuntil(b"\r\n\r\n"))
        except (MalformedHead, asyncio.LimitOverrunError) as error:
            await _answer(writer, own_answer("400 Bad Request", "malformed", str(error)))
            return
        if not self._is_open():
            _reset(writer)
            return
        try:
            upstream = await self._connect(request)
        except _Refused as refused:
            self._say(request, refused)
            mark = "unreachable" if refused.unreachable else "denied"
            status = "502 Bad Gateway" if refused.unreachable else "403 Forbidden"
            await _answer(writer, own_answer(status, mark, refused.reason))
            return
        self._open.add(upstream[1])
        try:
            if not self._is_open():
                _reset(writer)
            elif request.tunnel:
                await _answer(writer, b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _relay((reader, writer), upstream, self._is_open)
            else:
                await self._forward(request, (reader, writer), upstream)
        finally:
            self._open.discard(upstream[1])
            upstream[1].transport.abort()

    def _say(self, request: Request, refused: _Refused) -> None:
        self._tell(Denied(url=request.url, reason=refused.reason, unreachable=refused.unreachable))

    async def _connect(self, request: Request) -> _Streams:
        """Connect to the first address that is allowed and answers."""
        addresses = await self._permitted(request.host, request.port)
        problem: Exception | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    return await asyncio.open_connection(address, request.port, limit=_HEAD_LIMIT)
            except (OSError, TimeoutError) as error:
                problem = error
        reason = str(problem) or "no answer in time"
        raise _Refused(f"cannot connect to {request.host}: {reason}", unreachable=True)

    async def _permitted(self, host: str, port: int) -> Sequence[str]:
        if (reason := self._policy.refuses_name(host)) is not None:
            raise _Refused(reason)
        try:
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                addresses = await self._resolver(host, port)
        except (OSError, UnicodeError, TimeoutError) as error:
            reason = f"cannot resolve {host}: {str(error) or 'no answer in time'}"
            raise _Refused(reason, unreachable=True) from error
        # The policy of now: another attempt may have begun while the name was looked up.
        reasons = {a: self._policy.refuses(host, port, a) for a in addresses}
        permitted = [address for address, reason in reasons.items() if reason is None]
        if permitted:
            return permitted
        first = next((reason for reason in reasons.values() if reason), None)
        if first is None:
            raise _Refused(f"{host} has no address", unreachable=True)
        raise _Refused(first)

    async def _forward(self, request: Request, client: _Streams, upstream: _Streams) -> None:
        upstream[1].write(request.forward)
        async with asyncio.TaskGroup() as group:
            body = group.create_task(
                _send_body(client[0], upstream[1], request.body, self._is_open),
                name="egress.body",
            )
            try:
                await self._return_response(request, upstream[0], client[1])
            finally:
                body.cancel()

    async def _return_response(
        self, request: Request, upstream: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> None:
        for _ in range(_INTERIM_LIMIT):
            try:
                code, head = rewrite_response(await upstream.readuntil(b"\r\n\r\n"))
            except (
                MalformedHead,
                asyncio.IncompleteReadError,
                asyncio.LimitOverrunError,
                OSError,
            ) as error:
                refused = _Refused(f"{request.host} broke off: {error}", unreachable=True)
                self._say(request, refused)
                answer = own_answer("502 Bad Gateway", "unreachable", refused.reason)
                await _answer(client, answer)
                return
            await _answer(client, head)
            if not 100 <= code < 200:
                await _pump(upstream, client, self._is_open)
                return


async def _send_body(
    client: asyncio.StreamReader,
    upstream: asyncio.StreamWriter,
    length: int | None,
    is_open: Callable[[], bool],
) -> None:
    """Pass the body on, then watch: when the client goes away, so does the upstream."""
    left = length
    with contextlib.suppress(OSError):
        while (chunk := await client.read(_CHUNK)) and is_open():
            if left is not None:
                chunk = chunk[:left]
                left -= len(chunk)
            if chunk:
                upstream.write(chunk)
                await upstream.drain()
    upstream.transport.abort()


async def _relay(one: _Streams, other: _Streams, is_open: Callable[[], bool]) -> None:
    """Pass bytes both ways until either side breaks, or both have ended."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(one[0], other[1], is_open), name="egress.up")
            group.create_task(_pump(other[0], one[1], is_open), name="egress.down")
    except* OSError:
        _reset(one[1])
        _reset(other[1])


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_open: Callable[[], bool]
) -> None:
    while chunk := await source.read(_CHUNK):
        if not is_open():
            raise ConnectionAbortedError
        sink.write(chunk)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection off, so that the peer can't take what it has for the whole."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
    writer.transport.abort()


async def _answer(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
