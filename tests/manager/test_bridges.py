"""What a bridge carries arrives whole and in order, within bounds; or both ends know it ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from farm.errors import ClientAbsentError, ConflictError, NotFoundError, StoreUnavailableError
from farm.manager.bridge import PIECE_BYTES, WINDOW_BYTES, Bridge, BridgeOverError
from farm.manager.bridges import Bridges, mark_of
from farm.protocol.channels import pack
from farm.stores.memory import MemoryParcels, PostOffice
from farm.stores.ports.parcels import Parcels
from farm.stores.ports.routes import CoordinatorId
from tests.patience import PATIENCE_S
from tests.stores.boxes import ONE, TWO, Pair, box, pair, shared_redis

__all__ = ["box", "pair", "shared_redis"]


@asynccontextmanager
async def at_both(*ends: Parcels, silence_s: float = 5.0) -> AsyncIterator[list[Bridges]]:
    """The bridges of each coordinator, while they are carried."""
    made = [Bridges(end, silence_s=silence_s) for end in ends]
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        loops = [group.create_task(one.run()) for one in made]
        await asyncio.sleep(0)
        yield made
        for loop in loops:
            loop.cancel()


async def echo(said: str, bridge: Bridge) -> None:
    """Say what it was opened with, and then whatever it is told."""
    await bridge.accept()
    await bridge.send(said)
    async for message in bridge.messages():
        await bridge.send(message)


def lazy_until(taken: asyncio.Event) -> Callable[[str, Bridge], Awaitable[None]]:
    """Take nothing before that; then say of each message how long it is."""

    async def lazy(said: str, bridge: Bridge) -> None:
        await bridge.accept()
        await taken.wait()
        async for message in bridge.messages():
            await bridge.send(f"{len(message)}")

    return lazy


async def hear(bridge: Bridge, count: int) -> list[str | bytes]:
    """Return the next messages."""
    got: list[str | bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        async for message in bridge.messages():
            got.append(message)
            if len(got) == count:
                break
    return got


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


async def test_messages_cross_whole_in_order_and_as_what_they_are(pair: Pair) -> None:
    async with at_both(*pair[:2]) as (one, two):
        two.serve("echo", echo)
        sent: list[str | bytes] = [
            "Grüße",
            b"",
            "",
            b"\xff\x00" * WINDOW_BYTES,
            b"x" * PIECE_BYTES,
            "last",
        ]
        async with one.to(TWO, "echo", "opened") as bridge:
            assert await hear(bridge, 1) == ["opened"]
            async with asyncio.TaskGroup() as group:
                heard = group.create_task(hear(bridge, len(sent)))
                for message in sent:
                    await bridge.send(message)
            assert heard.result() == sent
        await until(lambda: one.count() == two.count() == 0)


async def test_who_takes_nothing_holds_up_the_sender_and_nobody_else(pair: Pair) -> None:
    taken = asyncio.Event()
    async with at_both(*pair[:2]) as (one, two):
        two.serve("lazy", lazy_until(taken))
        two.serve("echo", echo)
        sent = 0

        async def fill(bridge: Bridge) -> None:
            nonlocal sent
            for _ in range(12):
                await bridge.send(b"x" * PIECE_BYTES)
                sent += PIECE_BYTES

        async with one.to(TWO, "lazy", "") as slow, one.to(TWO, "echo", "") as quick:
            async with asyncio.TaskGroup() as group:
                filling = group.create_task(fill(slow))
                await hear(quick, 1)
                for number in range(50):
                    await quick.send(f"{number}")
                assert await hear(quick, 50) == [f"{number}" for number in range(50)]
                assert not filling.done()
                assert 0 < sent <= WINDOW_BYTES
                taken.set()
            assert await hear(slow, 12) == [f"{PIECE_BYTES}"] * 12


async def test_many_small_messages_are_bounded_too(pair: Pair) -> None:
    async def deaf(said: str, bridge: Bridge) -> None:
        await bridge.accept()
        await asyncio.Event().wait()

    async with at_both(*pair[:2]) as (one, two):
        two.serve("deaf", deaf)
        sent = 0
        async with one.to(TWO, "deaf", "") as bridge:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    while sent < 10_000:
                        await bridge.send("")
                        sent += 1
        assert 100 < sent < 5_000


async def test_what_was_sent_before_the_end_is_heard_and_how_it_ended(pair: Pair) -> None:
    async def farewell(said: str, bridge: Bridge) -> None:
        await bridge.accept()
        await bridge.send("last words")
        await bridge.close(1008, "that was all")

    async with at_both(*pair[:2]) as (one, two):
        two.serve("farewell", farewell)
        async with one.to(TWO, "farewell", "") as bridge:
            assert [message async for message in bridge.messages()] == ["last words"]
            assert bridge.end is not None
            assert (bridge.end.code, bridge.end.why, bridge.end.lost) == (
                1008,
                "that was all",
                False,
            )
            with pytest.raises(BridgeOverError, match="that was all"):
                await bridge.send("too late")


async def test_a_half_message_is_never_taken_for_a_whole_one(pair: Pair) -> None:
    heard: list[str | bytes] = []
    over = asyncio.Event()

    async def deaf(said: str, bridge: Bridge) -> None:
        await bridge.accept()
        await until(lambda: bridge.end)
        heard.extend([message async for message in bridge.messages()])
        over.set()

    async with at_both(*pair[:2]) as (one, two):
        two.serve("deaf", deaf)
        async with one.to(TWO, "deaf", "") as bridge:
            await bridge.send("whole")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await bridge.send(b"x" * 2 * WINDOW_BYTES)
        async with asyncio.timeout(PATIENCE_S):
            await over.wait()
        assert heard == ["whole"]


async def test_who_is_cancelled_in_the_middle_of_a_message_leaves_it_whole(pair: Pair) -> None:
    taken = asyncio.Event()
    async with at_both(*pair[:2]) as (one, two):
        two.serve("lazy", lazy_until(taken))
        async with one.to(TWO, "lazy", "") as bridge:
            for size in (3, 2):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await bridge.send(b"x" * size * WINDOW_BYTES)
            taken.set()
            await bridge.send("after them")
            assert await hear(bridge, 3) == [f"{3 * WINDOW_BYTES}", f"{2 * WINDOW_BYTES}", "10"]


async def test_what_is_not_served_is_refused_with_why(pair: Pair) -> None:
    async def refuse(said: str, bridge: Bridge) -> None:
        raise ConflictError(f"not {said}")

    async with at_both(*pair[:2]) as (one, two):
        two.serve("refuse", refuse)
        for purpose, why in (("refuse", "not this"), ("unknown", "nobody here serves")):
            with pytest.raises(NotFoundError, match=why):
                async with one.to(TWO, purpose, "this"):
                    pass
        assert one.count() == 0


async def test_what_fails_in_serving_ends_its_bridge_alone(pair: Pair) -> None:
    async def fail(said: str, bridge: Bridge) -> None:
        await bridge.accept()
        raise RuntimeError("a mistake of ours")

    async with at_both(*pair[:2]) as (one, two):
        two.serve("fail", fail)
        two.serve("echo", echo)
        async with one.to(TWO, "echo", "1") as good, one.to(TWO, "fail", "") as bad:
            assert [message async for message in bad.messages()] == []
            assert bad.end is not None
            assert bad.end.lost
            assert await hear(good, 1) == ["1"]


async def test_who_is_not_there_is_said_to_be_absent(pair: Pair) -> None:
    async with at_both(*pair[:2]) as (one, _):
        with pytest.raises(ClientAbsentError, match="not there"):
            async with one.to(CoordinatorId("nobody"), "echo", ""):
                pass


async def test_a_coordinator_that_is_gone_takes_its_bridges_with_it(pair: Pair) -> None:
    first, second, leave = pair
    async with at_both(first, second, silence_s=0.4) as (one, two):
        two.serve("echo", echo)
        async with one.to(TWO, "echo", "") as bridge:
            await hear(bridge, 1)
            await leave(TWO)
            assert [message async for message in bridge.messages()] == []
            assert bridge.end is not None
            assert bridge.end.lost
            assert "two-7" in bridge.end.why
        await until(lambda: two.count() == 0)


async def test_an_idle_bridge_lives(pair: Pair) -> None:
    async with at_both(*pair[:2], silence_s=0.4) as (one, two):
        two.serve("echo", echo)
        async with one.to(TWO, "echo", "") as bridge:
            assert await hear(bridge, 1) == [""]
            began = asyncio.get_running_loop().time()
            await until(lambda: asyncio.get_running_loop().time() - began > 1.2)
            await bridge.send("still there")
            assert await hear(bridge, 1) == ["still there"]


async def test_a_process_that_stood_still_does_not_take_that_for_the_silence_of_others(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_both(*pair[:2], silence_s=0.4) as (one, two):
        two.serve("echo", echo)
        async with one.to(TWO, "echo", "") as bridge:
            assert await hear(bridge, 1) == [""]
            loop = asyncio.get_running_loop()
            running = loop.time
            monkeypatch.setattr(loop, "time", lambda: running() + 1.5)
            began = loop.time()
            await until(lambda: loop.time() - began > 0.5)
            await bridge.send("still there")
            assert await hear(bridge, 1) == ["still there"]


async def test_a_coordinator_that_stops_ends_its_bridges_and_says_so(pair: Pair) -> None:
    async with at_both(*pair[:2]) as (one, two):
        two.serve("echo", echo)
        async with one.to(TWO, "echo", "") as bridge:
            await hear(bridge, 1)
            await one.close("it is stopping")
            assert [message async for message in bridge.messages()] == []
            await until(lambda: two.count() == 0)


async def test_a_mark_names_the_coordinator_that_has_it(pair: Pair) -> None:
    async with at_both(*pair[:2]) as (one, two):
        assert await one.marked(two.mark) == TWO
        assert await two.marked(two.mark) is None  # it is its own
        assert await one.marked("-" * 12) is None
        assert one.mark == mark_of(ONE) != two.mark


class LossyParcels(MemoryParcels):
    """Loses what it is told to, and may be out of reach."""

    def __init__(self, coordinator: CoordinatorId, office: PostOffice) -> None:
        super().__init__(coordinator, office)
        self.loses: bytes | None = None
        self.away = False
        self.lost = 0

    async def post(self, to: CoordinatorId, parcel: bytes) -> bool:
        if self.away:
            raise StoreUnavailableError("Redis did not answer")
        if self.loses is not None and self.loses in parcel:
            self.loses = None
            self.lost += 1
            return True
        return await super().post(to, parcel)

    async def receive(self) -> Sequence[bytes]:
        if self.away:
            raise StoreUnavailableError("Redis did not answer")
        return await super().receive()


async def test_what_is_lost_on_the_way_ends_the_bridge_and_is_not_passed_over() -> None:
    office = PostOffice()
    lossy = LossyParcels(ONE, office)
    async with at_both(lossy, MemoryParcels(TWO, office)) as (one, two):
        two.serve("echo", echo)
        async with one.to(TWO, "echo", "0") as bridge:
            await hear(bridge, 1)
            lossy.loses = b"second"
            for message in ("first", "second", "third"):
                await bridge.send(message)
            heard = [message async for message in bridge.messages()]
            assert heard in ([], ["first"])
            assert bridge.end is not None
            assert (bridge.end.lost, bridge.end.why) == (True, "something was lost on the way")


async def test_while_the_store_is_away_both_ends_find_out_that_it_is_over() -> None:
    office = PostOffice()
    first, second = LossyParcels(ONE, office), LossyParcels(TWO, office)
    async with at_both(first, second, silence_s=0.4) as (one, two):
        two.serve("echo", echo)
        async with one.to(TWO, "echo", "0") as bridge:
            await hear(bridge, 1)
            first.away = second.away = True
            assert [message async for message in bridge.messages()] == []
            assert bridge.end is not None
            assert bridge.end.lost
            await until(lambda: two.count() == 0)
        with pytest.raises(ClientAbsentError, match="out of reach"):
            async with one.to(TWO, "echo", ""):
                pass


async def test_the_other_end_finds_out_by_silence_what_it_was_not_told() -> None:
    office = PostOffice()
    lossy = LossyParcels(ONE, office)
    async with at_both(lossy, MemoryParcels(TWO, office), silence_s=0.4) as (one, two):
        two.serve("echo", echo)
        lossy.loses = b'"end"'
        async with one.to(TWO, "echo", ""):
            pass
        assert lossy.lost == 1
        await until(lambda: two.count() == 0)


async def test_what_is_no_parcel_is_left_and_the_next_is_taken() -> None:
    office = PostOffice()
    stranger = MemoryParcels(CoordinatorId("stranger"), office)
    async with at_both(MemoryParcels(ONE, office), MemoryParcels(TWO, office)) as (one, two):
        two.serve("echo", echo)
        await stranger.post(TWO, b"\xff\xff\xff\xff")
        await stranger.post(TWO, pack('{"kind": "song"}', b""))
        await stranger.post(TWO, pack('{"kind": "took", "bridge_id": "none", "size": 1}', b""))
        async with one.to(TWO, "echo", "hello") as bridge:
            assert await hear(bridge, 1) == ["hello"]
