"""A machine that does to a registry whatever agents and coordinators do, in whatever order."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    Context,
    ContextId,
    LinkId,
    ReservationId,
    Token,
    WindowId,
)
from farm.core.placement import BrowserPlacement, Mode
from farm.core.reservation import Denial, Reservation
from farm.core.sites import Need
from tests.stores.pool import (
    NS,
    RESERVED_S,
    TIMEOUT_S,
    WINDOW_S,
    Everything,
    at,
    hello,
    in_window,
    registered,
    request,
)
from tests.stores.pool import reported as report

T = TypeVar("T")
IDS = ("a", "b")
TABS = ("T1", "T2", "T3")
agents = st.sampled_from(IDS)
tabs = st.sampled_from(TABS)


class Machine(RuleBasedStateMachine):
    """A registry, a clock, and a loop to ask the registry in."""

    def new(self) -> Everything:
        """Make the registry, empty and of store epoch 1."""
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.now = 0.0
        self.registry = self.new()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()


class Pool(Machine):
    """What any registry does, beside a model of what it should."""

    @initialize()
    def begin_the_model(self) -> None:
        self.links = 0
        self.known: dict[str, Client] = {}
        self.numbers: dict[str, int] = {}
        self.held: dict[tuple[str, str], Assignment] = {}
        self.ended: list[Assignment] = []
        self.reserved: dict[ReservationId, tuple[Reservation, float]] = {}
        """Those that are open, and when each is over."""
        self.closed: list[Reservation] = []
        self.highest: dict[str, Token] = {}
        self.turns = 0
        self.used: dict[str, int] = {}
        self.last: str | None = None
        """Whose turn it last was."""

    def _end(self, *ended: Assignment) -> None:
        for one in ended:
            assert self.held.pop((one.client_id, one.context_id)).token == one.token
            self.ended.append(one)

    def _open(self) -> list[Reservation]:
        return [one for one, _ in self.reserved.values()]

    def _close(self, *ended: Reservation) -> None:
        for one in ended:
            del self.reserved[one.reservation_id]
            self.closed.append(one)

    def _all_of(self, agent: str) -> list[Assignment]:
        return [one for (client_id, _), one in self.held.items() if client_id == agent]

    @rule(agent=agents, fresh=st.booleans())
    def dials(self, agent: str, fresh: bool) -> None:
        self.links += 1
        known = self.known.get(agent)
        epoch = f"{agent}-{self.links if fresh or known is None else known.browser}"
        name = epoch.removeprefix(f"{agent}-")
        client = hello(agent, link=f"link-{self.links}", browser=name)
        after = self.do(registered(self.registry, client, epoch=epoch, now=at(self.now)))
        if known is not None and not fresh:
            assert after.epoch == known.epoch
        elif known is not None:
            assert after.epoch > known.epoch
        if fresh or known is None:
            # A new life of the browser has none of what the last one held.
            self._end(*self._all_of(agent))
            self._close(*(one for one in self._open() if one.site.client_id == agent))
        self.known[agent], self.numbers[agent] = after, 0

    @precondition(lambda self: self.known)
    @rule(agent=agents, there=st.sets(tabs), dirty=st.sets(tabs), old=st.booleans())
    def reports(self, agent: str, there: set[str], dirty: set[str], old: bool) -> None:
        known = self.known.get(agent)
        if known is None or known.link is None:
            return
        number = self.numbers[agent] + (0 if old else 1)
        contexts: list[Context] = [in_window(tab, clean=tab not in dirty) for tab in sorted(there)]
        outcome = self.do(
            report(
                self.registry,
                *contexts,
                client=known,
                number=number,
                link=known.link,
                now=at(self.now),
            )
        )
        if old:
            assert outcome is Denial.STALE
            return
        assert not isinstance(outcome, Denial)
        self.numbers[agent] = number
        missing = {o.context_id for o in self._all_of(agent) if o.context_id not in there}
        assert {one.context_id for one in outcome} == missing
        self._end(*outcome)

    @rule(agent=agents, tab=tabs)
    def asks(self, agent: str, tab: str) -> None:
        present = self._present()
        outcome = self.do(
            self.registry.assign(
                request(),
                ClientId(agent),
                ContextId(tab),
                now=at(self.now),
                timeout_s=TIMEOUT_S,
            )
        )
        if isinstance(outcome, Denial):
            return
        assert agent in present
        self._holds(outcome)

    @rule(near=st.none() | agents)
    def asks_for_any(self, near: str | None) -> None:
        present = self._present()
        asked = request(affinity_client_id=near)
        outcome = self.do(self.registry.assign_first(asked, now=at(self.now), timeout_s=TIMEOUT_S))
        if outcome is not None:
            assert outcome.client_id in present
            self._holds(outcome)

    @rule(agent=agents)
    def is_released(self, agent: str) -> None:
        ended = self.do(self.registry.release_client(NS, ClientId(agent), link=None))
        assert {one.token for one in ended} == {one.token for one in self._all_of(agent)}
        self._end(*ended)

    @rule()
    def takes_a_turn(self) -> None:
        assert self.do(self.registry.next_turn(NS)) == self.turns
        self.turns += 1

    @rule(agent=agents, limit=st.sampled_from([1, 2, 99]))
    def reserves_within_a_limit_of_its_own(self, agent: str, limit: int) -> None:
        before = self._client(agent)
        asked = request(placement=BrowserPlacement(mode=Mode.NEW_WINDOW, max_windows=limit))
        outcome = self.do(
            self.registry.reserve_window_for(asked, ClientId(agent), now=at(self.now))
        )
        if not isinstance(outcome, Denial):
            assert before is not None
            assert len(before.windows) + before.opening_windows < limit
            self._reserves(outcome, before)

    def _client(self, agent: str) -> Client | None:
        clients = self.do(self.registry.snapshot(now=at(self.now))).clients
        return next((c for c in clients if c.client_id == agent), None)

    def _reserves(self, one: Reservation, before: Client | None) -> None:
        assert before is not None
        assert one.site.client_id in self._present()
        assert one.epoch == before.epoch
        assert one.reservation_id not in {
            *self.reserved,
            *(other.reservation_id for other in self.closed),
        }
        if one.site.need is Need.SLOT:
            assert before.used_slots() < (before.capacity.max_concurrency or 0)
        elif one.site.need is Need.WINDOW:
            there = len(before.windows) + before.opening_windows
            assert there < before.capacity.max_windows
        else:
            window_id = one.site.window
            there = len(before.tabs_in(window_id)) + before.opening_tabs.get(window_id, 0)
            assert there < before.capacity.max_tabs_per_window
        self.reserved[one.reservation_id] = (one, at(self.now) + RESERVED_S)

    def _present(self) -> set[str]:
        snapshot = self.do(self.registry.snapshot(now=at(self.now)))
        return {
            client.client_id
            for client in snapshot.clients
            if client.link is not None and at(self.now) - client.seen_at <= WINDOW_S
        }

    def _holds(self, one: Assignment) -> None:
        key = (one.client_id, one.context_id)
        assert key not in self.held
        last = self.highest.get(one.client_id)
        assert last is None or one.token > last
        self.highest[one.client_id] = one.token
        self.held[key] = one

    @rule(agent=agents, identity=st.sampled_from([None, "shop"]))
    def reserves(self, agent: str, identity: str | None) -> None:
        before = self._client(agent)
        outcome = self.do(
            self.registry.reserve_window(ClientId(agent), identity=identity, now=at(self.now))
        )
        if not isinstance(outcome, Denial):
            assert identity is None or all(one.identity != identity for one in self._open())
            self._reserves(outcome, before)

    @rule(agent=st.none() | agents)
    def takes_a_slot(self, agent: str | None) -> None:
        """Of one agent, or of whose turn it is: the first with a slot after who was last."""
        free = {one for one in sorted(self._present()) if self._has_slot(one)}
        before = {one: self._client(one) for one in IDS}
        now = at(self.now)
        if agent is not None:
            found = self.do(self.registry.reserve_worker(request(), ClientId(agent), now=now))
            outcome = None if isinstance(found, Denial) else found
            assert (outcome is not None) == (agent in free)
        else:
            outcome = self.do(self.registry.select_and_reserve(request(), now=now))
            assert (outcome is not None) == bool(free)
        if outcome is None:
            return
        if agent is None:
            assert outcome.site.client_id == self._next(free)
            self.last = outcome.site.client_id
        self._reserves(outcome, before[outcome.site.client_id])

    def _next(self, some: set[str]) -> str:
        later = [one for one in sorted(some) if self.last is not None and one > self.last]
        return (later or sorted(some))[0]

    def _has_slot(self, agent: str) -> bool:
        client = self._client(agent)
        return client is not None and client.used_slots() < (client.capacity.max_concurrency or 0)

    @rule()
    def looks_at_who_would_do(self) -> None:
        there = self._present()
        found = self.do(self.registry.workers_for(request(), now=at(self.now)))
        assert set(found) == there
        if found:
            assert found[0] == self._next(there)
            assert list(found) == sorted(found, key=lambda one: (one < found[0], one))
            self.last = found[0]

    @rule(agent=agents, slots=st.integers(1, 3))
    def announces(self, agent: str, slots: int) -> None:
        known = self.known.get(agent)
        link = known.link if known is not None else None
        outcome = self.do(
            self.registry.set_advertised_capacity(ClientId(agent), link or LinkId("another"), slots)
        )
        assert outcome == (link is not None)

    @precondition(lambda self: self.reserved)
    @rule(data=st.data(), tab=tabs, double=st.booleans())
    def commits(self, data: st.DataObject, tab: str, double: bool) -> None:
        one = data.draw(st.sampled_from(self._open()))
        client_id = one.site.client_id
        if one.site.need is not Need.SLOT:
            return
        used = self._used(client_id)
        held = self.held.get((client_id, tab))
        task = held.task_id if held is not None and double else f"of {one.reservation_id}"
        outcome = self.do(
            self.registry.commit(
                request(task),
                client_id,
                ContextId(tab),
                reservation=one,
                now=at(self.now),
                timeout_s=TIMEOUT_S,
            )
        )
        if isinstance(outcome, Denial):
            assert outcome is not Denial.GONE or tab not in self._contexts(client_id)
            assert self._used(client_id) == used
            return
        self._close(one)
        if held is not None:
            assert outcome == held
            assert self._used(client_id) == used - 1
            return
        self._holds(outcome)
        assert self._used(client_id) == used

    def _used(self, agent: str) -> int:
        client = self._client(agent)
        return 0 if client is None else client.used_slots()

    def _contexts(self, agent: str) -> set[str]:
        client = self._client(agent)
        return set() if client is None else set(client.contexts)

    @rule(agent=agents, tab=tabs)
    def reserves_a_tab(self, agent: str, tab: str) -> None:
        before = self._client(agent)
        window_id = WindowId(tab.replace("T", "W"))
        outcome = self.do(self.registry.reserve_tab(ClientId(agent), window_id, now=at(self.now)))
        if not isinstance(outcome, Denial):
            self._reserves(outcome, before)

    @precondition(lambda self: self.reserved)
    @rule(data=st.data())
    def gives_back(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self._open()))
        self.do(self.registry.cancel(one))
        self._close(one)

    def _settles(self, one: Reservation, tab: str) -> Assignment | Denial:
        return self.do(
            self.registry.settle(
                request(identity=one.identity),
                one,
                ContextId(tab),
                now=at(self.now),
                timeout_s=TIMEOUT_S,
            )
        )

    @precondition(lambda self: self.reserved)
    @rule(data=st.data(), tab=tabs)
    def settles(self, data: st.DataObject, tab: str) -> None:
        one = data.draw(st.sampled_from(self._open()))
        outcome = self._settles(one, tab)
        assert outcome is not Denial.GONE
        if isinstance(outcome, Assignment):
            assert outcome.reservation_id == one.reservation_id
            self._close(one)
            self._holds(outcome)

    @precondition(lambda self: self.closed)
    @rule(data=st.data(), tab=tabs)
    def what_was_settled_or_given_back_is_named_again(self, data: st.DataObject, tab: str) -> None:
        one = data.draw(st.sampled_from(self.closed[-5:]))
        self.do(self.registry.cancel(one))
        made_of_it = self.held.get((one.site.client_id, tab))
        if made_of_it is not None and made_of_it.reservation_id != one.reservation_id:
            made_of_it = None
        assert self._settles(one, tab) == (made_of_it or Denial.GONE)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), renew=st.booleans())
    def releases_or_renews(self, data: st.DataObject, renew: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        one = self.held[key]
        if renew:
            renewed = self.do(
                self.registry.renew(
                    one.client_id,
                    one.context_id,
                    one.token,
                    now=at(self.now),
                    timeout_s=TIMEOUT_S,
                )
            )
            assert renewed is not None
            self.held[key] = renewed
            return
        assert self.do(self.registry.release(one.client_id, one.context_id, one.token))
        self._end(one)

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def a_stale_holder_tries(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.ended[-5:]))
        place = (one.client_id, one.context_id, one.token)
        assert not self.do(self.registry.holds(*place))
        assert not self.do(self.registry.release(*place))
        assert self.do(self.registry.renew(*place, now=at(self.now), timeout_s=9)) is None

    @rule(seconds=st.sampled_from([1.0, WINDOW_S, TIMEOUT_S]), heard=st.booleans())
    def time_passes(self, seconds: float, heard: bool) -> None:
        self.now += seconds
        for known in self.known.values():
            if heard and known.link is not None:
                self.do(self.registry.heard(known.client_id, known.link, now=at(self.now)))

    @rule()
    def sweeps(self) -> None:
        over = {k for k, one in self.held.items() if one.expires_at <= at(self.now)}
        ended = self.do(self.registry.release_expired(now=at(self.now)))
        assert {(one.client_id, one.context_id) for one in ended} == over
        self._end(*ended)
        self._close(*[one for one, until in self.reserved.values() if until <= at(self.now)])

    @rule(agent=agents)
    def hangs_up(self, agent: str) -> None:
        known = self.known.get(agent)
        if known is not None and known.link is not None:
            assert self.do(self.registry.unlink(known.client_id, known.link, now=at(self.now)))
            self.known[agent] = replace(known, link=None)

    @rule(agent=agents)
    def is_removed(self, agent: str) -> None:
        known = self.known.pop(agent, None)
        if known is None:
            return
        if not self.known:
            self.last = None
        ended = self.do(self.registry.remove(known.client_id, epoch=known.epoch))
        assert ended is not None
        assert {one.token for one in ended} == {one.token for one in self._all_of(agent)}
        self._end(*ended)
        self._close(*(one for one in self._open() if one.site.client_id == agent))

    @invariant()
    def it_holds_what_the_model_holds_and_never_more_than_there_is_room_for(self) -> None:
        if not hasattr(self, "registry"):
            return
        snapshot = self.do(self.registry.snapshot(now=at(self.now)))
        there = {}
        for client in snapshot.clients:
            limit = client.capacity.max_concurrency or 0
            # One that has announced fewer keeps what it has, and is given no more.
            before = self.used.get(client.client_id, 0)
            assert 0 <= client.used_slots() <= max(limit, before)
            self.used[client.client_id] = client.used_slots()
            assert set(client.assignments) <= set(client.contexts)
            opening = [one for one in self._open() if one.site.client_id == client.client_id]
            windows = [one for one in opening if one.site.need is Need.WINDOW]
            tabs = Counter(one.site.window for one in opening if one.site.need is Need.TAB)
            identities = Counter(one.identity for one in windows if one.identity is not None)
            assert client.used_slots() == len(client.assignments) + len(opening)
            assert client.opening_windows == len(windows)
            slots = [one for one in opening if one.site.need is Need.SLOT]
            assert client.reserved_slots == len(slots)
            assert dict(client.opening_tabs) == tabs
            assert dict(client.opening_identities) == identities
            for context_id, one in client.assignments.items():
                assert one.epoch == client.epoch
                there[client.client_id, context_id] = one
        assert there == self.held
