"""A census is of one reading, whatever is done to the registry meanwhile."""

import asyncio

from farm.core import decide
from farm.core.census import PoolVerdict, census
from farm.core.model import LinkId
from farm.stores.ports.registries import Registry
from tests.stores.pool import A, at, hello, registered, request

ROUNDS = 60


async def test_what_is_counted_while_it_changes_is_never_a_mixture(registry: Registry) -> None:
    """One agent drains and does not, in turns, and loses its link now and then."""
    over = False

    async def change() -> None:
        nonlocal over
        for number in range(ROUNDS):
            await registry.set_draining(A, draining=number % 2 == 0)
            await asyncio.sleep(0)
            if number % 3 == 0:
                await registry.unlink(A, LinkId("link-1"), now=at(0))
                await asyncio.sleep(0)
                await registered(registry, hello(draining=number % 2 == 0))
        over = True

    await registered(registry)
    seen = set()
    async with asyncio.TaskGroup() as group:
        group.create_task(change())
        while not over:
            read = await registry.snapshot(now=at(0))
            found, verdict = census(request(), read), decide.explain(request(), read)
            assert verdict.census == found
            assert (verdict.pool is PoolVerdict.POLLERS_DRAINING) == (found.draining == 1)
            seen.add((found.compatible, found.eligible_compatible, found.draining))
            await asyncio.sleep(0)
    assert seen == {(0, 0, 0), (1, 1, 0), (1, 0, 1)}
