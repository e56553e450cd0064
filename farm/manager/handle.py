"""What the holder of an assignment has in hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

import structlog

from farm.clock import Clock
from farm.core.commands import Answers, Declared, Effect
from farm.core.model import Assignment
from farm.errors import (
    ClientAbsentError,
    CollaboratorMissingError,
    NotFoundError,
    StaleAssignmentError,
    StoreUnavailableError,
)
from farm.manager.awaited import SentCommand
from farm.manager.commands import command
from farm.manager.delivery import AppNode
from farm.manager.evidence import Admission, Answer, CommandResult, result_of
from farm.protocol import messages as wire
from farm.protocol.plan import Plan
from farm.stores.ports.contexts import AssignmentRegistry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_RENEWALS_PER_TERM = 3

ContextBody = wire.RunPlan | wire.Probe
"""What a context can be told to do; it is released by `release`."""


class ContextHandle:
    """Reaches exactly one context under exactly one assignment, and no other (P8)."""

    def __init__(
        self,
        assignment: Assignment,
        *,
        registry: AssignmentRegistry,
        app_node: AppNode | None,
        clock: Clock,
        timeout_s: float,
        new_id: Callable[[], str],
    ) -> None:
        self._assignment = assignment
        self._registry = registry
        self._app_node = app_node
        self._clock = clock
        self._timeout_s = timeout_s
        self._new_id = new_id

    @property
    def assignment(self) -> Assignment:
        """The assignment as last renewed."""
        return self._assignment

    # Commands

    async def send(
        self,
        command_id: str,
        body: ContextBody,
        *,
        outlives_link: bool = False,
        effect: Effect | None = None,
        reconcilable: bool | None = None,
        here: bool = False,
    ) -> SentCommand:
        """Send a command to the context; `wait` for what is returned, or `forget` it.

        Where the app_node keeps evidence, the command is admitted first, and nothing goes out
        before it is noted that a send is attempted.

        Args:
            command_id: Names it; once in a namespace.
            body: What is to be done.
            outlives_link: Wait for the result over a lost link, too; runs are kept by their agent.
            effect: What it does to the outside world, as far as its sender knows.
            reconcilable: Whether the target system can be asked if that happened.
            here: Send it only if this coordinator itself holds the agent's link.

        Raises:
            CollaboratorMissingError: If the manager has no app_node.
            StaleAssignmentError: If the assignment has ended; nothing was sent.
            ClientAbsentError: If the agent is not connected; nothing was sent.
            ConflictError: If the command_id has been used before; nothing was sent.
            StoreUnavailableError: If a store can't be reached; nothing was sent.
        """
        node, held = self._node(), self._assignment
        await self._check_held()
        return await node.send(
            held.client_id,
            command(command_id, body, context_id=held.context_id, token=held.token),
            outlives_link=outlives_link,
            admission=Admission(
                namespace=held.namespace,
                declared=Declared(effect=effect, reconcilable=reconcilable),
            ),
            here=here,
        )

    async def run(
        self, plan: Plan, *, effect: Effect | None = None, reconcilable: bool | None = None
    ) -> SentCommand:
        """Send a plan to be run, whose result outlives a lost link. See `send`."""
        return await self.send(
            self._new_id(),
            wire.RunPlan(plan=plan),
            outlives_link=True,
            effect=effect,
            reconcilable=reconcilable,
        )

    async def probe(self) -> SentCommand:
        """Have the agent open a page of its own and close it again, if it knows us. See `send`."""
        return await self.send(self._new_id(), wire.Probe(), effect=Effect.NONE)

    async def cancel(self, sent: SentCommand) -> None:
        """Ask for a run of this handle to be stopped; it answers with a result of its own.

        Raises:
            CollaboratorMissingError: If the manager has no app_node.
            StaleAssignmentError: If the assignment has ended; nothing was sent.
            ClientAbsentError: If the agent is not connected; nothing was sent.
        """
        node = self._node()
        await self._check_held()
        await node.tell(sent.client_id, wire.Cancel(command_id=sent.command_id))

    async def wait(self, sent: SentCommand) -> Answer:
        """Return what the agent answers: its result, or an ack that refuses. Sets no clock.

        Raises:
            ClientAbsentError: If the link it was sent on is gone, and it does not outlive that.
        """
        try:
            return await sent.answer
        finally:
            self.forget(sent)

    def forget(self, sent: SentCommand) -> None:
        """Wait for a command no longer; its evidence goes on."""
        self._node().forget(sent)

    async def evidence(self, command_id: str) -> Answers:
        """Answer the five questions to ask before a command is repeated, from its evidence.

        Of any command of the namespace, and after the assignment has ended, too.

        Raises:
            CollaboratorMissingError: If no evidence is kept.
            NotFoundError: If nothing is known of the command.
            StoreUnavailableError: If the evidence can't be read.
        """
        return await self._node().answers(self._assignment.namespace, command_id)

    async def result(self, command_id: str) -> CommandResult | None:
        """Return how a command ended, with the payload that is retained; None while it has not.

        Raises:
            NotFoundError: If nothing is known of the command, or it is retained no more.
            CollaboratorMissingError, StoreUnavailableError: As `evidence`.
        """
        known = (await self.evidence(command_id)).evidence
        if known is None:
            raise NotFoundError(f"command {command_id!r} is retained no more")
        return result_of(known)

    def _node(self) -> AppNode:
        if self._app_node is None:
            raise CollaboratorMissingError("app_node")
        return self._app_node

    async def _check_held(self) -> None:
        held = self._assignment
        if not await self._registry.holds(held.client_id, held.context_id, held.token):
            raise StaleAssignmentError(f"the assignment of {held.context_id} has ended")

    # The assignment

    async def renew(self) -> None:
        """Start the assignment's time anew.

        Raises:
            StaleAssignmentError: If the assignment has ended.
        """
        held = self._assignment
        renewed = await self._registry.renew(
            held.client_id,
            held.context_id,
            held.token,
            now=self._clock(),
            timeout_s=self._timeout_s,
        )
        if renewed is None:
            raise StaleAssignmentError(f"the assignment of {held.context_id} has ended")
        self._assignment = renewed

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[Self]:
        """Renew by itself for as long as the block lasts, and release when it ends.

        Raises:
            StaleAssignmentError: If the assignment ends meanwhile; the block is cancelled.
        """
        try:
            async with asyncio.TaskGroup() as group:
                renewals = group.create_task(self._renew_again_and_again(), name="renew")
                yield self
                renewals.cancel()
        except BaseExceptionGroup as raised:
            # What the block raises, or the one renewal, is not a group to whoever wrote the block.
            if len(raised.exceptions) > 1:
                raise
            raise raised.exceptions[0] from None
        finally:
            await self.release()

    async def _renew_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._timeout_s / _RENEWALS_PER_TERM)
            try:
                await self.renew()
            except StoreUnavailableError as error:
                # Past its time it holds until it is swept, and nobody sweeps without the store.
                log.warning("renewal.skipped", reason=error.detail)

    async def release(self) -> bool:
        """End the assignment; False if it had ended before. Safe to repeat.

        The agent is told, and makes the context clean or closes it; if it is away it learns it
        when it comes back.
        """
        held = self._assignment
        released = await self._registry.release(held.client_id, held.context_id, held.token)
        if released:
            await release_context(self._app_node, held)
        return released


async def release_context(app_node: AppNode | None, held: Assignment) -> None:
    """Tell the agent that an assignment has ended, if it is there to be told."""
    if app_node is None:
        return
    order = command(
        f"release-{held.token.store_epoch}-{held.token.counter}-{held.context_id}",
        wire.Release(),
        context_id=held.context_id,
        token=held.token,
    )
    try:
        await app_node.tell(held.client_id, order)
    except ClientAbsentError as error:
        log.debug("release.not_told", context_id=held.context_id, reason=error.detail)
