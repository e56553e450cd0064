"""The self-test of the farm: an agent opens a real page."""

import secrets
from collections.abc import Collection

from farm.clock import Clock
from farm.core.eligibility import is_present
from farm.core.model import Client, ClientType, Namespace, is_link_of
from farm.errors import ClientAbsentError
from farm.manager.commands import command
from farm.manager.delivery import AppNode
from farm.protocol import messages as wire
from farm.stores.ports.contexts import ContextRegistry


class AgentProbe:
    """Asks one present agent to open a page; called, says why the farm can't work, or None.

    Agents of the namespaces `not_of` are passed over.
    """

    def __init__(
        self,
        registry: ContextRegistry,
        app_node: AppNode,
        clock: Clock,
        *,
        not_of: Collection[Namespace] = (),
        coordinator: str | None = None,
    ) -> None:
        self._registry = registry
        self._app_node = app_node
        self._clock = clock
        self._not_of = frozenset(not_of)
        self._coordinator = coordinator
        """Only agents that are linked to this one count; None is all."""

    async def __call__(self) -> str | None:
        """Test. Sets no clock of its own: the caller bounds it.

        Raises:
            StoreUnavailableError: If the registry can't be read.
        """
        snapshot = await self._registry.snapshot(now=self._clock())
        now, window_s = snapshot.taken_at, snapshot.presence_window_s
        present = [
            client
            for client in snapshot.clients
            if is_present(client, now=now, window_s=window_s)
            and self._is_ours(client)
            and self._not_of.isdisjoint(client.namespaces)
            and not client.draining
        ]
        if not present:
            return "no agent is connected"
        if all(_is_busy(client) for client in present):
            return None
        # A browser that shows a page says more than a flow that reads one.
        return await self._ask(
            min(present, key=lambda c: (c.client_type is not ClientType.BROWSER, c.used_slots()))
        )

    def _is_ours(self, client: Client) -> bool:
        link = client.link
        return self._coordinator is None or (
            link is not None and is_link_of(self._coordinator, link)
        )

    async def _ask(self, client: Client) -> str | None:
        order = command(f"probe-{secrets.token_hex(8)}", wire.Probe())
        here = self._coordinator is not None
        try:
            sent = await self._app_node.send(client.client_id, order, here=here)
            try:
                answer = await sent.answer
            finally:
                self._app_node.forget(sent)
        except ClientAbsentError as error:
            return error.detail
        if isinstance(answer, wire.Ack):
            return f"agent {client.client_id} refused: {answer.refused}"
        return answer.failure.detail if answer.failure is not None else None


def _is_busy(client: Client) -> bool:
    limit = client.capacity.max_concurrency
    return limit is not None and client.used_slots() >= limit
