"""Where the points are proven: two managers over the farm's own registry, and probe clients."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farm.clock import Clock
from farm.core.model import Capacity, Client, ClientId, Namespace, Snapshot
from farm.core.placement import BrowserPlacement
from farm.errors import ClientAbsentError
from farm.jobs.service import JobService
from farm.manager.acquisition import ANY
from farm.manager.delivery import AppNode
from farm.manager.handle import ContextHandle
from farm.manager.manager import Acquired, NotAcquired, WorkerContextManager
from farm.manager.strategies import Strategy
from farm.protocol import messages as wire
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.registries import Registry
from farm.verify.client import Dial, ProbeClient, Script
from farm.verify.outcomes import UnprovenError, demand

VERIFY = Namespace("farm-verify")
"""The namespace of a verification; nothing else is ever in it."""
_PATIENCE_S = 15.0
"""So long what should come is waited for."""
_LOOK_S = 0.1
A, B = "farm-verify-a", "farm-verify-b"
"""The names of the two managers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """What a verification uses of the farm that runs."""

    registry: Registry
    app_node: AppNode
    ledger: Ledger
    jobs: JobService
    clock: Clock
    agent_is_gone: Callable[[ClientId, str], Awaitable[None]]
    """Forgets an agent and all it holds, and gives its attempts up."""


