"""What the holder of an assignment has in hand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import structlog

from farm.clock import Clock
from farm.core.model import Assignment
from farm.errors import (
    ClientAbsentError,
    CollaboratorMissingError,
    StaleAssignmentError,
    StoreUnavailableError,
)
from farm.manager.delivery import AppNode, SentCommand, command
from farm.protocol import messages as wire
from farm.stores.ports.registries import AssignmentRegistry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_RENEWALS_PER_TERM = 3


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
    ) -> None:
        self._assignment = assignment
        self._registry = registry
        self._app_node = app_node
        self._clock = clock
        self._timeout_s = timeout_s

    @property
    def assignment(self) -> Assignment:
        """The assignment as last renewed."""
        return self._assignment

    async def send(
        self, command_id: str, body: wire.RunPlan, *, outlives_link: bool = False
    ) -> SentCommand:
        """Send a command to the context.

        Raises:
            CollaboratorMissingError: If the manager has no app_node.
            StaleAssignmentError: If the assignment has ended; nothing was sent.
            ClientAbsentError: If the agent is not connected; nothing was sent.
        """
        if self._app_node is None:
            raise CollaboratorMissingError("app_node")
        held = self._assignment
        if not await self._registry.holds(held.client_id, held.context_id, held.token):
            raise StaleAssignmentError(f"the assignment of {held.context_id} has ended")
        return await self._app_node.send(
            held.client_id,
            command(command_id, body, context_id=held.context_id, token=held.token),
            outlives_link=outlives_link,
        )

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
    except ClientAbsentError:
        return
