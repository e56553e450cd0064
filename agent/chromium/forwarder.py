"""The egress proxy of one window: Chromium's only way out, on a loopback port of its own.

It resolves names itself, asks the policy about each address, and connects to an address the
policy has seen: what a name resolves to later makes no difference. Where there is a proxy further
out it tells that one who we are, so that Chromium need not know. Plain HTTP is judged request by
request; everything else (https, WebSockets) is a tunnel.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self

from agent.chromium.connections import Client, Server
from agent.chromium.http_heads import Request
from agent.chromium.peers import Peer
from agent.chromium.proxying import connect_through
from agent.egress.policy import Policy
from agent.egress.resolving import Refused, Resolver, permitted, system_resolver
from agent.egress.upstream import Upstream, refuses, unreachable
from agent.ports import Denied, ProxyFault

_CONNECT_TIMEOUT_S = 10.0
_IDLE_S = 15.0
"""A kept connection older than this is not used again: its server is about to close it."""
_MAX_IDLE = 16


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
        self._upstream: Upstream | None = None
        self._server: asyncio.Server | None = None
        self._idle: list[tuple[float, Server]] = []
        self.opened: set[Peer] = set()

    @property
    def address(self) -> str:
        """The proxy's URL, as Chromium is given it."""
        if self._server is None:
            raise RuntimeError("the forwarder is not listening")
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def start(self) -> Self:
        """Begin to listen, on a free loopback port, with a policy that opens only the internet."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Client(self), host="127.0.0.1", port=0)
        return self

    def apply(self, policy: Policy, upstream: Upstream | None = None) -> None:
        """Change the policy and the proxy further out, and open what was shut.

        Connections under another policy, or by another way, are cut.
        """
        self._shut = False
        if (policy, upstream) != (self._policy, self._upstream):
            self._policy, self._upstream = policy, upstream
            self._cut()

    def shut(self) -> None:
        """Let nothing pass any more, from this moment, until a policy is applied again."""
        self._shut = True
        self._cut()

    async def close(self) -> None:
        """Stop listening and cut every connection. Does nothing the second time."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self._cut()
        await server.wait_closed()

    def _cut(self) -> None:
        self._idle.clear()
        for peer in tuple(self.opened):
            peer.reset()

    # agent.chromium.connections.Gate

    def is_open(self) -> bool:
        """See `Gate.is_open`."""
        return not self._shut and self._may_act()

    def idle(self, request: Request) -> Server | None:
        """See `Gate.idle`; only for what may be sent twice, as the server may just have left."""
        if not request.repeatable or self._policy.refuses_name(request.host) is not None:
            return None
        now = asyncio.get_running_loop().time()
        for number, (since, server) in enumerate(self._idle):
            if server.place != (request.host, request.port):
                continue
            del self._idle[number]
            if now - since > _IDLE_S or server.transport.is_closing():
                server.transport.abort()
            elif self._refuses(request, server) is None:
                return server
            return None
        return None

    def _refuses(self, request: Request, server: Server) -> str | None:
        if server.upstream is not None:
            return refuses(self._policy, request.host, request.port)
        return self._policy.refuses(request.host, request.port, server.address)

    def keep(self, server: Server) -> None:
        """See `Gate.keep`; of too many the one that has waited longest goes."""
        self._idle.append((asyncio.get_running_loop().time(), server))
        if len(self._idle) > _MAX_IDLE:
            self._idle.pop(0)[1].transport.abort()

    def tell(self, request: Request, refused: Refused) -> None:
        """See `Gate.tell`."""
        self._tell(
            Denied(
                url=request.url,
                reason=refused.reason,
                unreachable=refused.unreachable,
                proxy=refused.proxy,
            )
        )

    async def connect(self, request: Request) -> Server:
        """See `Gate.connect`: by the proxy further out, where there is one that is not passed."""
        upstream = self._upstream
        if upstream is None or upstream.is_passed(request.host, request.port):
            return await self._connect_directly(request)
        return await self._connect_by(upstream, request)

    async def _connect_by(self, upstream: Upstream, request: Request) -> Server:
        if (reason := refuses(self._policy, request.host, request.port)) is not None:
            raise Refused(reason)
        problem: Refused | None = None
        for address in await self._addresses_of(upstream):
            try:
                return await connect_through(upstream, address, request, self)
            except Refused as refused:
                problem = refused
                if refused.proxy is not ProxyFault.UNREACHABLE:
                    break
        raise problem or unreachable(upstream, "it has no address")

    async def _addresses_of(self, upstream: Upstream) -> Sequence[str]:
        try:
            return await self._permitted(upstream.host, upstream.port)
        except Refused as refused:
            if refused.unreachable:
                raise unreachable(upstream, refused.reason) from refused
            raise Refused(f"the proxy may not be used: {refused.reason}") from refused

    async def _connect_directly(self, request: Request) -> Server:
        """Connect to the first address that is allowed and answers."""
        loop = asyncio.get_running_loop()
        problem: Exception | None = None
        for address in await self._permitted(request.host, request.port):
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    _, server = await loop.create_connection(
                        partial(Server, self, address), address, request.port
                    )
                    return server
            except (OSError, TimeoutError) as error:
                problem = error
        reason = str(problem) or "no answer in time"
        raise Refused(f"cannot connect to {request.host}: {reason}", unreachable=True)

    def _permitted(self, host: str, port: int) -> Awaitable[Sequence[str]]:
        return permitted(host, port, resolver=self._resolver, policy=lambda: self._policy)
