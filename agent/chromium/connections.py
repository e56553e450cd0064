"""The connections of an egress proxy: Chromium's to us, and ours to servers.

Each request is read and judged by itself, however many a connection carries. Where the end of an
answer is known, both connections are kept for the next request; where it is not, the answer lasts
until the server closes, and so does the connection to Chromium.
"""

import asyncio
from typing import Protocol

from agent.chromium.http_heads import (
    HEAD_END,
    HEAD_LIMIT,
    MalformedHead,
    Request,
    Response,
    own_answer,
    read_request,
    read_response,
)
from agent.chromium.peers import Passage, Peer
from agent.egress.resolving import Refused
from agent.egress.upstream import Upstream, auth_refused

_BUFFER_LIMIT = 64 * 1024
_INTERIM_LIMIT = 10


class Gate(Passage, Protocol):
    """What a connection asks of its proxy."""

    def idle(self, request: Request) -> "Server | None":
        """Return a kept connection that the request may use."""
        ...

    async def connect(self, request: Request) -> "Server":
        """Return a new connection. Raises Refused."""
        ...

    def keep(self, server: "Server") -> None:
        """Keep a connection on which an exchange has ended well."""
        ...

    def tell(self, request: Request, refused: Refused) -> None:
        """Hear of a request that got an answer of ours."""
        ...


