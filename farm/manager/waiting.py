"""Parking on arrivals (P7), and what a registry without wakes is given instead."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection

from farm.core.eligibility import Reason
from farm.core.model import ClientId
from farm.manager.outcomes import Acquired, NotAcquired
from farm.stores.ports.registries import Wakes

_SAFETY_S = 5.0
"""The longest a waiter goes without looking: should a wake be lost, or an agent fall silent."""
_REST_S = 1.0
"""Nothing is created for so long on an agent on which that has just failed."""
_POLL_S = 0.25

Look = Callable[[Collection[ClientId]], Awaitable[Acquired | NotAcquired]]
"""One try, which creates nothing on the clients given."""


class Polling:
    """`Wakes` over a registry that tells of no change: a slow look, now and then."""

    def generation(self) -> int:
        """See `Wakes.generation`."""
        return 0

    async def changed_since(self, generation: int) -> None:
        """See `Wakes.changed_since`."""
        await asyncio.sleep(_POLL_S)


async def look_until_had(look: Look, wakes: Wakes, wait_s: float) -> Acquired | NotAcquired:
    """Look, and after each change look again, until something is had or the time is over.

    The number of the last change is read before looking, so that none is missed between the look
    and the wait. A change that helps nothing leaves the deadline where it was. A creation that has
    begun by then is not broken off: it has a bound of its own. What waiting can't help is not
    waited for.
    """
    now = asyncio.get_running_loop().time
    deadline = now() + wait_s
    resting: dict[ClientId, float] = {}
    while True:
        generation = wakes.generation()
        outcome = await look([client for client, until in resting.items() if until > now()])
        if isinstance(outcome, Acquired) or now() >= deadline:
            return outcome
        if outcome.verdict.pool.structural:
            return outcome
        resting = {client: until for client, until in resting.items() if until > now()}
        for client, reason in outcome.verdict.clients.items():
            if reason is Reason.CREATION_FAILED:
                resting.setdefault(client, now() + _REST_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min(deadline, now() + _SAFETY_S, *resting.values())):
                await wakes.changed_since(generation)
