"""Every client yields something or has a reason; what it yields satisfies every hard condition."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from farm.core import decide
from farm.core.census import PoolVerdict
from farm.core.decide import Need, Verdict
from farm.core.eligibility import Reason, canonical, meets, reject_client, reject_context
from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    ContextState,
    Instant,
    LinkId,
    Namespace,
    Owner,
    Request,
    Snapshot,
    TaskId,
    Token,
    Window,
    WindowId,
)
from farm.core.pools import Exclusion

NOW = Instant(1_000.0)
WINDOW_S = 10.0

names = st.sampled_from(["a", "b"])
json_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, 2.5]), st.text("ab1")
)
json_values = st.recursive(
    json_leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(names, v), max_leaves=6
)


def _assignment(client_id: str, context_id: str) -> Assignment:
    return Assignment(
        namespace=Namespace("a"),
        client_id=ClientId(client_id),
        epoch=1,
        context_id=ContextId(context_id),
        task_id=TaskId("t"),
        token=Token(store_epoch=1, counter=1),
        since=NOW,
        renewed_at=NOW,
        expires_at=NOW,
    )


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Of many conditions, each is met so often that all are together now and then."""
    return st.sampled_from([*[usual] * 8, *others])


@st.composite
def clients(draw: st.DrawFn, client_id: str) -> Client:
    windows = {
        WindowId(f"W{n}"): Window(
            window_id=WindowId(f"W{n}"),
            identity=draw(st.sampled_from([None, "shop"])),
            profile=draw(mostly("", "wide")),
            owner=draw(mostly(*Owner)),
        )
        for n in range(draw(st.integers(0, 2)))
    }
    contexts = {
        ContextId(f"T{n}"): Context(
            context_id=ContextId(f"T{n}"),
            window_id=draw(st.sampled_from([None, *windows])),
            owner=draw(mostly(*Owner)),
            state=draw(mostly(ContextState.IDLE, *ContextState)),
            clean=draw(mostly(True, False)),
        )
        for n in range(draw(st.integers(0, 3)))
    }
    held = [context_id for context_id in contexts if draw(mostly(False, True))]
    return Client(
        client_id=ClientId(client_id),
        client_type=draw(mostly(*ClientType)),
        link=draw(mostly(LinkId("l"), None)),
        epoch=1,
        instance="i",
        namespaces=tuple(Namespace(n) for n in draw(mostly("ab", "a", "b", ""))),
        metadata=draw(st.dictionaries(names, json_leaves)),
        capacity=Capacity(
            max_concurrency=draw(mostly(4, 1, 2, None)),
            max_windows=draw(st.integers(1, 3)),
            max_tabs_per_window=draw(st.integers(1, 3)),
        ),
        seen_at=Instant(NOW - draw(mostly(0.0, WINDOW_S, WINDOW_S + 0.1))),
        draining=draw(mostly(False, True)),
        task_queue=draw(mostly("", "crawl")),
        activity_types=frozenset(draw(mostly({"a", "b"}, {"b"}))),
        node=draw(mostly("n1", "n2", "", None)),
        excluded=draw(mostly(None, *Exclusion)),
        windows=windows,
        contexts=contexts,
        assignments={c: _assignment(client_id, c) for c in held},
        opening_windows=draw(mostly(0, 1)),
        opening_identities=draw(mostly({}, {"shop": 1})),
    )


snapshots = st.builds(
    lambda one, two: Snapshot(taken_at=NOW, clients=(one, two), presence_window_s=WINDOW_S),
    clients("c1"),
    clients("c2"),
)
requests = st.builds(
    Request,
    namespace=names.map(Namespace),
    task_id=st.just(TaskId("t")),
    task_queue=mostly("default", "crawl"),
    activity_type=mostly(None, "a"),
    node=mostly(None, "n1", "n3"),
    client_type=mostly(None, ClientType.BROWSER, ClientType.CONSOLE),
    requirements=st.just({}) | st.dictionaries(names, json_leaves, max_size=1),
    affinity_client_id=st.sampled_from([None, ClientId("c2")]),
    identity=st.sampled_from([None, "shop"]),
    profile=mostly("", "wide"),
    auto_provision=mostly(True, False),
)


