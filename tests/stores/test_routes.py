"""What the `Routes` port promises: leases, links, and letters."""

import asyncio

from farm.core.model import ClientId, LinkId
from farm.stores.ports.routes import CoordinatorId, Route
from farm.stores.redis import RedisRegistry, RedisRoutes
from tests.patience import PATIENCE_S
from tests.stores.coordinators import registry
from tests.stores.pool import A

__all__ = ["registry"]


async def test_the_last_to_claim_a_link_holds_it_until_it_gives_that_one_up(
    registry: RedisRegistry,
) -> None:
    one, two = (RedisRoutes(registry, coordinator=CoordinatorId(n)) for n in ("one", "two"))
    await one.claim(A, LinkId("1"))
    await two.claim(A, LinkId("2"))
    await one.give_up(A, LinkId("1"))
    await one.renew([(A, LinkId("1"))])
    assert await one.route(A) == Route(coordinator=two.coordinator, link=LinkId("2"))
    await two.give_up(A, LinkId("2"))
    assert await one.route(A) is None
    await one.renew([(A, LinkId("1"))])
    assert await two.route(A) == Route(coordinator=one.coordinator, link=LinkId("1"))
    await one.claim(A, LinkId("3"))
    await one.give_up(A, LinkId("1"))
    assert await two.route(A) == Route(coordinator=one.coordinator, link=LinkId("3"))


async def test_a_coordinator_without_a_lease_has_no_links_and_gets_no_letters(
    registry: RedisRegistry,
) -> None:
    there = RedisRoutes(registry, coordinator=CoordinatorId("there"), lease_s=1.0)
    over = RedisRoutes(registry, coordinator=CoordinatorId("over"), lease_s=0.0)
    await there.claim(ClientId("b"), LinkId("1"))
    await over.claim(A, LinkId("1"))
    assert await there.route(A) is None
    assert await over.is_there(there.coordinator)
    assert not await there.is_there(over.coordinator)
    assert not await there.post(over.coordinator, "letter")
    await there.post_others("letter")
    assert await registry.redis.exists(f"{registry.tag}:mail:over") == 0
    # It clears away once it has been there for a lease itself.
    async with asyncio.timeout(PATIENCE_S):
        while list(await registry.redis.hkeys(f"{registry.tag}:coordinators")) != ["there"]:
            await there.renew(())
    assert list(await registry.redis.hkeys(f"{registry.tag}:routes")) == ["b"]
    await there.leave()
    assert await registry.redis.exists(f"{registry.tag}:routes") == 0


async def test_letters_are_read_once_and_in_order_and_a_box_is_bounded(
    registry: RedisRegistry,
) -> None:
    one = RedisRoutes(registry, coordinator=CoordinatorId("one"), box=100)
    await one.renew(())
    for n in range(1000):
        assert await one.post(one.coordinator, f"{n}")
    read: list[str] = []
    while len(read) == 0 or read[-1] != "999":
        read += await one.receive()
    # Streams are cut in whole blocks, of a hundred entries.
    assert 100 <= len(read) <= 300
    assert read == [f"{n}" for n in range(1000 - len(read), 1000)]
    assert await registry.redis.xlen(f"{registry.tag}:mail:one") == 0
    assert await one.receive() == ()
