"""Whatever is asked of managers, in whatever order, they keep their promises."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farm.core.model import Capacity, ClientType, Context, Namespace
from farm.errors import StaleAssignmentError
from farm.manager import (
    Acquired,
    BrowserPlacement,
    ContextHandle,
    LeastBusyStrategy,
    Mode,
    NotAcquired,
    RoundRobinStrategy,
)
from tests.manager.floor import NS, Agent, Floor

T = TypeVar("T")
OTHER = Namespace("other")
CAPACITY = Capacity(max_concurrency=3, max_windows=3, max_tabs_per_window=2, max_flows=2)
names = st.sampled_from(["a", "b", "con"])
placements = st.sampled_from(
    [
        None,
        *(BrowserPlacement(mode=m) for m in Mode if m not in (Mode.NAMED_WINDOW, Mode.IDENTITY)),
        *(BrowserPlacement(mode=m, identity="shop") for m in (Mode.IDENTITY, Mode.NEW_TAB)),
        BrowserPlacement(mode=Mode.IDENTITY, identity="shop", exclusive=True),
        BrowserPlacement(mode=Mode.NEW_WINDOW, max_windows=1),
    ]
)


class Pool(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.floor = Floor()
        self.managers = [
            self.floor.manager(),
            self.floor.manager(dispatch_strategy=RoundRobinStrategy()),
            self.floor.manager(dispatch_strategy=LeastBusyStrategy()),
        ]
        self.agents: dict[str, Agent] = {}
        self.held: list[ContextHandle] = []
        self.ended: list[ContextHandle] = []
        self.tasks = 0

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()

    @rule(name=names)
    def arrives(self, name: str) -> None:
        if name in self.agents:
            return
        kind = ClientType.CONSOLE if name == "con" else ClientType.BROWSER
        tabs = ["flow"] if name == "con" else ["W1.a", "W1.b", "W2.a"]
        self.agents[name] = self.do(
            self.floor.agent(
                name, *tabs, client_type=kind, capacity=CAPACITY, namespaces=(NS, OTHER)
            )
        )

    @rule(
        manager=st.integers(0, 2),
        namespace=st.sampled_from([NS, OTHER]),
        placement=placements,
        auto_provision=st.booleans(),
        kind=st.sampled_from([None, "browser", "console"]),
        near=st.sampled_from([None, "a", "b"]),
        at_once=st.integers(1, 3),
    )
    def asks(
        self,
        manager: int,
        namespace: str,
        placement: BrowserPlacement | None,
        auto_provision: bool,
        kind: str | None,
        near: str | None,
        at_once: int,
    ) -> None:
        if kind == "console":
            placement = None

        async def ask() -> list[Acquired | NotAcquired]:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        self.managers[(manager + n) % 3].try_acquire(
                            namespace,
                            f"t{self.tasks + n}",
                            client_type=kind,
                            placement=placement,
                            affinity_client_id=near,
                            auto_provision=auto_provision,
                        )
                    )
                    for n in range(at_once)
                ]
            return [task.result() for task in tasks]

        self.tasks += at_once
        before = sum(len(agent.orders) for agent in self.agents.values())
        for outcome in self.do(ask()):
            if isinstance(outcome, Acquired):
                self.held.append(outcome.handle)
            else:
                assert set(outcome.verdict.clients) == set(self.agents)
        if not auto_provision:
            assert sum(len(agent.orders) for agent in self.agents.values()) == before

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def gives_back(self, data: st.DataObject) -> None:
        handle = data.draw(st.sampled_from(self.held))
        assert self.do(handle.release())
        self._end(handle)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def renews(self, data: st.DataObject) -> None:
        self.do(data.draw(st.sampled_from(self.held)).renew())

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def tries_with_a_stale_handle(self, data: st.DataObject) -> None:
        stale = data.draw(st.sampled_from(self.ended))
        assert not self.do(stale.release())
        try:
            self.do(stale.renew())
        except StaleAssignmentError:
            return
        raise AssertionError("renewed")

    @precondition(lambda self: self.agents)
    @rule(data=st.data(), closes=st.booleans())
    def reports(self, data: st.DataObject, closes: bool) -> None:
        agent = data.draw(st.sampled_from(sorted(self.agents.values(), key=lambda a: a.client_id)))
        if closes and agent.contexts:
            gone = data.draw(st.sampled_from(sorted(agent.contexts)))
            closed: Context = agent.contexts.pop(gone)
            if closed.window_id not in {c.window_id for c in agent.contexts.values()}:
                agent.windows = {k: w for k, w in agent.windows.items() if k != closed.window_id}
            for handle in list(self.held):
                held = handle.assignment
                if (held.client_id, held.context_id) == (agent.client_id, gone):
                    self._end(handle)
        self.do(agent.report())

    @rule(seconds=st.sampled_from([1, 150, 301]))
    def time_passes(self, seconds: int) -> None:
        self.floor.passes(seconds)
        over = [h for h in self.held if h.assignment.expires_at <= self.floor.now]
        assert self.do(self.managers[0].release_expired()) == len(over)
        for handle in over:
            self._end(handle)
        for agent in self.agents.values():
            self.do(agent.report())

    @rule(name=names, namespace=st.sampled_from([NS, OTHER]))
    def disconnects(self, name: str, namespace: str) -> None:
        of_it = [
            h
            for h in self.held
            if (h.assignment.client_id, h.assignment.namespace) == (name, namespace)
        ]
        assert self.do(self.managers[0].on_client_disconnect(namespace, name)) == len(of_it)
        for handle in of_it:
            self._end(handle)

    def _end(self, handle: ContextHandle) -> None:
        self.held.remove(handle)
        self.ended.append(handle)

    @invariant()
    def who_holds_is_who_was_told_so_and_nobody_else(self) -> None:
        if not hasattr(self, "floor"):
            return
        there = {(c.client_id, a.token) for c in self.clients() for a in c.assignments.values()}
        held = [(h.assignment.client_id, h.assignment.token) for h in self.held]
        assert len(held) == len(set(held))
        assert set(held) == there

    @invariant()
    def no_limit_is_passed_and_nothing_reserved_is_left(self) -> None:
        if not hasattr(self, "floor"):
            return
        for client in self.clients():
            assert client.used_slots() == len(client.assignments) <= 3
            assert len(client.windows) <= CAPACITY.max_windows
            if client.client_type is ClientType.CONSOLE:
                assert len(client.contexts) <= CAPACITY.max_flows
            for window_id in client.windows:
                inside = [c for c in client.contexts.values() if c.window_id == window_id]
                assert len(inside) <= CAPACITY.max_tabs_per_window

    @invariant()
    def a_window_that_is_held_alone_has_one_holder(self) -> None:
        if not hasattr(self, "floor"):
            return
        for client in self.clients():
            for held in client.assignments.values():
                window_id = client.contexts[held.context_id].window_id
                if not held.dedicated or window_id is None:
                    continue
                beside = [c for c in client.contexts.values() if c.window_id == window_id]
                assert sum(c.context_id in client.assignments for c in beside) == 1

    def clients(self) -> tuple[Any, ...]:
        return self.do(self.floor.registry.snapshot(now=self.floor.now)).clients


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
