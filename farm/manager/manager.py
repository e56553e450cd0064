"""Acquire: read a snapshot, ask the core, commit to the store (P3-P6)."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from farm.clock import Clock
from farm.core import decide
from farm.core.decide import Candidate, Site, Verdict
from farm.core.eligibility import Reason
from farm.core.model import Assignment, ClientId, ContextId, Instant, Request, Snapshot, WindowId
from farm.core.reservation import Denial
from farm.errors import ClientAbsentError
from farm.manager.delivery import AppNode, command
from farm.manager.handle import ContextHandle, release_context
from farm.protocol import messages as wire
from farm.protocol.plan import BrowserOptions
from farm.stores.ports import Registry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Strategy(Protocol):
    """Chooses among the idle candidates that passed eligibility."""

    def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """Return one of `candidates`, or None for none of them."""
        ...


@dataclass(frozen=True, slots=True)
class Acquired:
    """A context is held; release the handle when done."""

    handle: ContextHandle


@dataclass(frozen=True, slots=True)
class NotAcquired:
    """Nothing would do, and why."""

    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """Room reserved for a context that is still to be created; `complete` or `abandon` it."""

    request: Request
    site: Site
    epoch: int
    options: BrowserOptions


class WorkerContextManager:
    """Lends contexts to tasks. Owns no state; starts nothing by being constructed."""

    def __init__(
        self,
        *,
        registry: Registry,
        app_node: AppNode,
        clock: Clock,
        new_id: Callable[[], str],
        task_timeout_s: float = 300.0,
        provision_timeout_s: float = 30.0,
        dispatch_strategy: Strategy | None = None,
    ) -> None:
        self._registry = registry
        self._app_node = app_node
        self._clock = clock
        self._new_id = new_id
        self._task_timeout_s = task_timeout_s
        self._provision_timeout_s = provision_timeout_s
        self._strategy = dispatch_strategy

    async def acquire(
        self, request: Request, *, options: BrowserOptions | None = None
    ) -> ContextHandle | None:
        """Hold a context for a task, or return None; see `try_acquire`."""
        outcome = await self.try_acquire(request, options=options)
        return outcome.handle if isinstance(outcome, Acquired) else None

    async def try_acquire(
        self, request: Request, *, options: BrowserOptions | None = None
    ) -> Acquired | NotAcquired:
        """Hold an idle context, or with `request.auto_provision` create one.

        Raises:
            StoreUnavailableError: If the store can't be read.
        """
        begun = await self.begin(request, options=options)
        return await self.complete(begun) if isinstance(begun, Creation) else begun

    async def begin(
        self,
        request: Request,
        *,
        options: BrowserOptions | None = None,
        create_not_on: Collection[ClientId] = (),
    ) -> Acquired | Creation | NotAcquired:
        """Take an idle context, or reserve the room for a new one, without waiting for an agent.

        Nothing is created on the clients of `create_not_on`, where it has just failed.

        Raises:
            StoreUnavailableError: If the store can't be read.
        """
        now = self._clock()
        snapshot = await self._registry.snapshot(now=now)
        if assignment := await self._assign_one(request, snapshot, now):
            return Acquired(self.handle(assignment))
        sites = decide.sites(request, snapshot)
        resting = {s.client_id for s in sites if s.client_id in create_not_on}
        for site in sites:
            if site.client_id in resting:
                continue
            epoch = await self._reserve(site, request, now)
            if not isinstance(epoch, Denial):
                return Creation(
                    request=request, site=site, epoch=epoch, options=options or BrowserOptions()
                )
        verdict = decide.explain(request, snapshot)
        failed = dict.fromkeys(resting, Reason.CREATION_FAILED)
        return NotAcquired(replace(verdict, clients={**verdict.clients, **failed}))

    async def complete(self, creation: Creation) -> Acquired | NotAcquired:
        """Create the context room was reserved for, and hold it.

        Whatever happens, cancellation included, the reservation is used or given back.
        """
        settled = False
        try:
            async with asyncio.timeout(self._provision_timeout_s):
                context_id = await self._create(creation)
                outcome = await self._settle(creation, context_id)
            settled = isinstance(outcome, Acquired)
            return outcome
        except (ClientAbsentError, TimeoutError) as error:
            log.warning("creation.failed", client_id=creation.site.client_id, reason=str(error))
            return self._not_created(creation, Reason.CREATION_FAILED)
        finally:
            if not settled:
                await self.abandon(creation)

    async def abandon(self, creation: Creation) -> None:
        """Give the reserved room back."""
        site = creation.site
        if site.window_id is None:
            await self._registry.cancel_window(
                site.client_id, epoch=creation.epoch, identity=creation.request.identity
            )
        else:
            await self._registry.cancel_tab(site.client_id, site.window_id, epoch=creation.epoch)

    def handle(self, assignment: Assignment) -> ContextHandle:
        """Return a handle on an assignment that holds."""
        return ContextHandle(
            assignment,
            registry=self._registry,
            app_node=self._app_node,
            clock=self._clock,
            timeout_s=self._task_timeout_s,
        )

    async def release_expired(self) -> int:
        """Release the assignments whose time is over, and do nothing else (P9)."""
        ended = await self._registry.release_expired(now=self._clock())
        for assignment in ended:
            log.warning("assignment.expired", task_id=assignment.task_id)
            await release_context(self._app_node, assignment)
        return len(ended)

    async def _assign_one(
        self, request: Request, snapshot: Snapshot, now: Instant
    ) -> Assignment | None:
        left = decide.candidates(request, snapshot)
        while left:
            chosen = self._strategy.choose(left) if self._strategy is not None else left[0]
            if chosen is None:
                return None
            outcome = await self._registry.assign(
                request,
                chosen.client_id,
                chosen.context_id,
                now=now,
                timeout_s=self._task_timeout_s,
            )
            if isinstance(outcome, Assignment):
                return outcome
            left.remove(chosen)
        return None

    async def _reserve(self, site: Site, request: Request, now: Instant) -> int | Denial:
        if site.window_id is None:
            return await self._registry.reserve_window(
                site.client_id, identity=request.identity, now=now
            )
        return await self._registry.reserve_tab(site.client_id, site.window_id, now=now)

    async def _create(self, creation: Creation) -> ContextId:
        body: wire.OpenWindow | wire.OpenTab
        if creation.site.window_id is None:
            body = wire.OpenWindow(
                identity=creation.request.identity,
                profile=creation.request.profile,
                options=creation.options,
            )
        else:
            body = wire.OpenTab(window_id=creation.site.window_id)
        sent = await self._app_node.send(creation.site.client_id, command(self._new_id(), body))
        try:
            answer = await sent.answer
        finally:
            self._app_node.forget(sent)
        if isinstance(answer, wire.Ack) or answer.outcome != "succeeded":
            raise ClientAbsentError(f"{creation.site.client_id} opened nothing: {_why(answer)}")
        context_id = answer.value.get("context_id")
        if not isinstance(context_id, str):
            raise ClientAbsentError(f"{creation.site.client_id} does not say what it opened")
        return ContextId(context_id)

    async def _settle(self, creation: Creation, context_id: ContextId) -> Acquired | NotAcquired:
        while True:
            generation = self._registry.generation()
            outcome = await self._commit(creation, context_id, creation.site.window_id)
            if isinstance(outcome, Assignment):
                return Acquired(self.handle(outcome))
            if outcome is not Denial.NOT_READY:
                return self._not_created(creation, Reason.LOST_RACE)
            await self._registry.changed_since(generation)

    async def _commit(
        self, creation: Creation, context_id: ContextId, window_id: WindowId | None
    ) -> Assignment | Denial:
        now, timeout_s = self._clock(), self._task_timeout_s
        client_id: ClientId = creation.site.client_id
        if window_id is None:
            return await self._registry.settle_window(
                creation.request,
                client_id,
                context_id,
                epoch=creation.epoch,
                identity=creation.request.identity,
                now=now,
                timeout_s=timeout_s,
            )
        return await self._registry.settle_tab(
            creation.request,
            client_id,
            window_id,
            context_id,
            epoch=creation.epoch,
            now=now,
            timeout_s=timeout_s,
        )

    @staticmethod
    def _not_created(creation: Creation, reason: Reason) -> NotAcquired:
        return NotAcquired(Verdict(clients={creation.site.client_id: reason}, contexts={}))


def _why(answer: wire.Ack | wire.Result) -> str:
    if isinstance(answer, wire.Ack):
        return f"{answer.refused} {answer.detail}".strip()
    return answer.failure.detail if answer.failure is not None else answer.outcome


__all__ = ["Acquired", "Creation", "NotAcquired", "Strategy", "WorkerContextManager"]