class Stage:
    """What every point is given. `run` is its life."""

    def __init__(self, farm: Farm, dial: Dial) -> None:
        self.farm = farm
        self.a, self.b = self.manager(A), self.manager(B)
        self._dial = dial
        self._run_id = secrets.token_hex(8)
        self._probes: list[ProbeClient] = []
        self._lives: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None

    def manager(self, name: str, *, owner: str = ANY) -> WorkerContextManager:
        """Make a manager over the farm's registries."""
        farm = self.farm
        return WorkerContextManager(
            context_registry=farm.registry,
            connection_registry=farm.registry,
            browser_window_registry=farm.registry,
            app_node=farm.app_node,
            clock=farm.clock,
            name=name,
            provisioning_owner=owner,
            provision_timeout_s=_PATIENCE_S,
        )

    def named(self, manager: WorkerContextManager) -> str:
        """Return the name of one of the two managers."""
        return A if manager is self.a else B

    # Probe clients

    @property
    def client_ids(self) -> tuple[ClientId, ...]:
        """The probe clients there have been."""
        return tuple(probe.client_id for probe in self._probes)

    async def run(self, body: Callable[[], Awaitable[None]]) -> None:
        """Do `body`, with the links of probe clients beside it; they end with it."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await body()
                for life in list(self._lives):
                    life.cancel()
        finally:
            self._group = None

    async def probe(
        self,
        point: int,
        name: str,
        *,
        tabs: int = 0,
        capacity: Capacity | None = None,
        metadata: Mapping[str, Any] | None = None,
        closes: bool = False,
    ) -> ProbeClient:
        """Let a probe client in, and return it when the farm has its report.

        Without words on its capacity it has as many slots and windows as tabs.
        """
        probe = ProbeClient(
            ClientId(f"farm-verify.{point}.{name}"),
            VERIFY,
            Script(
                metadata={**self.required(point), "probe": name, **(metadata or {})},
                capacity=capacity or Capacity(max_concurrency=tabs, max_windows=tabs),
                tabs=tabs,
                closes=closes,
            ),
        )
        self._probes.append(probe)
        await self.dial(probe)
        return probe

    async def dial(self, probe: ProbeClient) -> None:
        """Let a probe client dial, and return when the farm has its report."""
        if self._group is None:
            raise RuntimeError("probe clients live inside `run`")
        life = self._group.create_task(probe.live(self._dial), name=str(probe.client_id))
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

        def is_in(client: Client | None) -> bool:
            if probe.trouble is not None:
                raise UnprovenError(f"{probe.client_id} was not let in: {probe.trouble}")
            welcome = probe.welcome
            return (
                client is not None
                and client.link is not None
                and client.excluded is None
                and welcome is not None
                and client.epoch == welcome.epoch_number
                and len(client.contexts) >= probe.script.tabs
            )

        await self.until(probe, is_in, "was not let in, and seen with its tabs,")

    def required(self, point: int) -> Mapping[str, Any]:
        """Return what only the probe clients of a point have."""
        return {"farm-verify": self._run_id, "point": point}

    def only(self, probe: ProbeClient) -> Mapping[str, Any]:
        """Return what only this probe client has."""
        return {key: probe.script.metadata[key] for key in ("farm-verify", "point", "probe")}

    # What the farm knows

    async def snapshot(self) -> Snapshot:
        """Read the farm's registry."""
        return await self.farm.registry.snapshot(now=self.farm.clock())

    async def client(self, probe: ProbeClient) -> Client | None:
        """Return a probe client as the farm knows it."""
        return _client(await self.snapshot(), probe)

    async def known(self, probe: ProbeClient) -> Client:
        """Return the same. Raises UnprovenError where the farm does not know it any more."""
        client = await self.client(probe)
        if client is None:
            raise UnprovenError(f"the farm does not know {probe.client_id} any more")
        return client

    async def until(
        self,
        probe: ProbeClient,
        condition: Callable[[Client | None], bool],
        otherwise: str,
        *,
        error: type[Exception] = UnprovenError,
    ) -> None:
        """Wait until what the farm knows of a probe client is so.

        Raises:
            UnprovenError: If it is not in time; or `error` in its place.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_S
        registry = self.farm.registry
        while True:
            generation = registry.generation()
            if condition(await self.client(probe)):
                return
            if loop.time() >= deadline:
                raise error(f"{probe.client_id} {otherwise} within {_PATIENCE_S:g} s")
            try:
                async with asyncio.timeout(_LOOK_S):
                    await registry.changed_since(generation)
            except TimeoutError:
                continue

    async def idle(self, probe: ProbeClient, tabs: int) -> None:
        """Wait until so many of its tabs could be lent."""
        await self.until(
            probe,
            lambda c: (
                c is not None
                and sum(x.lendable and k not in c.assignments for k, x in c.contexts.items())
                >= tabs
            ),
            f"has not had {tabs} idle again",
        )

    # Lending

    async def ask(
        self,
        manager: WorkerContextManager,
        requirements: Mapping[str, Any],
        task: str,
        *,
        strategy: Strategy | None = None,
        placement: BrowserPlacement | None = None,
        auto_provision: bool = False,
        timeout_ms: float | None = None,
    ) -> Acquired | NotAcquired:
        """Ask for a context of the probe clients that have the requirements."""
        return await manager.try_acquire(
            VERIFY,
            f"farm-verify:{task}",
            client_type="browser",
            requirements=requirements,
            strategy=strategy,
            placement=placement,
            auto_provision=auto_provision,
            timeout_ms=timeout_ms,
        )

    async def take(
        self,
        manager: WorkerContextManager,
        probe: ProbeClient,
        task: str,
        *,
        timeout_ms: float | None = None,
        auto_provision: bool = False,
        placement: BrowserPlacement | None = None,
    ) -> ContextHandle:
        """Hold a context of a probe client, where there is nothing against it.

        Raises:
            RefutedError: If another's is lent.
            UnprovenError: If none is.
        """
        outcome = await self.ask(
            manager,
            self.only(probe),
            task,
            timeout_ms=timeout_ms,
            auto_provision=auto_provision,
            placement=placement,
        )
        if isinstance(outcome, NotAcquired):
            why = outcome.verdict.clients.get(probe.client_id, "it is not there")
            raise UnprovenError(f"nothing of {probe.client_id} was lent for {task}: {why}")
        lent = outcome.handle.assignment.client_id
        demand(lent == probe.client_id, f"{task} asked for {probe.client_id} and was lent {lent}")
        return outcome.handle

    async def holds(self, handle: ContextHandle) -> bool:
        """Tell whether an assignment is the one that holds."""
        held = handle.assignment
        return await self.farm.registry.holds(held.client_id, held.context_id, held.token)

    async def command(self, handle: ContextHandle) -> None:
        """Have a context obey a command.

        Raises:
            StaleAssignmentError: If the handle's assignment has ended; nothing was sent.
            UnprovenError: If it does not answer.
        """
        sent = await handle.probe()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await handle.wait(sent)
        except (TimeoutError, ClientAbsentError):
            raise UnprovenError(f"{sent.client_id} did not answer a command") from None
        if isinstance(answer, wire.Ack):
            raise UnprovenError(f"{sent.client_id} refused a command: {answer.refused}")


def _client(snapshot: Snapshot, probe: ProbeClient) -> Client | None:
    return next((c for c in snapshot.clients if c.client_id == probe.client_id), None)


def held(client: Client) -> str:
    """Say what of a client is held, for evidence."""
    tokens = sorted(f"{context_id} by {a.task_id}" for context_id, a in client.assignments.items())
    return ", ".join(tokens) or "nothing"
