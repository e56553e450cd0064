"""Whatever registries are told, however odd: in memory and over Redis they answer alike."""

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from farm.core import decide
from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientId,
    ContextId,
    LinkId,
    Namespace,
    Request,
    ReservationId,
    Token,
    WindowId,
)
from farm.core.placement import MUST_CREATE, Mode
from farm.core.pools import Exclusion
from farm.core.reservation import Reservation
from tests.stores.pool import (
    WINDOW_S,
    Everything,
    at,
    hello,
    in_window,
    registered,
    reported,
    request,
)
from tests.stores.registry_values import (
    FIELDS,
    LINKS,
    activities,
    capacities,
    contexts,
    few,
    identities,
    ids,
    metadata,
    namespaces,
    nodes,
    off,
    placements,
    queues,
    requests,
    seldom,
    tabs,
    timeouts,
    told,
    types,
    windows,
)
from tests.stores.side_by_side import SideBySide, at_the_tests_server, quick

__all__ = ["at_the_tests_server"]


class Anything(SideBySide):
    """Both answer alike, also to what no agent or coordinator would ever say."""

    def new(self) -> Everything:
        self.number = 1
        self.given: list[Assignment] = []
        self.reserved: list[Reservation] = []
        both = super().new()
        self.do(self.begin_with_one_that_works())
        return both

    def ask(self, method: Any, *args: Any, **how: Any) -> Any:
        outcome = self.do(method(*args, **how))
        if isinstance(outcome, Assignment):
            self.given.append(outcome)
        if isinstance(outcome, Reservation):
            self.reserved.append(outcome)
        return outcome

    async def begin_with_one_that_works(self) -> None:
        capacity = Capacity(max_concurrency=3, max_windows=3, max_tabs_per_window=2)
        client = hello("a", link="l1", instance="one", metadata={"k": 1}, capacity=capacity)
        client = await registered(self.both, client, epoch="e1")
        tabs = ("T1", in_window("T2", window_id=None))
        link = LinkId("l1")
        await reported(self.both, *tabs, client=client, link=link, identity="shop")

    def link(self, client_id: ClientId, wrong: bool) -> LinkId:
        client = self.client(client_id)
        there = client.link if client is not None else None
        return LinkId("l9") if wrong or there is None else there

    def client(self, client_id: ClientId) -> Client | None:
        clients = self.do(self.both.snapshot(now=at(self.now))).clients
        return next((c for c in clients if c.client_id == client_id), None)

    def epoch(self, client_id: ClientId, off: int) -> int:
        client = self.client(client_id)
        return off + (client.epoch if client is not None else 1)

    def fitting(self, data: st.DataObject, client_id: ClientId) -> tuple[ContextId, Request]:
        """A context, and a request that it would do for but for at most one thing."""
        client = self.client(client_id)
        if client is None or not client.contexts:
            return data.draw(tabs), data.draw(requests)
        context = data.draw(st.sampled_from(list(client.contexts.values())))
        window = client.windows.get(context.window_id) if context.window_id is not None else None
        fits = request(
            namespace=data.draw(st.sampled_from(client.namespaces or ("none",))),
            task_queue=client.task_queue,
            activity_type=data.draw(st.sampled_from([None, *sorted(client.activity_types)])),
            node=data.draw(st.sampled_from([None, client.node])),
            client_type=data.draw(st.sampled_from([None, client.client_type])),
            requirements=data.draw(st.sampled_from([{}, client.metadata])),
            identity=window.identity if window is not None else None,
            profile=window.profile if window is not None else "",
            affinity_client_id=data.draw(st.none() | ids),
            placement=data.draw(st.none() | placements),
        )
        wrong = data.draw(st.sampled_from([*[None] * 5, *FIELDS]))
        if wrong is not None:
            fits = replace(fits, **{wrong: getattr(data.draw(requests), wrong)})
        return context.context_id, fits

    @rule(
        client_id=ids,
        epoch_name=st.sampled_from(["e1", "e1", "e2"]),
        highest=st.none() | st.builds(Token, store_epoch=few, counter=few),
        told=st.fixed_dictionaries(
            {
                "link": st.sampled_from([LINKS[0], *LINKS, None]),
                "instance": st.sampled_from(["one", "one", "two"]),
                "browser": st.sampled_from([None, "", "Chromium 1"]),
                "client_type": types,
                "namespaces": st.lists(namespaces, min_size=1, max_size=2).map(tuple),
                "task_queue": queues,
                "activity_types": activities,
                "node": nodes,
                "metadata": metadata,
                "capacity": capacities,
                "draining": seldom,
                "excluded": st.none() | st.sampled_from(Exclusion),
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
        wrong_link=seldom,
        off_epoch=off,
        off_number=off,
        windows=st.lists(told, unique_by=lambda one: one.window_id, max_size=3),
        contexts=st.lists(contexts, unique_by=lambda one: one.context_id, max_size=3),
    )
    def says(
        self, client_id: ClientId, wrong_link: bool, off_epoch: int, off_number: int, **said: Any
    ) -> None:
        self.number += 2
        how = {"epoch": self.epoch(client_id, off_epoch), "number": self.number + 2 * off_number}
        link = self.link(client_id, wrong_link)
        self.ask(self.both.report, client_id, link, now=at(self.now), **how, **said)

    @rule(client_id=ids, wrong_link=seldom)
    def is_proven(self, client_id: ClientId, wrong_link: bool) -> None:
        self.ask(self.both.proven, client_id, self.link(client_id, wrong_link))

    @rule(client_id=ids, wrong_link=seldom, gone=seldom)
    def hangs_up_or_is_heard(self, client_id: ClientId, wrong_link: bool, gone: bool) -> None:
        method = self.both.unlink if gone else self.both.heard
        self.ask(method, client_id, self.link(client_id, wrong_link), now=at(self.now))

    @rule(client_id=ids, off=off, drains=st.sampled_from((None, True, False)), really=seldom)
    def goes(self, client_id: ClientId, off: int, drains: bool | None, really: bool) -> None:
        if not really:
            return
        if drains and off:
            self.ask(self.both.fence, client_id, by=f"{off}", now=at(self.now))
        elif drains is not None:
            self.ask(self.both.set_draining, client_id, drains, because=f"{off}")
        else:
            self.ask(self.both.remove, client_id, epoch=self.epoch(client_id, off))

    @rule(client_id=ids, data=st.data(), timeout_s=timeouts)
    def takes(self, client_id: ClientId, data: st.DataObject, timeout_s: float) -> None:
        context_id, request = self.fitting(data, client_id)
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

    @rule(client_id=ids, data=st.data(), timeout_s=timeouts)
    def takes_whatever_is_at_hand(
        self, client_id: ClientId, data: st.DataObject, timeout_s: float
    ) -> None:
        _, asked = self.fitting(data, client_id)
        request = _reusing(asked)
        snapshot = self.do(self.both.snapshot(now=at(self.now)))
        there = {c.key for c in decide.candidates(request, snapshot)}
        how = {"now": at(self.now), "timeout_s": timeout_s}
        found = self.ask(self.both.assign_first, request, **how)
        # With so few contexts all of them are looked at: one is had exactly where one would do.
        assert (found is None) == (not there)
        if found is not None:
            assert (found.client_id, found.context_id) in there
            near = {client_id for client_id, _ in there} & {request.affinity_client_id}
            assert not near or found.client_id in near

    @rule(client_id=ids, namespace=namespaces, wrong_link=seldom, any_link=st.booleans())
    def is_released(
        self, client_id: ClientId, namespace: Namespace, wrong_link: bool, any_link: bool
    ) -> None:
        link = None if any_link else self.link(client_id, wrong_link)
        self.ask(self.both.release_client, namespace, client_id, link=link)

    @rule(namespace=namespaces)
    def takes_a_turn(self, namespace: Namespace) -> None:
        self.ask(self.both.next_turn, namespace)

    @rule(client_id=ids, data=st.data(), window_id=st.none() | windows)
    def reserves_for_a_request(
        self, client_id: ClientId, data: st.DataObject, window_id: WindowId | None
    ) -> None:
        _, request = self.fitting(data, client_id)
        if window_id is None:
            self.ask(self.both.reserve_window_for, request, client_id, now=at(self.now))
        else:
            self.ask(self.both.reserve_tab_for, request, client_id, window_id, now=at(self.now))

    @rule(client_id=ids)
    def reserves_a_flow(self, client_id: ClientId) -> None:
        self.ask(self.both.reserve_flow, client_id, now=at(self.now))

    @rule(client_id=ids, identity=identities)
    def reserves_a_window(self, client_id: ClientId, identity: str | None) -> None:
        self.ask(self.both.reserve_window, client_id, identity=identity, now=at(self.now))

    @rule(client_id=ids, window_id=windows)
    def reserves_a_tab(self, client_id: ClientId, window_id: WindowId) -> None:
        self.ask(self.both.reserve_tab, client_id, window_id, now=at(self.now))

    @rule(client_id=ids, data=st.data(), how=st.sampled_from(["any", "any", "one", "list"]))
    def takes_a_slot_or_looks(self, client_id: ClientId, data: st.DataObject, how: str) -> None:
        _, request = self.fitting(data, client_id)
        match how:
            case "any":
                self.ask(self.both.select_and_reserve, request, now=at(self.now))
            case "one":
                self.ask(self.both.reserve_worker, request, client_id, now=at(self.now))
            case _:
                self.ask(self.both.workers_for, request, now=at(self.now))

    @rule(client_id=ids, wrong_link=seldom, slots=st.integers(1, 4))
    def announces(self, client_id: ClientId, wrong_link: bool, slots: int) -> None:
        link = self.link(client_id, wrong_link)
        self.ask(self.both.set_advertised_capacity, client_id, link, slots)

    @rule(data=st.data(), client_id=ids, wrong_id=seldom, wrong_client=seldom, timeout_s=timeouts)
    def commits_something(
        self,
        data: st.DataObject,
        client_id: ClientId,
        wrong_id: bool,
        wrong_client: bool,
        timeout_s: float,
    ) -> None:
        reservation: Reservation | None = None
        reserved = data.draw(st.booleans())
        if self.reserved and reserved:
            reservation = self.some_reservation(data, wrong_id, wrong_client)
            client_id = reservation.site.client_id
        context_id, request = self.fitting(data, client_id)
        how: dict[str, Any] = {"reservation": reservation, "timeout_s": timeout_s}
        self.ask(self.both.commit, request, client_id, context_id, now=at(self.now), **how)

    @precondition(lambda self: self.reserved)
    @rule(data=st.data(), wrong_id=seldom, wrong_client=seldom)
    def cancels_something(self, data: st.DataObject, wrong_id: bool, wrong_client: bool) -> None:
        self.ask(self.both.cancel, self.some_reservation(data, wrong_id, wrong_client))

    @precondition(lambda self: self.reserved)
    @rule(data=st.data(), wrong_id=seldom, wrong_client=seldom, timeout_s=timeouts)
    def settles_something(
        self, data: st.DataObject, wrong_id: bool, wrong_client: bool, timeout_s: float
    ) -> None:
        reservation = self.some_reservation(data, wrong_id, wrong_client)
        context_id, request = self.fitting(data, reservation.site.client_id)
        how = {"now": at(self.now), "timeout_s": timeout_s}
        self.ask(self.both.settle, request, reservation, context_id, **how)

    def some_reservation(
        self, data: st.DataObject, wrong_id: bool, wrong_client: bool
    ) -> Reservation:
        """One that is open, or no more, or never was."""
        found = data.draw(st.sampled_from(self.reserved[-4:]))
        if wrong_id:
            found = replace(found, reservation_id=ReservationId("nobody's"))
        if wrong_client:
            found = replace(found, site=replace(found.site, client_id=data.draw(ids)))
        return found

    @rule(seconds=st.sampled_from([0.1, 2.3, WINDOW_S]))
    def waits(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        coordinator=st.sampled_from(["one", "two", "{3}"]),
        excluded=st.dictionaries(ids, st.sampled_from(Exclusion), max_size=2),
        lease_s=st.sampled_from([0.1, 2.3]),
    )
    def finds_who_does_not_answer(
        self, coordinator: str, excluded: dict[ClientId, Exclusion], lease_s: float
    ) -> None:
        how = {"now": at(self.now), "lease_s": lease_s}
        self.ask(self.both.publish_exclusions, coordinator, excluded, **how)
        self.ask(self.both.exclusions, now=at(self.now))

    @rule()
    def sweeps_up(self) -> None:
        self.ask(self.both.release_expired, now=at(self.now))

    @invariant()
    def both_are_alike(self) -> None:
        if hasattr(self, "both"):
            self.do(self.both.snapshot(now=at(self.now)))


def _reusing(request: Request) -> Request:
    """Return the request as one for which something that is there may do."""
    if request.placement is None or request.mode not in MUST_CREATE:
        return request
    return replace(request, placement=replace(request.placement, mode=Mode.REUSE_ONLY))


Anything.TestCase.settings = settings(quick, max_examples=100)
TestBothOfAnything = Anything.TestCase
