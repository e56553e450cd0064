"""Whatever agents and coordinators do, in whatever order, the registries keep their promises."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from farm.core.model import (
    Assignment,
    Capacity,
    ClientId,
    ClientType,
    Context,
    ContextId,
    ContextState,
    LinkId,
    Namespace,
    Owner,
    Request,
    Token,
    Window,
    WindowId,
)
from farm.stores.memory import MemoryRegistry
from farm.stores.ports import Registry
from farm.stores.redis import RedisRegistry, connect
from tests.stores.both import Both
from tests.stores.conftest import shards
from tests.stores.pool import WINDOW_S, at, hello, request
from tests.stores.pool_machine import Machine, Pool


def memory() -> MemoryRegistry:
    return MemoryRegistry(store_epoch=1, presence_window_s=WINDOW_S)


class MemoryPool(Pool):
    def new(self) -> Registry:
        return memory()


class SideBySide(Machine):
    """Both answer alike."""

    url: str

    def new(self) -> Registry:
        self.redis = connect(self.url)
        other = RedisRegistry(
            self.redis,
            presence_window_s=WINDOW_S,
            reservation_timeout_s=float("inf"),
            shard=f"{next(shards)}",
        )
        self.do(other.open(store_epoch=1))
        self.both = Both(memory(), other)
        return self.both

    def teardown(self) -> None:
        if hasattr(self, "redis"):
            self.do(self.redis.aclose())
        super().teardown()

    @invariant()
    def both_have_told_waiters_of_the_same(self) -> None:
        assert not hasattr(self, "both") or self.both.woke_alike()


class BothPools(SideBySide, Pool):
    """Both answer alike, and what they answer is right."""


ids = st.sampled_from([ClientId("a"), ClientId("b:{c}")])
LINKS = (LinkId("l1"), LinkId("l2"))
links = st.sampled_from(LINKS)
tabs = st.sampled_from([ContextId("T1"), ContextId("T2"), ContextId("{T}\n3")])
windows = st.sampled_from([WindowId("W1"), WindowId("windows"), WindowId("")])
identities = st.sampled_from([None, "shop", "", "Ünï \ud83d/\\\0"])
profiles = st.sampled_from(["", "p"])
namespaces = st.sampled_from([Namespace("default"), Namespace("other")])
types = st.sampled_from([ClientType.BROWSER, ClientType.CONSOLE])
values = st.sampled_from([None, True, 1, 1.0, "1", 0.1 + 0.2, 10**30, [1, {"b": 2, "a": 1}], "é\0"])
metadata = st.dictionaries(st.sampled_from(["k", "", "region/eu"]), values, max_size=2)
limits = st.sampled_from([1, 2, 3])
capacities = st.builds(
    Capacity,
    max_concurrency=st.sampled_from([None, 0, 1, 2, 5]),
    max_windows=limits,
    max_tabs_per_window=limits,
    max_flows=limits,
)
contexts = st.builds(
    Context,
    context_id=tabs,
    window_id=st.none() | windows,
    owner=st.sampled_from([Owner.WORKER, Owner.WORKER, Owner.USER]),
    state=st.sampled_from([ContextState.IDLE, ContextState.ACTIVE, ContextState.LOADING]),
    clean=st.booleans(),
)
told = st.builds(
    Window,
    window_id=windows,
    identity=identities,
    profile=profiles,
    owner=st.sampled_from(Owner),
)
requests = st.builds(
    request,
    namespace=namespaces,
    client_type=st.none() | types,
    requirements=st.just({}) | metadata,
    identity=st.none() | identities,
    profile=profiles,
)
few = st.integers(0, 3)
off = st.sampled_from([0, 0, 0, 0, -1, 1])
timeouts = st.sampled_from([0.1, 7.3, 60.0, float("inf")])


class Anything(SideBySide):
    """Both answer alike, also to what no agent or coordinator would ever say."""

    def new(self) -> Registry:
        self.number = 0
        self.given: list[Assignment] = []
        return super().new()

    def ask(self, method: Any, *args: Any, **how: Any) -> Any:
        outcome = self.do(method(*args, **how))
        if isinstance(outcome, Assignment):
            self.given.append(outcome)
        return outcome

    def epoch(self, client_id: ClientId, off: int) -> int:
        clients = self.do(self.both.snapshot(now=at(self.now))).clients
        return off + next((c.epoch for c in clients if c.client_id == client_id), 1)

    @rule(
        client_id=ids,
        epoch_name=st.sampled_from(["e1", "e1", "e2"]),
        highest=st.none() | st.builds(Token, store_epoch=few, counter=few),
        told=st.fixed_dictionaries(
            {
                "link": st.sampled_from([*LINKS, *LINKS, None]),
                "instance": st.sampled_from(["one", "one", "two"]),
                "browser": st.sampled_from([None, "", "Chromium 1"]),
                "client_type": types,
                "namespaces": st.lists(namespaces, max_size=2).map(tuple),
                "metadata": metadata,
                "capacity": capacities,
                "draining": st.sampled_from([False, False, True]),
            }
        ),
    )
    def registers(
        self, client_id: ClientId, epoch_name: str, highest: Token | None, told: dict[str, Any]
    ) -> None:
        client = hello(client_id, **told)
        how = {"epoch_name": epoch_name, "highest_token": highest}
        self.ask(self.both.register, client, now=at(self.now), **how)

    @rule(
        client_id=ids,
        link=links,
        off_epoch=off,
        off_number=off,
        windows=st.lists(told, unique_by=lambda one: one.window_id, max_size=3),
        contexts=st.lists(contexts, unique_by=lambda one: one.context_id, max_size=3),
    )
    def says(
        self, client_id: ClientId, link: LinkId, off_epoch: int, off_number: int, **said: Any
    ) -> None:
        self.number += 1
        how = {"epoch": self.epoch(client_id, off_epoch), "number": self.number - 1 + off_number}
        self.ask(self.both.report, client_id, link, now=at(self.now), **how, **said)

    @rule(client_id=ids, link=links, up=st.sampled_from([True, True, False]))
    def is_heard_or_hangs_up(self, client_id: ClientId, link: LinkId, up: bool) -> None:
        method = self.both.heard if up else self.both.unlink
        self.ask(method, client_id, link, now=at(self.now))

    @rule(client_id=ids, off=off, drains=st.booleans())
    def goes(self, client_id: ClientId, off: int, drains: bool) -> None:
        if drains:
            self.ask(self.both.set_draining, client_id)
        else:
            self.ask(self.both.remove, client_id, epoch=self.epoch(client_id, off))

    @rule(client_id=ids, context_id=tabs, request=requests, timeout_s=timeouts)
    def takes(
        self, client_id: ClientId, context_id: ContextId, request: Request, timeout_s: float
    ) -> None:
        how = {"now": at(self.now), "timeout_s": timeout_s}
        self.ask(self.both.assign, request, client_id, context_id, **how)

    @precondition(lambda self: self.given)
    @rule(data=st.data(), what=st.sampled_from(["renew", "holds", "release", "restore"]))
    def holders_act(self, data: st.DataObject, what: str) -> None:
        one = data.draw(st.sampled_from(self.given[-4:]))
        place = (one.client_id, one.context_id, one.token)
        match what:
            case "renew":
                self.ask(self.both.renew, *place, now=at(self.now), timeout_s=data.draw(timeouts))
            case "holds":
                self.ask(self.both.holds, *place)
            case "release":
                self.ask(self.both.release, *place)
            case _:
                self.ask(self.both.restore, one)

    @rule(client_id=ids, identity=identities, off=off, back=st.booleans())
    def reserves_a_window(
        self, client_id: ClientId, identity: str | None, off: int, back: bool
    ) -> None:
        if back:
            epoch = self.epoch(client_id, off)
            self.ask(self.both.cancel_window, client_id, epoch=epoch, identity=identity)
        else:
            self.ask(self.both.reserve_window, client_id, identity=identity, now=at(self.now))

    @rule(client_id=ids, window_id=windows, off=off, back=st.booleans())
    def reserves_a_tab(
        self, client_id: ClientId, window_id: WindowId, off: int, back: bool
    ) -> None:
        if back:
            epoch = self.epoch(client_id, off)
            self.ask(self.both.cancel_tab, client_id, window_id, epoch=epoch)
        else:
            self.ask(self.both.reserve_tab, client_id, window_id, now=at(self.now))

    @rule(
        client_id=ids,
        context_id=tabs,
        window_id=st.none() | windows,
        request=requests,
        identity=identities,
        off=off,
        timeout_s=timeouts,
    )
    def settles_something(
        self,
        client_id: ClientId,
        context_id: ContextId,
        window_id: WindowId | None,
        request: Request,
        identity: str | None,
        off: int,
        timeout_s: float,
    ) -> None:
        how = {"epoch": self.epoch(client_id, off), "now": at(self.now), "timeout_s": timeout_s}
        if window_id is None:
            place = (client_id, context_id)
            self.ask(self.both.settle_window, request, *place, identity=identity, **how)
        else:
            self.ask(self.both.settle_tab, request, client_id, window_id, context_id, **how)

    @rule(seconds=st.sampled_from([0.1, 5.3, WINDOW_S]))
    def waits(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def sweeps_up(self) -> None:
        self.ask(self.both.release_expired, now=at(self.now))

    @invariant()
    def both_are_alike(self) -> None:
        if hasattr(self, "both"):
            self.do(self.both.snapshot(now=at(self.now)))


@pytest.fixture(autouse=True)
def _at_the_tests_server(redis_url: str) -> None:
    SideBySide.url = redis_url


quick = settings(max_examples=50, stateful_step_count=30, deadline=None)
MemoryPool.TestCase.settings = quick
BothPools.TestCase.settings = quick
Anything.TestCase.settings = settings(quick, max_examples=100)
TestMemory = MemoryPool.TestCase
TestBothBesideAModel = BothPools.TestCase
TestBothOfAnything = Anything.TestCase