def client(**changes: Any) -> Client:
    values: dict[str, Any] = {
        "client_id": ClientId("c"),
        "client_type": ClientType.BROWSER,
        "link": LinkId("l"),
        "epoch": 1,
        "instance": "i",
        "namespaces": (Namespace("a"),),
        "metadata": {},
        "capacity": Capacity(max_concurrency=2, max_windows=2),
        "seen_at": NOW,
    }
    return Client(**(values | changes))


def request(**changes: Any) -> Request:
    values: dict[str, Any] = {"namespace": Namespace("a"), "task_id": TaskId("t")}
    return Request(**(values | changes))


def snapshot(*those: Client) -> Snapshot:
    return Snapshot(taken_at=NOW, clients=those, presence_window_s=WINDOW_S)


@pytest.mark.parametrize(
    "yields",
    [
        lambda *those: len({c.client_id for c in decide.candidates(*those)}) == 2,
        lambda *those: any(s.need is Need.TAB for s in decide.sites(*those)),
        lambda *those: any(s.need is Need.WINDOW for s in decide.sites(*those)),
    ],
)
def test_the_properties_below_are_not_about_nothing(yields: Callable[..., bool]) -> None:
    # Always the same examples: those of some chances are all about nothing.
    how = settings(database=None, phases=[Phase.generate], max_examples=10_000, derandomize=True)
    find(st.tuples(requests, snapshots), lambda those: yields(*those), settings=how)


@given(request=requests, snapshot=snapshots)
def test_every_client_yields_something_or_has_a_reason(
    request: Request, snapshot: Snapshot
) -> None:
    yielded = {c.client_id for c in decide.candidates(request, snapshot)}
    yielded |= {s.client_id for s in decide.sites(request, snapshot)}
    verdict = decide.explain(request, snapshot)
    assert set(verdict.clients) == {c.client_id for c in snapshot.clients}
    for each in snapshot.clients:
        if each.client_id not in yielded:
            assert verdict.clients[each.client_id] is not Reason.LOST_RACE
    if not yielded and verdict.pool is not PoolVerdict.NO_LIVE_POLLERS:
        assert verdict.reason is not None
    assert verdict.remedy


@given(request=requests, snapshot=snapshots)
def test_a_candidate_satisfies_every_hard_condition(request: Request, snapshot: Snapshot) -> None:
    by_id = {c.client_id: c for c in snapshot.clients}
    for found in decide.candidates(request, snapshot):
        one = by_id[found.client_id]
        context = one.contexts[found.context_id]
        assert one.link is not None
        assert NOW - one.seen_at <= WINDOW_S
        assert request.namespace in one.namespaces
        assert request.client_type in (None, one.client_type)
        assert not one.draining
        assert one.capacity.max_concurrency is not None
        assert one.used_slots() < one.capacity.max_concurrency
        for key, value in request.requirements.items():
            assert canonical(one.metadata[key]) == canonical(value)
        assert context.owner is Owner.WORKER
        assert context.clean
        assert context.state in (ContextState.ACTIVE, ContextState.IDLE)
        assert found.context_id not in one.assignments
        window = one.windows.get(context.window_id) if context.window_id else None
        assert (window.identity if window else None) == request.identity
        assert (window.profile if window else "") == request.profile


@given(request=requests, snapshot=snapshots)
def test_a_site_has_a_free_slot_and_room(request: Request, snapshot: Snapshot) -> None:
    by_id = {c.client_id: c for c in snapshot.clients}
    for site in decide.sites(request, snapshot):
        one = by_id[site.client_id]
        assert request.auto_provision
        assert one.client_type is ClientType.BROWSER
        assert reject_client(request, one, now=NOW, window_s=WINDOW_S) is None
        if site.need is Need.WINDOW:
            assert site.window_id is None
            assert one.worker_windows() + one.opening_windows < one.capacity.max_windows
            continue
        assert site.window_id is not None
        assert one.windows[site.window_id].identity == request.identity is not None
        assert decide.tabs_in(one, site.window_id) < one.capacity.max_tabs_per_window


