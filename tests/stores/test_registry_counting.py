"""However slots are taken, handed over, announced and given back, the counts are right."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from farm.core.model import Assignment, Capacity, ClientId, ContextId
from farm.core.reservation import Reservation
from farm.stores.memory import MemoryRegistry
from tests.stores.pool import (
    LINK,
    T0,
    TIMEOUT_S,
    WINDOW_S,
    hello,
    only,
    registered,
    reported,
    request,
)

TABS = ("T1", "T2", "T3", "T4")
acts = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "commit", "commit", "track", "end", "announce"]),
        st.integers(0, 7),
    ),
    max_size=60,
)


class Schedule:
    """A registry of two agents, and what a tracker of tasks knows of them."""

    def __init__(self) -> None:
        self.registry = MemoryRegistry(store_epoch=1, presence_window_s=WINDOW_S)
        self.reserved: list[Reservation] = []
        self.tracked: dict[tuple[ClientId, str], Assignment] = {}
        self.advertised: dict[str, int] = {}
        self.reports = 1

    async def begin(self) -> None:
        for name, slots in (("a", 3), ("b", 2)):
            told = hello(name, capacity=Capacity(max_concurrency=slots))
            client = await registered(self.registry, told, epoch=name)
            await reported(self.registry, *TABS, client=client)
            self.advertised[name] = slots

    async def act(self, what: str, which: int) -> None:
        match what:
            case "reserve":
                found = await self.registry.select_and_reserve(request(), now=T0)
                self.reserved += [] if found is None else [found]
            case "commit" if self.reserved:
                one = self.reserved[which % len(self.reserved)]
                if await self._track(one.site.client_id, which, one):
                    self.reserved.remove(one)
            case "track":
                await self._track(ClientId("ab"[which % 2]), which, None)
            case "end" if self.tracked or self.reserved:
                await self._end(which)
            case "announce":
                name, slots = "ab"[which % 2], 1 + which // 2
                await self.registry.set_advertised_capacity(ClientId(name), LINK, slots)
                self.advertised[name] = slots
            case _:
                pass

    async def _track(self, client_id: ClientId, which: int, one: Reservation | None) -> bool:
        """Track a task of one of two names on a tab; twice is once."""
        tab, task = TABS[which % 4], f"task-{which // 4}"
        found = await self.registry.commit(
            request(task),
            client_id,
            ContextId(tab),
            reservation=one,
            now=T0,
            timeout_s=TIMEOUT_S,
        )
        if isinstance(found, Assignment):
            assert self.tracked.setdefault((client_id, tab), found) == found
        return isinstance(found, Assignment)

    async def _end(self, which: int) -> None:
        """End a task, or give a reservation back; each twice, the second time for nothing."""
        if self.tracked and which % 2:
            key = sorted(self.tracked)[which % len(self.tracked)]
            one = self.tracked.pop(key)
            for holds in (True, False):
                ended = await self.registry.release(one.client_id, one.context_id, one.token)
                assert ended is holds
            await self._report(one.client_id)
        elif self.reserved:
            given_back = self.reserved.pop(which % len(self.reserved))
            for _ in range(2):
                await self.registry.cancel(given_back)

    async def _report(self, client_id: ClientId) -> None:
        """Have the agent say that its tabs are clean again."""
        self.reports += 1
        client = await only(self.registry, client_id)
        await reported(self.registry, *TABS, client=client, number=self.reports)

    async def counts(self) -> dict[str, int]:
        snapshot = await self.registry.snapshot(now=T0)
        return {client.client_id: client.used_slots() for client in snapshot.clients}


@settings(deadline=None)
@given(acts)
async def test_never_more_is_in_flight_than_was_announced_when_it_was_taken(
    those: list[tuple[str, int]],
) -> None:
    schedule = Schedule()
    await schedule.begin()
    before = await schedule.counts()
    for what, which in those:
        await schedule.act(what, which)
        now = await schedule.counts()
        for name, count in now.items():
            assert count >= 0
            assert count <= max(schedule.advertised[name], before[name])
        before = now


@settings(deadline=None)
@given(acts)
async def test_the_count_of_an_agent_is_its_tracked_tasks_and_its_open_reservations(
    those: list[tuple[str, int]],
) -> None:
    schedule = Schedule()
    await schedule.begin()
    for what, which in those:
        await schedule.act(what, which)
        expected = Counter(client_id for client_id, _ in schedule.tracked)
        expected.update(one.site.client_id for one in schedule.reserved)
        assert await schedule.counts() == {name: expected[ClientId(name)] for name in "ab"}
