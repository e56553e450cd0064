"""Connections to servers by way of a proxy further out.

A request of plain HTTP is handed to an HTTP proxy as it is; everything else is a tunnel that the
proxy is asked for, by CONNECT or by SOCKS5, before a byte of the page goes out.
"""

import asyncio
import ssl
from functools import partial

from python_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError, ProxyType
from python_socks.async_.asyncio import Proxy

from agent.chromium.connections import Gate, Server
from agent.chromium.http_heads import HEAD_END, HEAD_LIMIT, Request, connect_head, status_of
from agent.egress.resolving import Refused
from agent.egress.upstream import Upstream, auth_refused, unreachable

_ANSWER_S = 30.0
"""For the proxy to reach the server."""


async def connect_through(upstream: Upstream, address: str, request: Request, gate: Gate) -> Server:
    """Return a connection for a request, by way of the proxy at an address.

    Raises:
        Refused: If the proxy is not there, does not take what it is told, or does not connect.
    """
    try:
        async with asyncio.timeout(_ANSWER_S):
            if upstream.scheme == "socks5":
                return await _by_socks(upstream, address, request, gate)
            return await _by_http(upstream, address, request, gate)
    except (OSError, TimeoutError) as error:
        raise unreachable(upstream, str(error) or "no answer in time") from error


async def _by_socks(upstream: Upstream, address: str, request: Request, gate: Gate) -> Server:
    told = upstream.credentials
    proxy = Proxy(
        ProxyType.SOCKS5,
        host=address,
        port=upstream.port,
        username=None if told is None else told.username,
        password=None if told is None else told.password,
        rdns=True,
    )
    try:
        socket = await proxy.connect(request.host, request.port, timeout=_ANSWER_S)
    except (ProxyConnectionError, ProxyTimeoutError) as error:
        raise unreachable(upstream, str(error)) from error
    except ProxyError as error:
        raise _socks_refusal(upstream, request, error) from error
    except UnicodeError as error:
        raise Refused(f"{request.host[:100]} is no host name") from error
    loop = asyncio.get_running_loop()
    _, server = await loop.create_connection(partial(Server, gate, address, upstream), sock=socket)
    return server


def _socks_refusal(upstream: Upstream, request: Request, error: ProxyError) -> Refused:
    if error.error_code is not None:  # the proxy let us in, and says what became of the request
        return Refused(f"the proxy does not reach {request.host}: {error}", unreachable=True)
    if "authentication" in str(error):
        return auth_refused(upstream)
    return unreachable(upstream, f"it does not speak SOCKS5: {error}")


async def _by_http(upstream: Upstream, address: str, request: Request, gate: Gate) -> Server:
    loop = asyncio.get_running_loop()
    secure = ssl.create_default_context() if upstream.scheme == "https" else None
    name = upstream.host if secure is not None else None
    if not request.tunnel:
        _, server = await loop.create_connection(
            partial(Server, gate, address, upstream),
            address,
            upstream.port,
            ssl=secure,
            server_hostname=name,
        )
        return server
    transport, knock = await loop.create_connection(
        _Knock, address, upstream.port, ssl=secure, server_hostname=name
    )
    try:
        transport.write(connect_head(request, upstream.authorization))
        status, rest = await knock.answer
    except BaseException:
        transport.abort()
        raise
    if status != 200:
        transport.abort()
        if status == 407:
            raise auth_refused(upstream)
        raise Refused(f"the proxy answered {status} for {request.host}", unreachable=True)
    server = Server(gate, address, upstream)
    transport.set_protocol(server)
    server.connection_made(transport)
    server.early = rest
    return server


class _Knock(asyncio.Protocol):
    """Waits for the head of the answer to CONNECT."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(HEAD_END)
        if end >= 0:
            head, rest = self._buffer[:end], self._buffer[end + len(HEAD_END) :]
            if not self.answer.done():
                self.answer.set_result((status_of(bytes(head)), bytes(rest)))
        elif len(self._buffer) > HEAD_LIMIT:
            self._fail("its answer is too long")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(str(exc or "it broke off"))

    def _fail(self, why: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(ConnectionError(why))
