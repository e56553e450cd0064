"""`FarmClient`: what a farm's HTTP API offers, as Python calls."""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from farm.protocol.evidence import DeliveryView, EvidenceView
from farm.protocol.identities import IdentityList, IdentityView
from farm.protocol.resources import (
    LiveLinkCreated,
    NamespaceList,
    NamespaceView,
    PlacementKind,
    PointView,
    ReadyView,
    Scope,
    TokenCreated,
    TokenList,
    TokenView,
    VerifyEnd,
    VerifyLine,
)
from farm.sdk.errors import FarmUnreachableError
from farm.sdk.fleet import FleetCalls
from farm.sdk.jobs import JobCalls
from farm.sdk.pools import PoolCalls
from farm.sdk.streams import lines
from farm.sdk.transport import Transport, chunks, parsed, path_of


class FarmClient(JobCalls, FleetCalls, PoolCalls):
    """A farm, by its URL and a token of scope admin. Use it as an async context manager.

    Every call raises `FarmApiError` where the farm answers with a problem and
    `FarmUnreachableError` where it does not answer.
    """

    def __init__(self, url: str, token: str | None, *, reconnect_s: float = 60.0) -> None:
        self._farm = Transport(url, token)
        self._reconnect_s = reconnect_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The farm's address."""
        return self._farm.url

    async def close(self) -> None:
        """Close the connections; the client may be used again afterwards."""
        await self._farm.close()

    async def live_link(
        self,
        context: str | None = None,
        *,
        mode: Literal["view", "control"] = "view",
        name: str = "viewer",
        lasts_s: float | None = None,
    ) -> LiveLinkCreated:
        """Make a link by which a browser watches a tab (the `live` of a worker), or all tabs.

        Its `path` belongs behind the farm's address, and is secret while it opens anything.
        """
        wanted = {"context": context, "mode": mode, "name": name, "lasts_s": lasts_s}
        body = json.dumps(wanted).encode()
        return await self._farm.call(LiveLinkCreated, "POST", "/v1/live-links", data=body)

    async def command(self, command_id: str) -> EvidenceView:
        """Return what is known of one command that was sent to an agent."""
        return await self._farm.call(EvidenceView, "GET", path_of("commands", command_id))

    async def delivery(self) -> DeliveryView:
        """Return how the delivery of commands fares, by agent."""
        return await self._farm.call(DeliveryView, "GET", "/v1/delivery")

    async def identities(self) -> tuple[IdentityView, ...]:
        """Return the saved identities, by name, without what is secret of them."""
        return (await self._farm.call(IdentityList, "GET", "/v1/identities")).items

    async def identity(self, name: str) -> IdentityView:
        """Return one saved identity, without what is secret of it."""
        return await self._farm.call(IdentityView, "GET", path_of("identities", name))

    async def put_identity(self, name: str, content: Mapping[str, Any]) -> IdentityView:
        """Save an identity, or change it: `options`, `proxy`, `state` (as Playwright writes it).

        A key that is left out stays as it is; None takes it away.
        """
        data = json.dumps(content).encode()
        return await self._farm.call(IdentityView, "PUT", path_of("identities", name), data=data)

    async def delete_identity(self, name: str) -> None:
        """Forget a saved identity with all it remembers."""
        async with self._farm.open("DELETE", path_of("identities", name)):
            pass

    async def namespaces(self) -> list[NamespaceView]:
        """Return the namespaces: all of them to an operator, else the own one."""
        found = await self._farm.call(NamespaceList, "GET", "/v1/namespaces")
        return list(found.items)

    async def create_namespace(self, name: str) -> NamespaceView:
        """Make a namespace, or return the one that is there."""
        body = json.dumps({"name": name}).encode()
        return await self._farm.call(NamespaceView, "POST", "/v1/namespaces", data=body)

    async def place_namespace(
        self, name: str, placement: PlacementKind, labels: Iterable[str] = ()
    ) -> NamespaceView:
        """Say where the work of a namespace is done."""
        body = json.dumps({"placement": placement, "labels": list(labels)}).encode()
        path = path_of("namespaces", name, "placement")
        return await self._farm.call(NamespaceView, "PUT", path, data=body)

    async def create_token(
        self,
        scope: Scope,
        name: str = "",
        *,
        namespaces: Sequence[str] | None = None,
        task_queues: Sequence[str] | None = None,
        nodes: Sequence[str] | None = None,
        metadata: Mapping[str, Sequence[Any] | None] | None = None,
    ) -> TokenCreated:
        """Make a token; this answer is the only one that has its secret.

        What is said beside its scope bounds it: see `TokenCreate`.
        """
        bounds = {
            "namespaces": namespaces,
            "task_queues": task_queues,
            "nodes": nodes,
            "metadata": metadata,
        }
        said = {key: bound for key, bound in bounds.items() if bound is not None}
        body = json.dumps({"scope": scope, "name": name, **said}).encode()
        return await self._farm.call(TokenCreated, "POST", "/v1/tokens", data=body)

    async def tokens(self) -> list[TokenView]:
        """Return the tokens that are not revoked: all to an operator, else those of the own one."""
        found = await self._farm.call(TokenList, "GET", "/v1/tokens")
        return list(found.items)

    async def revoke_token(self, token_id: str) -> None:
        """Let a token open nothing any more."""
        async with self._farm.open("DELETE", path_of("tokens", token_id)):
            pass

    async def ready(self) -> ReadyView:
        """Tell whether the farm's self-test passes; a farm that is not ready is no error."""
        async with self._farm.open("GET", "/readyz", accept=(503,)) as response:
            return await parsed(ReadyView, response)

    async def verify(self) -> AsyncGenerator[PointView | VerifyEnd, None]:
        """Have the farm prove what its pool promises; yield each point as it is settled.

        The last one yielded is the end. To leave before that ends the verification.

        Raises:
            FarmApiError: With status 409 while another verification runs.
            FarmUnreachableError: If the farm breaks off before the end.
        """
        async with self._farm.open("POST", "/v1/verify") as response:
            async for line in lines(chunks(response)):
                told = VerifyLine.model_validate_json(line).root
                yield told
                if isinstance(told, VerifyEnd):
                    return
        raise FarmUnreachableError(f"{self._farm.url} broke off before the end of the verification")
