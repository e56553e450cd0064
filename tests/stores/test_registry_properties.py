"""Whatever agents and coordinators do, in whatever order, the registries keep their promises."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from farm.core.model import ClientId, LinkId, WindowId
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need
from farm.stores.ports.routes import CoordinatorId
from farm.stores.redis import RedisRoutes
from tests.stores.pool import Everything, at, request
from tests.stores.pool_machine import Pool, agents
from tests.stores.side_by_side import SideBySide, at_the_tests_server, memory, quick

__all__ = ["at_the_tests_server"]


class MemoryPool(Pool):
    def new(self) -> Everything:
        return memory()


class BothPools(SideBySide, Pool):
    """Both answer alike, and what they answer is right.

    Over Redis another coordinator is at it, too, whose lease is always over. When that is seen,
    all that it has is given back, as if it were done one by one.
    """

    def new(self) -> Everything:
        super().new()
        name = CoordinatorId("other")
        redis = self.over_redis(coordinator=name, lease_s=0.0)
        self.other = self.both.through(redis)
        self.routes = RedisRoutes(redis, coordinator=name, lease_s=0.0)
        self.judge = RedisRoutes(self.second, coordinator=CoordinatorId("judge"), lease_s=0.0)
        self.of_the_other: list[Reservation] = []
        self.linked_to_the_other: dict[str, LinkId] = {}
        return self.both

    @rule(agent=agents, need=st.sampled_from([Need.WINDOW, Need.TAB, Need.SLOT]))
    def the_other_reserves(self, agent: str, need: Need) -> None:
        before, id_, now = self._client(agent), ClientId(agent), at(self.now)
        match need:
            case Need.WINDOW:
                outcome = self.do(self.other.reserve_window(id_, identity="mail", now=now))
            case Need.TAB:
                outcome = self.do(self.other.reserve_tab(id_, WindowId("W1"), now=now))
            case _:
                outcome = self.do(self.other.reserve_worker(request(), id_, now=now))
        if not isinstance(outcome, Denial):
            self._reserves(outcome, before)
            self.of_the_other.append(outcome)

    @rule(agent=agents)
    def the_other_holds_its_link(self, agent: str) -> None:
        known = self.known.get(agent)
        if known is not None and known.link is not None:
            self.do(self.routes.claim(known.client_id, known.link))
            self.linked_to_the_other[agent] = known.link

    @rule()
    def the_other_is_seen_to_be_there_no_more(self) -> None:
        for one in self.of_the_other:
            self.do(self.both.first.cancel(one))
            if one.reservation_id in self.reserved:
                self._close(one)
        for agent, link in self.linked_to_the_other.items():
            known = self.known.get(agent)
            if known is not None and known.link == link:
                self.do(self.both.first.unlink(known.client_id, link, now=at(self.now)))
                self.known[agent] = replace(known, link=None)
        self.of_the_other, self.linked_to_the_other = [], {}
        self.do(self.judge.renew(()))


MemoryPool.TestCase.settings = quick
BothPools.TestCase.settings = quick
TestMemory = MemoryPool.TestCase
TestBothBesideAModel = BothPools.TestCase
