"""What runs: a coordinator as its owner sees it, and the lives of its dispatcher."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from farm.api.agent_links import AgentLinks
from farm.api.auth import TokenBook
from farm.api.readiness import Readiness
from farm.core.model import DEFAULT_NAMESPACE, ClientId
from farm.errors import StoreUnavailableError
from farm.jobs.dispatcher import JobDispatcher
from farm.jobs.live import LiveAttempts
from farm.jobs.sharing import Sharing
from farm.main.jobs import Jobs
from farm.main.stores import Stores
from farm.manager.agent_news import AgentNews
from farm.manager.delivery import AppNode
from farm.manager.disconnecting import Disconnects, LeftBehind
from farm.manager.loops import every
from farm.manager.probing import Prober
from farm.protocol.messages import Drain
from farm.stores.ports.sharing import SharedLedger

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_STORE_PAUSE_S = 0.5
_SWEEP_S = 1.0
_SWEEPS_PER_WINDOW = 40
"""So that what the rule says of windows is not late by much."""


class Coordinator:
    """A coordinator that runs: where it is, and what its owner may ask of it."""

    def __init__(
        self,
        *,
        url: str,
        admin_token: str,
        first_start: bool,
        tokens: TokenBook,
        dispatcher: JobDispatcher,
        live: LiveAttempts,
        app_node: AppNode,
        name: str | None = None,
    ) -> None:
        self.url = url
        self.name = name
        """Among those it shares a Redis with; None where it is alone."""
        self.admin_token = admin_token
        self.first_start = first_start
        self._tokens = tokens
        self._dispatcher = dispatcher
        self._live = live
        self._app_node = app_node
        self._minted: list[str] = []

    async def mint_agent_token(self, name: str) -> str:
        """Make a token of scope agent that ends with this coordinator; return its secret."""
        record, secret = await self._tokens.add(
            scope="agent", namespace=DEFAULT_NAMESPACE, name=name
        )
        self._minted.append(record.token_id)
        return secret

    async def revoke_minted(self) -> None:
        """Let the tokens it has minted open nothing any more."""
        for token_id in self._minted:
            await self._tokens.revoke(token_id)

    async def agent_ended(self, client_id: str) -> None:
        """Take note that the process of an agent no longer exists, and its browser with it."""
        try:
            await self._dispatcher.agents.is_gone(ClientId(client_id), "its process has ended")
        except StoreUnavailableError as error:
            # It is given up when it has been silent for long.
            log.warning("agent.not_given_up", client_id=client_id, reason=error.detail)

    async def drain(self, deadline_s: float) -> None:
        """Start nothing more, and wait for what runs, at most so long."""
        self._dispatcher.close_intake()
        await self._app_node.tell_all(Drain(deadline_s=deadline_s))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await self._live.wait_empty()


def look_after(
    jobs: Jobs, sharing: Sharing | None
) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what keeps up with agents that move between coordinators, where there are others."""
    if jobs.owning is not None:
        return jobs.owning.look
    return None if sharing is None else sharing.lose_what_moved


def correspond(
    group: asyncio.TaskGroup,
    stores: Stores,
    app_node: AppNode,
    jobs: Jobs,
    disconnects: Disconnects,
) -> list[asyncio.Task[None]]:
    """Begin to read what other coordinators write, and to write to them."""
    tasks = []
    if stores.relay is not None:
        stores.relay.left_behind = LeftBehind(
            stores.registry, disconnects, AgentNews(stores.events), stores.clock
        )
        tasks.append(group.create_task(app_node.run(), name="relay"))
    if jobs.neighbours is not None:
        tasks.append(group.create_task(jobs.neighbours.run(), name="neighbours"))
    return tasks


async def lives(
    stores: Stores,
    dispatcher: JobDispatcher,
    sharing: Sharing | None,
    links: AgentLinks,
    readiness: Readiness,
    shared: SharedLedger | None = None,
) -> None:
    """Dispatch; when the registry has lost its memory begin anew, as after a restart.

    So, too, when this coordinator's lease of a ledger that others share has lapsed. The agents dial
    again, and say what they have and what they still run.
    """
    while True:
        if sharing is not None:
            sharing.begin()
        async with asyncio.TaskGroup() as group:
            life = group.create_task(dispatcher.run(), name="dispatch")
            why = await _over(stores, readiness, shared)
            life.cancel()
        log.error("farm.begins_again", reason=why)
        readiness.failed(why)
        await links.close_all()
        await _begin_again(stores, shared)


async def _over(stores: Stores, readiness: Readiness, shared: SharedLedger | None) -> str:
    """Return why a life is over, when it is."""
    async with asyncio.TaskGroup() as group:
        lost = group.create_task(stores.memory.lost(readiness.failed), name="registry lost")
        ends = {lost: "the registry has lost its memory"}
        if shared is not None:
            lapsed = group.create_task(shared.lapsed(), name="renew lease")
            ends[lapsed] = "the lease of the ledger has lapsed"
        over, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
    return next(why for task, why in ends.items() if task in over)


async def expiring(dispatcher: JobDispatcher, prober: Prober, window_s: float) -> None:
    """Give up agents that are gone, and then end the links of those that are not registered."""

    async def expire() -> None:
        await dispatcher.agents.sweep_gone()
        await prober.end_unregistered()

    await every(min(_SWEEP_S, window_s / _SWEEPS_PER_WINDOW), expire, name="expire")


async def _begin_again(stores: Stores, shared: SharedLedger | None) -> None:
    while True:
        try:
            await stores.memory.begin_again()
            if shared is not None:
                await shared.begin_again()
        except StoreUnavailableError as error:
            log.warning("store.unavailable", reason=error.detail)
            await asyncio.sleep(_STORE_PAUSE_S)
        else:
            return
