"""Acquire: read a snapshot, ask the core, commit to the store (P3-P7).

`docs/reference-coverage.md` says which demand is held where.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from farm.clock import Clock, system_clock
from farm.core.decide import Verdict
from farm.core.eligibility import Reason
from farm.core.model import Assignment, ClientId, LinkId, Namespace, Request, Snapshot
from farm.core.placement import BrowserPlacement
from farm.errors import CollaboratorMissingError
from farm.manager.acquisition import ANY, Acquisition, Owner, Wish
from farm.manager.delivery import AppNode
from farm.manager.handle import ContextHandle, release_context
from farm.manager.misses import Miss, Misses
from farm.manager.outcomes import Acquired, Creation, NotAcquired
from farm.manager.placements import Placements
from farm.manager.provisioning import Provisioner
from farm.manager.queues import DeclaredQueues
from farm.manager.slots import WorkerSlots
from farm.manager.strategies import Strategy
from farm.manager.sweeping import Sweeper, release_expired
from farm.manager.terms import Timing, checked_wait, request_of
from farm.manager.unserved import Unserved, UnservedTask
from farm.manager.waiting import Polling, look_until_had
from farm.protocol.plan import PLAIN, BrowserOptions
from farm.stores.ports.connections import ConnectionRegistry, PresenceReader
from farm.stores.ports.contexts import AssignmentRegistry, ClientRelease
from farm.stores.ports.deployments import QueueCatalogue
from farm.stores.ports.placements import NoPlacements, PlacementReader
from farm.stores.ports.registries import Wakes
from farm.stores.ports.reservations import BrowserWindowRegistry, PlacedReservations

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class WorkerContextManager:
    """Lends contexts to tasks. Owns no state; starts and attaches nothing by being constructed.

    Args:
        context_registry: What there is, and who holds it.
        connection_registry: Who is there. Where it is one store with the context registry, the
            snapshot of that says it already; another is read at each acquisition.
        app_node: Carries commands. Without it handles can't send and nothing is created.
        browser_window_registry: Counts windows and tabs. Without it none is created.
        dispatch_strategy: Chooses among the idle candidates; None takes any.
        task_timeout_ms: Assignments that were not renewed for so long are released; 0 for never.
        task_timeout_check_interval_s: How often `start` looks for those.
        provision_timeout_s: How long a creation may take until it is there to be used.
        provisioning_owner: The name of the one manager that creates, or `any`; or what says so
            for each namespace and client.
        placements: On which nodes the work of each namespace runs; None is on any.
        name: This manager's name.
        queues: The task queues there are: who names another is refused. None: any will do.
        clock: The time, in seconds since the Unix epoch.
        new_id: Gives the ids of commands.

    Raises:
        CollaboratorMissingError: If a registry that is required is None.
        ValueError: If the timeout is negative or not finite; or, while it is on, the interval is
            zero, negative or not finite.
    """

    def __init__(
        self,
        *,
        context_registry: AssignmentRegistry,
        connection_registry: ConnectionRegistry | PresenceReader,
        app_node: AppNode | None = None,
        browser_window_registry: BrowserWindowRegistry | None = None,
        dispatch_strategy: Strategy | None = None,
        task_timeout_ms: float = 300_000,
        task_timeout_check_interval_s: float = 30.0,
        provision_timeout_s: float = 30.0,
        provisioning_owner: str | Owner = ANY,
        placements: PlacementReader | None = None,
        name: str = "manager",
        queues: QueueCatalogue | None = None,
        clock: Clock = system_clock,
        new_id: Callable[[], str] = lambda: f"cmd_{secrets.token_hex(12)}",
    ) -> None:
        given = {"context_registry": context_registry, "connection_registry": connection_registry}
        for required, collaborator in given.items():
            if collaborator is None:
                raise CollaboratorMissingError(required)
        self._timing = Timing(timeout_ms=task_timeout_ms, interval_s=task_timeout_check_interval_s)
        self._registry = context_registry
        self._app_node = app_node
        self._provision_timeout_s = provision_timeout_s
        self._strategy = dispatch_strategy
        self._clock = clock
        self._new_id = new_id
        self._wakes = context_registry if isinstance(context_registry, Wakes) else Polling()
        self._provisioner = Provisioner(
            windows=browser_window_registry,
            placed=_placed(browser_window_registry, context_registry),
            app_node=app_node,
            wakes=self._wakes,
            clock=clock,
            new_id=new_id,
            timeout_s=provision_timeout_s,
        )
        self._placements = Placements(placements or NoPlacements(), clock)
        self.slots = WorkerSlots(
            registry=context_registry,
            placements=self._placements,
            timing=self._timing,
            clock=clock,
            handle=lambda assignment, term_s: self.handle(assignment, timeout_s=term_s),
        )
        """Reserves slots, for who chooses the context afterwards."""
        self._acquisition = Acquisition(
            registry=context_registry,
            presence=_other_presence(context_registry, connection_registry),
            provisioner=self._provisioner,
            placements=self._placements,
            owner=provisioning_owner,
            name=name,
            clock=clock,
            queues=queues or DeclaredQueues(clock=clock),
        )
        self._sweeper = Sweeper(self.release_expired, task_timeout_check_interval_s)
        self._misses = Misses()
        self._unserved = Unserved()

    def placement_changed(self, namespace: str) -> None:
        """Look anew, with the next acquisition, where the namespace's work runs."""
        self._placements.changed(Namespace(namespace))

    # The life of an assignment that nobody ends

    @property
    def sweeping(self) -> bool:
        """Tell whether the sweep of `start` is on."""
        return self._sweeper.running

    async def start(self) -> None:
        """Begin to release what is over, every interval. Safe to repeat; nothing with timeout 0."""
        if self._timing.sweeps:
            self._sweeper.start()

    async def stop(self) -> None:
        """End what `start` began, and return when it has ended. Safe to repeat."""
        await self._sweeper.stop()

    async def release_expired(self) -> int:
        """Release the assignments whose time is over, and do nothing else (P9)."""
        ended = await release_expired(self._registry, self._clock)
        for assignment in ended:
            log.warning("assignment.expired", task_id=assignment.task_id)
            await release_context(self._app_node, assignment)
        return len(ended)

    async def on_client_disconnect(
        self, namespace: str, client_id: str, *, link: str | None = None
    ) -> int:
        """Release what the client's worker contexts are assigned in the namespace; return how many.

        For the host to call where it sees a connection end and wants that at once. Removes,
        creates and retries nothing. With `link`, the connection that has ended, nothing is
        released if the client has come back on another since.

        Raises:
            CollaboratorMissingError: If the context registry can't do that in one step.
            StoreUnavailableError: If the store can't be reached.
        """
        if not isinstance(self._registry, ClientRelease):
            raise CollaboratorMissingError("a context_registry with release_client")
        ended = await self._registry.release_client(
            Namespace(namespace), ClientId(client_id), link=None if link is None else LinkId(link)
        )
        for assignment in ended:
            log.info("assignment.disconnected", task_id=assignment.task_id)
            await release_context(self._app_node, assignment)
        return len(ended)

    # Acquiring

    async def acquire(
        self,
        namespace: str,
        task_id: str,
        *,
        task_queue: str | None = None,
        activity_type: str | None = None,
        node: str | None = None,
        client_type: str | None = None,
        requirements: Mapping[str, Any] | None = None,
        affinity_client_id: str | None = None,
        placement: BrowserPlacement | None = None,
        strategy: Strategy | None = None,
        auto_provision: bool = False,
        timeout_ms: float | None = None,
        wait: float | None = None,
        options: BrowserOptions | None = None,
    ) -> ContextHandle | None:
        """Hold a context for a task, or return None; `try_acquire` says why none."""
        outcome = await self.try_acquire(
            namespace,
            task_id,
            task_queue=task_queue,
            activity_type=activity_type,
            node=node,
            client_type=client_type,
            requirements=requirements,
            affinity_client_id=affinity_client_id,
            placement=placement,
            strategy=strategy,
            auto_provision=auto_provision,
            timeout_ms=timeout_ms,
            wait=wait,
            options=options,
        )
        return outcome.handle if isinstance(outcome, Acquired) else None

    async def try_acquire(
        self,
        namespace: str,
        task_id: str,
        *,
        task_queue: str | None = None,
        activity_type: str | None = None,
        node: str | None = None,
        client_type: str | None = None,
        requirements: Mapping[str, Any] | None = None,
        affinity_client_id: str | None = None,
        placement: BrowserPlacement | None = None,
        strategy: Strategy | None = None,
        auto_provision: bool = False,
        timeout_ms: float | None = None,
        wait: float | None = None,
        options: BrowserOptions | None = None,
    ) -> Acquired | NotAcquired:
        """Hold an idle context, or with `auto_provision` create one; else say why none.

        Args:
            namespace: Whose contexts.
            task_id: A label on the assignment.
            task_queue: The pool; None is the default one.
            activity_type: Only clients that do this kind of work; None for any.
            node: Only clients of this node; None for any.
            client_type: browser, console, mobile or web; None for any, but created is a browser's.
            requirements: Metadata a client must have, each key with exactly that JSON value.
            affinity_client_id: The client to be tried first; the others come after it.
            placement: Which windows and tabs; None is a window of its own.
            strategy: In place of the manager's.
            auto_provision: Allow to create where no idle context was to be had.
            timeout_ms: How long it holds without being renewed; at most the manager's.
            wait: Seconds to wait for something to change, and to look again each time.
            options: Those of a window that is opened, and of one that is there.

        Raises:
            InvalidInputError: If an argument can't be used.
            StrategyError: If the strategy fails; nothing is held.
            StoreUnavailableError: If the store can't be read.
        """
        term_s, wait_s = self._timing.term_s(timeout_ms), checked_wait(wait)
        request = request_of(
            namespace,
            task_id,
            task_queue=task_queue,
            activity_type=activity_type,
            node=node,
            client_type=client_type,
            requirements=requirements,
            affinity_client_id=affinity_client_id,
            placement=placement,
            auto_provision=auto_provision,
            options=options,
        )

        wish = self._wish(request, options, (), strategy, term_s)

        if wait_s is None:
            return await self._look(wish)

        with self._unserved.waiter(request) as publish:

            async def look(create_not_on: Collection[ClientId]) -> Acquired | NotAcquired:
                found = await self._look(replace(wish, create_not_on=frozenset(create_not_on)))
                if isinstance(found, NotAcquired):
                    publish(found.verdict, self._clock())
                return found

            return await look_until_had(look, self._wakes, wait_s)

    async def _look(self, wish: Wish) -> Acquired | NotAcquired:
        """Take or create; where a creation comes to nothing, go on elsewhere while there is time.

        What is said in the end is of one last reading, after the creations that came to nothing.
        """
        time = asyncio.get_running_loop().time
        until = time() + self._provision_timeout_s
        failed: dict[ClientId, Reason] = {}
        while isinstance(outcome := await self._begin(wish), Creation):
            if time() >= until:
                await self.abandon(outcome)
                failed.setdefault(outcome.site.client_id, Reason.CREATION_FAILED)
            else:
                made = await self._provisioner.complete(outcome)
                if isinstance(made, Assignment):
                    return self._acquired(wish, made)
                failed[outcome.site.client_id] = made
            wish = replace(wish, create_not_on=wish.create_not_on | failed.keys())
        if failed and isinstance(outcome, NotAcquired):
            verdict = outcome.verdict
            return NotAcquired(verdict=replace(verdict, clients={**verdict.clients, **failed}))
        return outcome

    async def begin(
        self,
        request: Request,
        *,
        options: BrowserOptions | None = None,
        create_not_on: Collection[ClientId] = (),
        strategy: Strategy | None = None,
        timeout_s: float | None = None,
    ) -> Acquired | Creation | NotAcquired:
        """Take an idle context, or reserve the room for a new one, without waiting for an agent.

        Nothing is created on the clients of `create_not_on`, where it has just failed. Where others
        were quicker it looks afresh, a few times. It holds for `timeout_s`, or as long as any.

        Raises:
            StrategyError: If the strategy fails; nothing is held.
            StoreUnavailableError: If the store can't be read.
        """
        term_s = self._timing.term_s(None)
        if timeout_s is not None:
            term_s = min(term_s, timeout_s)
        return await self._begin(self._wish(request, options, create_not_on, strategy, term_s))

    def _wish(
        self,
        request: Request,
        options: BrowserOptions | None,
        create_not_on: Collection[ClientId],
        strategy: Strategy | None,
        timeout_s: float,
    ) -> Wish:
        return Wish(
            request=request,
            options=options or PLAIN,
            create_not_on=frozenset(create_not_on),
            strategy=strategy or self._strategy,
            timeout_s=timeout_s,
        )

    async def _begin(self, wish: Wish) -> Acquired | Creation | NotAcquired:
        match await self._acquisition.take(wish):
            case Assignment() as assignment:
                return self._acquired(wish, assignment)
            case Verdict() as verdict:
                self._misses.note(wish.request, verdict, self._clock())
                return NotAcquired(verdict=verdict)
            case Creation() as creation:
                return creation

    async def complete(self, creation: Creation) -> Acquired | NotAcquired:
        """Create the context room was reserved for, and hold it.

        Whatever happens, cancellation included, the reservation is used or given back.
        """
        outcome = await self._provisioner.complete(creation)
        if isinstance(outcome, Assignment):
            self._misses.forget(creation.request)
            return Acquired(handle=self.handle(outcome, timeout_s=creation.timeout_s))
        verdict = Verdict(clients={creation.site.client_id: outcome}, contexts={})
        self._misses.note(creation.request, verdict, self._clock())
        return NotAcquired(verdict=verdict)

    async def abandon(self, creation: Creation) -> None:
        """Give the reserved room back."""
        await self._provisioner.abandon(creation)

    def handle(self, assignment: Assignment, *, timeout_s: float | None = None) -> ContextHandle:
        """Return a handle on an assignment that holds."""
        return ContextHandle(
            assignment,
            registry=self._registry,
            app_node=self._app_node,
            clock=self._clock,
            timeout_s=self._timing.term_s(None) if timeout_s is None else timeout_s,
            new_id=self._new_id,
        )

    def misses(self, namespace: str) -> Sequence[Miss]:
        """Say why the last acquisitions of a namespace came to nothing, the latest first.

        One entry a task, until it has what it asked for; bounded; of this manager alone.
        """
        return self._misses.of(Namespace(namespace))

    def unserved(self, namespace: str) -> Sequence[UnservedTask]:
        """Say who waits for a context of a namespace now, and why, the longest wait first."""
        return self._unserved.of(Namespace(namespace))

    async def explain(self, request: Request) -> tuple[Snapshot, Verdict]:
        """Say why a request would get nothing now, with the reading that says it; takes nothing.

        Raises:
            StoreUnavailableError: If the store can't be read.
        """
        return await self._acquisition.explain(request)

    def _acquired(self, wish: Wish, assignment: Assignment) -> Acquired:
        self._misses.forget(wish.request)
        return Acquired(handle=self.handle(assignment, timeout_s=wish.timeout_s))


def _other_presence(
    contexts: AssignmentRegistry, connections: ConnectionRegistry | PresenceReader
) -> PresenceReader | None:
    one_store: object = contexts
    if connections is one_store or not isinstance(connections, PresenceReader):
        return None
    return connections


def _placed(*registries: object) -> PlacedReservations | None:
    return next((r for r in registries if isinstance(r, PlacedReservations)), None)


__all__ = ["ANY", "Acquired", "Creation", "NotAcquired", "Strategy", "WorkerContextManager"]