@given(request=requests, snapshot=snapshots)
def test_the_affinity_client_comes_first_and_nothing_else_changes(
    request: Request, snapshot: Snapshot
) -> None:
    found = [c.client_id for c in decide.candidates(request, snapshot)]
    assert found == sorted(found, key=lambda c: (c != request.affinity_client_id, c))


@given(request=requests, snapshot=snapshots)
def test_a_context_passed_over_has_a_reason_of_its_own(
    request: Request, snapshot: Snapshot
) -> None:
    verdict = decide.explain(request, snapshot)
    for one in snapshot.clients:
        for context_id, context in one.contexts.items():
            if reject_client(request, one, now=NOW, window_s=WINDOW_S) is None:
                expected = reject_context(request, one, context) or Reason.LOST_RACE
                assert verdict.contexts[one.client_id, context_id] is expected


@given(json_values, json_values)
def test_two_values_meet_exactly_when_their_canonical_texts_are_equal(one: Any, two: Any) -> None:
    assert meets({"k": one}, {"k": two}) == (canonical(one) == canonical(two))
    assert meets({"k": one}, {"k": one, "more": two})
    assert not meets({"k": one}, {})


DIFFERENT = [1, 1.0, True, "1", None, [1], {"1": 1}, [1.0], "", [], {}, 0, 0.0, False]


@pytest.mark.parametrize("asked", DIFFERENT, ids=repr)
def test_types_count_in_equality(asked: Any) -> None:
    alike = [i for i, has in enumerate(DIFFERENT) if meets({"k": asked}, {"k": has})]
    assert len(alike) == 1
    assert repr(DIFFERENT[alike[0]]) == repr(asked)


def test_nested_values_are_compared_whole_and_keys_have_no_order() -> None:
    assert meets({"k": {"a": 1, "b": [1, 2]}}, {"k": {"b": [1, 2], "a": 1}})
    assert not meets({"k": {"a": 1}}, {"k": {"a": 1, "b": 2}})
    assert not meets({"k": [1, 2]}, {"k": [2, 1]})


def test_a_required_null_needs_the_key() -> None:
    assert not meets({"k": None}, {})
    assert meets({"k": None}, {"k": None})


REJECTIONS = [
    ({"link": None}, {}, Reason.ABSENT),
    ({"seen_at": Instant(NOW - WINDOW_S - 0.1)}, {}, Reason.ABSENT),
    ({"namespaces": (Namespace("b"),)}, {}, Reason.OTHER_NAMESPACE),
    ({"task_queue": "crawl"}, {}, Reason.OTHER_QUEUE),
    ({"activity_types": frozenset({"b"})}, {"activity_type": "a"}, Reason.ACTIVITY_NOT_SERVED),
    ({"node": "n1"}, {"node": "n2"}, Reason.OTHER_NODE),
    ({"node": None}, {"node": "n2"}, Reason.OTHER_NODE),
    ({"node": ""}, {"node": ""}, Reason.OTHER_NODE),
    ({"excluded": Exclusion.OPENING_PROBATION}, {}, Reason.IN_PROBATION),
    ({"excluded": Exclusion.REACHABILITY_LOST}, {}, Reason.UNREACHABLE),
    ({}, {"client_type": ClientType.CONSOLE}, Reason.OTHER_CLIENT_TYPE),
    ({}, {"requirements": {"a": 1}}, Reason.REQUIREMENTS_NOT_MET),
    ({"link": LinkId("two/1")}, {"through": "tw"}, Reason.LINKED_ELSEWHERE),
    ({"draining": True}, {}, Reason.DRAINING),
    ({"capacity": Capacity()}, {}, Reason.CAPACITY_UNANNOUNCED),
    ({"opening_windows": 2}, {}, Reason.AT_CAPACITY),
    ({"opening_windows": 3}, {}, Reason.AT_CAPACITY),
    ({"capacity": Capacity(max_concurrency=5), "opening_windows": 1}, {}, Reason.NO_WINDOW_FREE),
    ({}, {"auto_provision": False}, Reason.CREATION_NOT_PERMITTED),
    ({"client_type": ClientType.CONSOLE}, {}, Reason.CANNOT_PROVISION_TYPE),
    ({"opening_identities": {"shop": 1}}, {"identity": "shop"}, Reason.IDENTITY_ELSEWHERE),
]


