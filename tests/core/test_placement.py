"""Each mode says where a task may work; none of them grants creation."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core import decide
from farm.core.decide import Need
from farm.core.eligibility import Reason, reject_client
from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Owner,
    Request,
    Snapshot,
    Window,
    WindowId,
)
from farm.core.placement import (
    ANYWHERE,
    MUST_CREATE,
    BrowserPlacement,
    Fill,
    Means,
    Mode,
    identity_in,
)
from tests.core.test_decide import NOW, WINDOW_S, _assignment, requests, snapshots
from tests.core.test_decide import client as some_client
from tests.core.test_decide import request as some_request
from tests.core.test_decide import snapshot as of

ROOM = Capacity(max_concurrency=9, max_windows=3, max_tabs_per_window=2, max_flows=2)

EVERYTHING = Means()


@st.composite
def placements(draw: st.DrawFn) -> BrowserPlacement:
    identity = draw(st.sampled_from([None, "shop"]))
    mode = draw(st.sampled_from([m for m in Mode if m is not Mode.IDENTITY or identity]))
    return BrowserPlacement(
        mode=mode,
        window_id=draw(st.sampled_from(["W0", "W1"])) if mode is Mode.NAMED_WINDOW else None,
        identity=identity,
        exclusive=identity is not None and draw(st.booleans()),
        fill=draw(st.sampled_from(Fill)),
        max_windows=draw(st.sampled_from([None, 1, 2])),
        max_tabs_per_window=draw(st.sampled_from([None, 1, 2])),
    )


placed = st.builds(
    lambda request, placement: replace(request, placement=placement, identity=placement.identity),
    requests,
    placements(),
)


def with_tabs(
    *tabs: str, identity: str | None = None, held: tuple[Assignment, ...] = (), **changes: Any
) -> Client:
    """A client with tabs; `W1.a` is in the window W1."""
    contexts = {
        ContextId(t): Context(context_id=ContextId(t), window_id=WindowId(t.split(".")[0]))
        for t in tabs
    }
    windows = {
        c.window_id: Window(window_id=c.window_id, identity=identity)
        for c in contexts.values()
        if c.window_id is not None
    }
    given: dict[str, Any] = {
        "capacity": ROOM,
        "contexts": contexts,
        "windows": windows,
        "assignments": {a.context_id: a for a in held},
    }
    return some_client(**(given | changes))


def asks(mode: Mode, *, auto_provision: bool = True, **options: Any) -> Request:
    placement = BrowserPlacement(mode=mode, **options)
    return some_request(
        placement=placement, identity=placement.identity, auto_provision=auto_provision
    )


def held(tab: str, *, dedicated: bool) -> Assignment:
    return replace(_assignment("c", tab), dedicated=dedicated)


def reason(request: Request, *clients: Client, means: Means = EVERYTHING) -> Reason | None:
    return decide.explain(request, of(*clients), means).reason


@given(request=placed, snapshot=snapshots)
def test_no_mode_creates_without_permission(request: Request, snapshot: Snapshot) -> None:
    asked = replace(request, auto_provision=False)
    assert decide.sites(asked, snapshot) == []
    verdict = decide.explain(asked, snapshot)
    for client in snapshot.clients:
        if reject_client(asked, client, now=NOW, window_s=WINDOW_S) is None:
            assert verdict.clients[client.client_id] is Reason.CREATION_NOT_PERMITTED


@given(request=placed, snapshot=snapshots)
def test_where_there_is_a_site_there_is_room_within_the_requests_own_caps(
    request: Request, snapshot: Snapshot
) -> None:
    assert request.placement is not None
    for site in decide.sites(request, snapshot):
        client = next(c for c in snapshot.clients if c.client_id == site.client_id)
        most = client.capacity
        if site.need is Need.WINDOW:
            cap = min(most.max_windows, request.placement.max_windows or 99)
            assert client.worker_windows() + client.opening_windows < cap
        if site.need is Need.TAB:
            assert site.window_id is not None
            cap = min(most.max_tabs_per_window, request.placement.max_tabs_per_window or 99)
            assert decide.tabs_in(client, site.window_id) < cap
            window = client.windows[site.window_id]
            assert window.owner is Owner.WORKER
            assert window.identity == request.identity is not None


@given(request=placed, snapshot=snapshots)
def test_a_candidate_is_where_the_mode_says(request: Request, snapshot: Snapshot) -> None:
    assert request.placement is not None
    for found in decide.candidates(request, snapshot):
        assert request.mode not in MUST_CREATE
        assert found.context.window_id is not None or request.mode in ANYWHERE
        if request.mode is Mode.NAMED_WINDOW:
            assert found.context.window_id == request.placement.window_id
        if request.dedicated and found.context.window_id is not None:
            beside = [
                c
                for c in found.client.contexts.values()
                if c.window_id == found.context.window_id and c is not found.context
            ]
            assert not any(c.context_id in found.client.assignments for c in beside)


@given(request=placed, snapshot=snapshots)
def test_every_client_has_a_reason_and_nothing_is_both_refused_and_offered(
    request: Request, snapshot: Snapshot
) -> None:
    verdict = decide.explain(request, snapshot)
    assert set(verdict.clients) == {c.client_id for c in snapshot.clients}
    for site in decide.sites(request, snapshot):
        assert verdict.clients[site.client_id] is Reason.LOST_RACE
    for found in decide.candidates(request, snapshot):
        assert verdict.contexts[found.key] is Reason.LOST_RACE


SITES = [
    (asks(Mode.REUSE_ONLY), Reason.CREATION_NOT_PERMITTED),
    (asks(Mode.PREFER_REUSE), Need.WINDOW),
    (asks(Mode.PREFER_REUSE, identity="shop"), Need.TAB),
    (asks(Mode.NEW_TAB), Reason.IDENTITY_NOT_NAMED),
    (asks(Mode.NEW_TAB, identity="shop"), Need.TAB),
    (asks(Mode.NEW_TAB, identity="other"), Reason.NO_SUCH_WINDOW),
    (asks(Mode.NEW_WINDOW), Need.WINDOW),
    (asks(Mode.NEW_WINDOW, identity="shop"), Reason.IDENTITY_ELSEWHERE),
    (asks(Mode.NEW_WINDOW, identity="other"), Need.WINDOW),
    (asks(Mode.DEDICATED_WINDOW), Need.WINDOW),
    (asks(Mode.NAMED_WINDOW, window_id="W1", identity="shop"), Need.TAB),
    (asks(Mode.NAMED_WINDOW, window_id="W1"), Reason.OTHER_IDENTITY),
    (asks(Mode.NAMED_WINDOW, window_id="W9"), Reason.NO_SUCH_WINDOW),
    (asks(Mode.IDENTITY, identity="shop"), Need.TAB),
    (asks(Mode.IDENTITY, identity="other"), Need.WINDOW),
    (asks(Mode.NEW_WINDOW, max_windows=1), Reason.NO_WINDOW_FREE),
    (asks(Mode.NEW_TAB, identity="shop", max_tabs_per_window=1), Reason.NO_TAB_FREE),
]


@pytest.mark.parametrize(("request_", "expected"), SITES, ids=lambda v: str(v)[-60:])
def test_what_each_mode_creates_beside_a_window_that_holds_an_identity(
    request_: Request, expected: Need | Reason
) -> None:
    client = with_tabs("W1.a", identity="shop", held=(held("W1.a", dedicated=False),))
    found = decide.sites(request_, of(client))
    if isinstance(expected, Need):
        assert [site.need for site in found] == [expected]
    else:
        assert found == []
        assert reason(request_, client) is expected


def test_a_new_tab_in_an_anonymous_window_is_opened_for_nobody() -> None:
    client = with_tabs("W1.a", held=(held("W1.a", dedicated=False),))
    assert reason(asks(Mode.NAMED_WINDOW, window_id="W1"), client) is Reason.IDENTITY_NOT_NAMED


def test_a_tab_is_opened_in_no_window_of_other_options() -> None:
    client = with_tabs("W1.a", identity="shop", held=(held("W1.a", dedicated=False),))
    wide = replace(asks(Mode.IDENTITY, identity="shop"), profile="wide")
    assert reason(wide, client) is Reason.OTHER_OPTIONS


@pytest.mark.parametrize("mode", sorted(MUST_CREATE))
def test_a_mode_that_must_create_takes_nothing_that_is_there(mode: Mode) -> None:
    request = asks(mode, auto_provision=False, identity="shop")
    client = with_tabs("W1.a", identity="shop")
    assert decide.candidates(request, of(client)) == []
    verdict = decide.explain(request, of(client))
    assert verdict.reason is Reason.CREATION_NOT_PERMITTED
    assert set(verdict.contexts.values()) == {Reason.MUST_BE_NEW}


def test_anonymous_work_has_a_window_of_its_own_unless_it_asks_otherwise() -> None:
    client = with_tabs("W1.a", "W1.b", held=(held("W1.a", dedicated=False),))
    plain = some_request()
    assert plain.mode is Mode.DEDICATED_WINDOW
    assert decide.candidates(plain, of(client)) == []
    verdict = decide.explain(plain, of(client))
    assert verdict.contexts[ClientId("c"), ContextId("W1.b")] is Reason.WINDOW_SHARED
    (found,) = decide.candidates(asks(Mode.REUSE_ONLY), of(client))
    assert found.context_id == "W1.b"


def test_nobody_is_given_a_tab_in_a_window_that_is_held_alone() -> None:
    client = with_tabs("W1.a", "W1.b", held=(held("W1.a", dedicated=True),))
    verdict = decide.explain(asks(Mode.REUSE_ONLY), of(client))
    assert verdict.contexts[ClientId("c"), ContextId("W1.b")] is Reason.WINDOW_DEDICATED


@pytest.mark.parametrize("beside", [{"clean": False}, {"owner": Owner.USER}], ids=str)
def test_a_window_with_what_others_left_in_it_is_dedicated_to_nobody(
    beside: dict[str, Any],
) -> None:
    left = Context(context_id=ContextId("W1.b"), window_id=WindowId("W1"), **beside)
    client = with_tabs("W1.a")
    client = replace(client, contexts={**client.contexts, left.context_id: left})
    assert decide.candidates(some_request(), of(client)) == []


def test_an_exclusive_identity_is_worked_in_by_one_task_at_a_time() -> None:
    client = with_tabs("W1.a", "W1.b", identity="shop", held=(held("W1.a", dedicated=False),))
    alone = asks(Mode.IDENTITY, identity="shop", exclusive=True)
    assert decide.candidates(alone, of(client)) == []
    free = with_tabs("W1.a", "W1.b", identity="shop")
    assert len(decide.candidates(alone, of(free))) == 2
    # Nor is a tab opened in its window while somebody works there.
    full = with_tabs("W1.a", identity="shop", held=(held("W1.a", dedicated=False),))
    assert reason(alone, full) is Reason.WINDOW_SHARED


@pytest.mark.parametrize(
    ("kind", "asked", "expected"),
    [
        (ClientType.CONSOLE, ClientType.CONSOLE, Need.FLOW),
        (ClientType.CONSOLE, None, Reason.CANNOT_PROVISION_TYPE),
        (ClientType.MOBILE, ClientType.MOBILE, Reason.CANNOT_PROVISION_TYPE),
        (ClientType.WEB, ClientType.WEB, Reason.CANNOT_PROVISION_TYPE),
        (ClientType.BROWSER, None, Need.WINDOW),
    ],
)
def test_what_is_created_by_client_type(
    kind: ClientType, asked: ClientType | None, expected: Need | Reason
) -> None:
    request = some_request(client_type=asked, auto_provision=True)
    client = some_client(client_type=kind, capacity=ROOM)
    found = decide.sites(request, of(client))
    if isinstance(expected, Need):
        assert [site.need for site in found] == [expected]
    else:
        assert reason(request, client) is expected


@pytest.mark.parametrize("mode", [m for m in Mode if m not in ANYWHERE])
def test_who_asks_for_a_window_is_neither_lent_nor_made_a_flow(mode: Mode) -> None:
    window = "W1" if mode is Mode.NAMED_WINDOW else None
    placement = BrowserPlacement(mode=mode, window_id=window, identity="shop")
    flow = Context(context_id=ContextId("f"))
    console = some_client(
        client_type=ClientType.CONSOLE, capacity=ROOM, contexts={flow.context_id: flow}
    )
    for kind in (None, ClientType.CONSOLE):
        request = some_request(client_type=kind, placement=placement, auto_provision=True)
        assert decide.candidates(request, of(console)) == []
        assert reason(request, console) is Reason.CANNOT_PROVISION_TYPE
    plain = some_request(placement=BrowserPlacement(mode=Mode.REUSE_ONLY))
    assert len(decide.candidates(plain, of(console))) == 1


def test_flows_that_are_there_or_being_created_count() -> None:
    request = some_request(client_type=ClientType.CONSOLE, auto_provision=True)
    flow = Context(context_id=ContextId("f"), clean=False)
    client = some_client(
        client_type=ClientType.CONSOLE,
        capacity=ROOM,
        contexts={flow.context_id: flow},
        opening_flows=1,
    )
    assert reason(request, client) is Reason.NO_FLOW_FREE


@pytest.mark.parametrize(
    ("means", "kind", "expected"),
    [
        (Means(app_node=False), ClientType.BROWSER, Reason.NO_APP_NODE),
        (Means(windows=False), ClientType.BROWSER, Reason.NO_BROWSER_WINDOW_REGISTRY),
        (Means(flows=False), ClientType.CONSOLE, Reason.NO_FLOW_REGISTRY),
        (Means(not_on=frozenset({"c"})), ClientType.BROWSER, Reason.NOT_PROVISIONING_OWNER),
    ],
    ids=lambda v: str(v)[:40],
)
def test_what_is_missing_to_create_with_is_said_by_its_name(
    means: Means, kind: ClientType, expected: Reason
) -> None:
    request = some_request(client_type=kind, auto_provision=True)
    client = some_client(client_type=kind, capacity=ROOM)
    assert reason(request, client, means=means) is expected
    assert decide.sites(request, of(client), means) == []


def test_packed_the_fullest_comes_first_and_spread_the_emptiest() -> None:
    busy = with_tabs("W1.a", "W2.a", client_id=ClientId("z"), held=(held("W1.a", dedicated=True),))
    idle = with_tabs("W3.a", client_id=ClientId("a"))
    for fill, first in ((Fill.PACK, "z"), (Fill.SPREAD, "a")):
        request = asks(Mode.PREFER_REUSE, fill=fill)
        assert next(decide.each_candidate(request, of(idle, busy))).client_id == first
        assert decide.sites(request, of(idle, busy))[0].client_id == first


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": Mode.NAMED_WINDOW},
        {"mode": Mode.NEW_TAB, "window_id": "W1"},
        {"mode": Mode.IDENTITY},
        {"identity": ""},
        {"exclusive": True},
        {"max_windows": 0},
        {"max_tabs_per_window": -1},
    ],
    ids=str,
)
def test_a_placement_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        BrowserPlacement(**wrong)


def test_one_name_of_an_identity_in_two_namespaces_is_two_identities() -> None:
    assert identity_in("a", "shop") != identity_in("b", "shop")
