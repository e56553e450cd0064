"""Short ways to say what a test does with slots and turns."""

from typing import Any

from farm.core.model import Capacity, Client
from farm.core.reservation import Reservation
from tests.stores.pool import T0, Everything, hello, registered, reported, request


async def agent(registry: Everything, name: str, *tabs: str, slots: int = 9, **told: Any) -> Client:
    """Let in an agent with so many slots."""
    told = {"capacity": Capacity(max_concurrency=slots, max_windows=9)} | told
    client = await registered(registry, hello(name, **told), epoch=name)
    if tabs:
        await reported(registry, *tabs, client=client)
    return client


async def slot(registry: Everything, **asks: Any) -> Reservation:
    found = await registry.select_and_reserve(request(**asks), now=T0)
    assert found is not None
    return found


async def turn(registry: Everything, **asks: Any) -> str | None:
    """Take a slot, and give it back; return whose it was."""
    found = await registry.select_and_reserve(request(**asks), now=T0)
    if found is None:
        return None
    await registry.cancel(found)
    return found.site.client_id