@pytest.mark.parametrize(("has", "asks", "reason"), REJECTIONS, ids=lambda v: str(v)[:40])
def test_each_hard_condition_says_its_name(
    has: dict[str, Any], asks: dict[str, Any], reason: Reason
) -> None:
    asked = request(**({"auto_provision": True} | asks))
    verdict = decide.explain(asked, snapshot(client(**has)))
    assert verdict.clients == {"c": reason}
    assert verdict.reason is reason
    assert decide.sites(asked, snapshot(client(**has))) == []


def test_with_nobody_there_the_verdict_has_no_reason_but_a_remedy() -> None:
    verdict = decide.explain(request(), snapshot())
    assert verdict.reason is None
    assert "No agent is connected" in verdict.remedy


def test_the_verdict_names_the_reason_nearest_to_a_success() -> None:
    verdict = Verdict(
        clients={
            ClientId("a"): Reason.OTHER_NAMESPACE,
            ClientId("b"): Reason.AT_CAPACITY,
            ClientId("c"): Reason.ABSENT,
        },
        contexts={},
    )
    assert verdict.reason is Reason.AT_CAPACITY


def test_a_second_window_of_an_identity_is_opened_nowhere() -> None:
    window = Window(window_id=WindowId("W1"), identity="shop")
    has = client(
        client_id=ClientId("has"),
        windows={window.window_id: window},
        capacity=Capacity(max_concurrency=2, max_tabs_per_window=2),
    )
    found = decide.sites(
        request(identity="shop", auto_provision=True),
        snapshot(client(client_id=ClientId("free")), has),
    )
    assert [(s.client_id, s.need, s.window_id) for s in found] == [("has", Need.TAB, "W1")]


def test_of_two_sites_the_emptier_comes_first() -> None:
    busy = client(client_id=ClientId("a"), opening_tabs={WindowId("W"): 1})
    free = client(client_id=ClientId("b"))
    found = decide.sites(request(auto_provision=True), snapshot(busy, free))
    assert [site.client_id for site in found] == ["b", "a"]


def test_of_two_agents_of_different_size_the_one_with_the_greater_part_free_comes_first() -> None:
    small = client(client_id=ClientId("a"), opening_tabs={WindowId("W"): 1})
    great = client(
        client_id=ClientId("b"),
        capacity=Capacity(max_concurrency=8),
        opening_tabs={WindowId("W"): 2},
    )
    found = decide.sites(request(auto_provision=True), snapshot(small, great))
    assert [site.client_id for site in found] == ["b", "a"]


def test_the_affinity_client_is_first_to_be_lent_from_and_first_to_be_created_on() -> None:
    idle = {ContextId("T"): Context(context_id=ContextId("T"))}
    those = [client(client_id=ClientId(name), contexts=idle) for name in "abc"]
    asked = request(affinity_client_id=ClientId("b"), auto_provision=True)
    for found in (
        list(decide.each_candidate(asked, snapshot(*those))),
        decide.candidates(asked, snapshot(*those)),
        decide.sites(asked, snapshot(*those)),
    ):
        assert [one.client_id for one in found] == ["b", "a", "c"]


def test_an_agent_is_within_reach_of_the_coordinator_that_holds_its_link() -> None:
    linked = client(link=LinkId("two/1"))
    assert reject_client(request(through="two"), linked, now=NOW, window_s=WINDOW_S) is None


def test_an_agent_is_present_up_to_the_end_of_its_window() -> None:
    last = client(seen_at=Instant(NOW - WINDOW_S))
    assert reject_client(request(), last, now=NOW, window_s=WINDOW_S) is None


def test_to_find_the_first_candidate_the_clients_after_it_are_not_looked_at() -> None:
    class Unseen(dict[str, Any]):
        def __contains__(self, key: object) -> bool:
            raise AssertionError("looked at")

    idle = {ContextId("T"): Context(context_id=ContextId("T"))}
    near = client(client_id=ClientId("b"), contexts=idle, metadata={"k": 1})
    far = client(client_id=ClientId("c"), contexts=idle, metadata=Unseen())
    asked = request(requirements={"k": 1})
    assert next(decide.each_candidate(asked, snapshot(near, far))).client_id == "b"