class Client(Peer):
    """A connection of Chromium's: one exchange after the other, or a tunnel."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(gate)
        self._gate = gate
        self._buffer = bytearray()
        self._request: Request | None = None
        self._body_left: int | None = 0
        self._server: Server | None = None
        self._opening: asyncio.Task[None] | None = None
        self._has_ended = False

    @property
    def has_asked_all(self) -> bool:
        """Whether the whole body of the request has been sent."""
        return self._body_left == 0

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if not self._gate.is_open():
            self.break_off()
        elif self._server is not None and self._server.tunnel:
            self._server.transport.write(data)
        else:
            self._buffer += data
            self._go_on()

    def eof_received(self) -> bool:
        """Half of a tunnel may end; a client that asks no more has left."""
        if self._server is not None and self._server.tunnel:
            return self._server.end()
        self._has_ended = self._request is not None and self._request.tunnel
        return self._has_ended

    def connection_lost(self, exc: Exception | None) -> None:
        """When the client goes away, so does the server."""
        super().connection_lost(exc)
        if self._opening is not None:
            self._opening.cancel()
        if self._server is not None:
            self._server.let_go()
            self._server = None

    def break_off(self) -> None:
        """End both sides at once."""
        self.reset()
        if self._server is not None:
            self._server.reset()

    def _go_on(self) -> None:
        if self._request is None:
            self._read_head()
        elif self._server is not None:
            self._send_body(self._server)
        elif len(self._buffer) > _BUFFER_LIMIT:
            self.transport.pause_reading()

    def _read_head(self) -> None:
        end = self._buffer.find(HEAD_END)
        if end < 0:
            if len(self._buffer) > HEAD_LIMIT:
                self._refuse_head("the head is too long")
            return
        head = bytes(self._buffer[: end + len(HEAD_END)])
        del self._buffer[: len(head)]
        try:
            request = read_request(head)
        except MalformedHead as error:
            self._refuse_head(str(error))
            return
        self._request, self._body_left = request, request.body
        if (server := self._gate.idle(request)) is not None:
            self._use(server, request)
        else:
            self._open(request)

    def _refuse_head(self, why: str) -> None:
        self.transport.write(own_answer("400 Bad Request", "malformed", why))
        self.transport.close()

    def _open(self, request: Request) -> None:
        self._opening = asyncio.get_running_loop().create_task(
            self._connect(request), name="egress.connect"
        )

    async def _connect(self, request: Request) -> None:
        try:
            server = await self._gate.connect(request)
        except Refused as refused:
            self.refuse(refused)
            return
        finally:
            self._opening = None
        if self.transport.is_closing():
            server.transport.abort()
        elif not self._gate.is_open():
            server.reset()
            self.reset()
        else:
            self._use(server, request)
            self.transport.resume_reading()

    def _use(self, server: "Server", request: Request) -> None:
        self._server = self.other = server
        server.begin(self, request)
        if request.tunnel:
            self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n" + server.early)
            server.transport.write(bytes(self._buffer))
            self._buffer.clear()
            if self._has_ended:
                server.end()
        else:
            self._send_body(server)

    def _send_body(self, server: "Server") -> None:
        left = self._body_left
        part = bytes(self._buffer if left is None else self._buffer[:left])
        if part:
            del self._buffer[: len(part)]
            self._body_left = None if left is None else left - len(part)
            server.transport.write(part)
        elif len(self._buffer) > _BUFFER_LIMIT:
            self.transport.pause_reading()  # the next request can wait

    # What the server tells

    def take(self, data: bytes) -> None:
        """Pass a part of the answer on."""
        self.transport.write(data)

    def exchange_over(self, *, keep: bool) -> None:
        """The whole answer has been passed on; begin the next exchange, or end."""
        self._server = self.other = None
        if not (keep and self.has_asked_all):
            self.transport.close()
            return
        self._request = None
        self.transport.resume_reading()
        if self._buffer:
            self._read_head()

    def ask_again(self) -> None:
        """A kept connection turned out to have ended before the request: open a new one."""
        self._server = self.other = None
        assert self._request is not None  # noqa: S101 - an exchange is on
        if not self.transport.is_closing():
            self._open(self._request)

    def refuse(self, refused: Refused) -> None:
        """Answer the request ourselves."""
        self._server = self.other = None
        assert self._request is not None  # noqa: S101 - an exchange is on
        if self.transport.is_closing():
            return
        self._gate.tell(self._request, refused)
        mark = refused.proxy or ("unreachable" if refused.unreachable else "denied")
        status = "502 Bad Gateway" if refused.unreachable else "403 Forbidden"
        self.transport.write(own_answer(status, mark, refused.reason))
        self.transport.close()


class Server(Peer):
    """A connection to a server, or to a proxy, at an address that the policy has seen."""

    def __init__(self, gate: Gate, address: str, upstream: Upstream | None = None) -> None:
        super().__init__(gate)
        self._gate = gate
        self.address = address
        self.upstream = upstream
        """The proxy that it is a connection to."""
        self.early = b""
        """What came of a tunnel with the proxy's answer."""
        self.tunnel = False
        self.place: tuple[str, int] = "", 0
        """Host and port, as the request said."""
        self._client: Client | None = None
        self._request: Request | None = None
        self._response: Response | None = None
        """The head of the answer, once there; the body is on its way."""
        self._buffer = bytearray()
        self._left: int | None = 0
        self._interim = 0
        self._used = False
        self._ended = False

    def begin(self, client: Client, request: Request) -> None:
        """Serve a client: send the head of its request, or be its tunnel."""
        self._client = self.other = client
        self._request, self._response, self._interim = request, None, 0
        self.place = request.host, request.port
        self.tunnel = request.tunnel
        if not request.tunnel:
            self.transport.write(self._head_of(request))

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        client = self._client
        if client is None:
            self.transport.abort()  # it was not asked
        elif not self._gate.is_open():
            client.break_off()
        elif self.tunnel:
            client.take(data)
        elif self._response is None:
            self._buffer += data
            self._read_head(client)
        else:
            self._pass_on(client, data)

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`."""
        if not self.tunnel or self._client is None or not self.transport.can_write_eof():
            return False  # under TLS, as to a proxy, nothing ends by half
        self._ended = True
        if self._client.transport.can_write_eof():
            self._client.transport.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """End, or mend, the exchange that was on."""
        super().connection_lost(exc)
        client, self._client = self._client, None
        if client is None:
            return
        if self.tunnel or self._response is not None:
            self._break_answer(client, exc)
        elif self._used and not self._buffer:
            client.ask_again()
        else:
            self._broke_off(client, str(exc or "no answer"))

    def end(self) -> bool:
        """The client's half of a tunnel has ended; tell whether the other half goes on."""
        if self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()
        return not self._ended

    def let_go(self) -> None:
        """The client has left in the middle of an exchange."""
        self._client = self.other = None
        if self.tunnel:
            self.transport.close()  # what it has said still arrives
        else:
            self.transport.abort()

    def _break_answer(self, client: Client, exc: Exception | None) -> None:
        if exc is not None:
            client.reset()
        else:
            client.exchange_over(keep=False)

    @property
    def _asks_a_proxy(self) -> bool:
        return self.upstream is not None and self.upstream.scheme != "socks5" and not self.tunnel

    def _head_of(self, request: Request) -> bytes:
        if self.upstream is None or not self._asks_a_proxy:
            return request.forward
        return request.through(self.upstream.authorization)

    def _broke_off(self, client: Client, why: str) -> None:
        assert self._request is not None  # noqa: S101 - an exchange is on
        self._refuse(client, Refused(f"{self._request.host} broke off: {why}", unreachable=True))

    def _refuse(self, client: Client, refused: Refused) -> None:
        self._client = None
        self.transport.abort()
        client.refuse(refused)

    def _read_head(self, client: Client) -> None:
        while self._response is None:
            end = self._buffer.find(HEAD_END)
            if end < 0:
                if len(self._buffer) > HEAD_LIMIT:
                    self._broke_off(client, "the head is too long")
                return
            head = bytes(self._buffer[: end + len(HEAD_END)])
            del self._buffer[: len(head)]
            try:
                response = self._understood(head)
            except MalformedHead as error:
                self._broke_off(client, str(error))
                return
            if response.status == 407 and self.upstream is not None and self._asks_a_proxy:
                # Chromium must not take it for ours, and ask a person.
                self._refuse(client, auth_refused(self.upstream))
                return
            client.take(response.head)
            if not response.interim:
                self._response, self._left = response, response.body
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._pass_on(client, rest)

    def _understood(self, head: bytes) -> Response:
        assert self._request is not None  # noqa: S101 - an exchange is on
        response = read_response(head, to=self._request)
        self._interim += response.interim
        if self._interim > _INTERIM_LIMIT:
            raise MalformedHead("it has sent too many interim answers")
        return response

    def _pass_on(self, client: Client, data: bytes) -> None:
        assert self._response is not None  # noqa: S101 - its head has been read
        if self._left is None:
            client.take(data)
            return
        part = data[: self._left]
        if part:
            self._left -= len(part)
            client.take(part)
        if self._left == 0:
            self._whole(client, self._response, clean=len(part) == len(data))

    def _whole(self, client: Client, response: Response, *, clean: bool) -> None:
        """The answer is whole. More than that makes the connection one not to be trusted."""
        self._client = self.other = None
        self._used = True
        if response.server_stays and clean and client.has_asked_all:
            self.transport.resume_reading()
            self._gate.keep(self)
        else:
            self.transport.abort()
        client.exchange_over(keep=response.client_stays)
