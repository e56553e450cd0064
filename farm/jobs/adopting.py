"""Attempts of coordinators that share a ledger: taken over with their agents, or lost.

An agent that says it runs an attempt is here now, whoever has had its link before: who lets it in
takes the attempt over, in the ledger first. What nobody has for so long that its agent has given it
up is lost, by the one coordinator that the ledger lets adopt it.
"""

from collections.abc import Sequence
from typing import Unpack

import structlog

from farm.core.model import ClientId, Token
from farm.jobs.live import LiveAttempt
from farm.jobs.orphans import NOT_BACK, Orphans, Parts
from farm.manager.delivery import Send
from farm.protocol import messages as wire
from farm.stores.ports.sharing import SharedLedger
from farm.stores.records import Attempt

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class SharedOrphans(Orphans):
    """What the ledger says runs, and is not in this coordinator's hand.

    Args:
        shared: Whose it is.
        parts: As `Orphans` takes them.
    """

    def __init__(self, shared: SharedLedger, **parts: Unpack[Parts]) -> None:
        super().__init__(**parts)
        self._shared = shared
        self._taken: dict[str, tuple[wire.Running, Attempt | None]] = {}
        """What the ledger has said of what agents are about to be let in with."""

    async def expect(self, client_id: ClientId, running: Sequence[wire.Running]) -> None:
        """Take over what an agent runs that is about to be let in.

        Raises:
            StoreUnavailableError: If it must not be let in, as nobody would look after that.
        """
        self._alive()
        for entry in running:
            self._taken[entry.attempt_id] = (entry, await self._take_over(client_id, entry))

    async def take_up(
        self, client_id: ClientId, epoch_name: str, entry: wire.Running, send: Send
    ) -> None:
        """See `Orphans.take_up`."""
        self._alive()
        attempt = await self._found(client_id, entry)
        if attempt is None:
            await send(wire.Stored(command_id=entry.command_id, refused=True, done=True))
            return
        await self._go_on_with(attempt, epoch_name, entry)

    async def confirm(
        self, live: LiveAttempt, epoch_name: str, entry: wire.Running, send: Send
    ) -> None:
        """Have the ledger say that an attempt in hand is this coordinator's, or let it go."""
        attempt = await self._found(live.client_id, entry)
        if attempt is not None and live.let_go:
            await self._go_on_with(attempt, epoch_name, entry)
        elif attempt is not None:
            live.taken_over(attempt)
        elif not live.over:
            live.move()
            await send(wire.Stored(command_id=entry.command_id, refused=True, done=True))

    async def lose_overdue(self) -> None:
        """End what nobody has had for too long."""
        await self._lose_each(await self._shared.orphans(for_s=self._keep_s), NOT_BACK)

    async def lose_all(self, why: str, *, of: ClientId | None = None) -> None:
        """End what nobody has of an agent that is gone."""
        await self._lose_each(await self._shared.orphans(for_s=0.0, client_id=of), why)

    async def _lose_each(self, attempts: Sequence[Attempt], why: str) -> None:
        for attempt in attempts:
            if await self._shared.adopt(attempt.attempt_id):
                await self._end(attempt, why)

    async def _go_on_with(self, attempt: Attempt, epoch_name: str, entry: wire.Running) -> None:
        job = await self._job_of(attempt)
        await self._go_on(job, attempt, alive=entry.epoch == epoch_name)

    async def _found(self, client_id: ClientId, entry: wire.Running) -> Attempt | None:
        asked, found = self._taken.pop(entry.attempt_id, (None, None))
        return found if asked == entry else await self._take_over(client_id, entry)

    async def _take_over(self, client_id: ClientId, entry: wire.Running) -> Attempt | None:
        return await self._shared.take_over(
            entry.attempt_id,
            client_id=client_id,
            token=Token(store_epoch=entry.token.store_epoch, counter=entry.token.counter),
            command_id=entry.command_id,
        )


def orphans_of(shared: SharedLedger | None, **parts: Unpack[Parts]) -> Orphans:
    """Return what looks after orphans, of a ledger that is shared or is not."""
    return Orphans(**parts) if shared is None else SharedOrphans(shared, **parts)
