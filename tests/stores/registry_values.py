"""Anything that may be said to a registry, odd names and numbers included."""

from hypothesis import strategies as st

from farm.core.model import (
    Bounds,
    Capacity,
    ClientId,
    ClientType,
    Context,
    ContextId,
    ContextState,
    LinkId,
    Namespace,
    Owner,
    Window,
    WindowId,
)
from farm.core.placement import BrowserPlacement, Fill, Mode
from farm.core.pools import DEFAULT_QUEUE
from tests.stores.pool import request

seldom = st.sampled_from([False, False, False, True])
ids = st.sampled_from([ClientId("a"), ClientId("a"), ClientId("b:{c}")])
LINKS = (LinkId("l1"), LinkId("l2"))
tabs = st.sampled_from([ContextId("T1"), ContextId("T2"), ContextId("{T}\n3")])
windows = st.sampled_from([WindowId("W1"), WindowId("windows"), WindowId("")])
identities = st.sampled_from([None, "shop", "", "Ünï \ud83d/\\\0"])
profiles = st.sampled_from(["", "p"])
namespaces = st.sampled_from([Namespace("default"), Namespace("other")])
queues = st.sampled_from(["", DEFAULT_QUEUE, DEFAULT_QUEUE, "crawl"])
activities = st.frozensets(st.sampled_from(["job", "b\0"]), min_size=1)
nodes = st.sampled_from([None, "", "n1", "n2\0"])
types = st.sampled_from([ClientType.BROWSER, ClientType.CONSOLE])
values = st.sampled_from([None, True, 1, 1.0, "1", 0.1 + 0.2, 10**30, [1, {"b": 2, "a": 1}], "é\0"])
metadata = st.dictionaries(st.sampled_from(["k", "", "region/eu"]), values, max_size=2)
limits = st.sampled_from([1, 2, 3])
capacities = st.builds(
    Capacity,
    max_concurrency=st.sampled_from([2, 1, 5, 0, None]),
    max_windows=limits,
    max_tabs_per_window=limits,
    max_flows=limits,
)
contexts = st.builds(
    Context,
    context_id=tabs,
    window_id=st.none() | windows,
    owner=st.sampled_from([Owner.WORKER, Owner.WORKER, Owner.USER]),
    state=st.sampled_from([ContextState.IDLE, *ContextState]),
    clean=seldom.map(lambda is_dirty: not is_dirty),
    opener=st.sampled_from([None, None, ContextId("T1")]),
)
told = st.builds(
    Window,
    window_id=windows,
    identity=identities,
    profile=profiles,
    owner=st.sampled_from(Owner),
    bounds=st.none() | st.just(Bounds(left=-1, top=0, width=800, height=600)),
)
caps = st.none() | limits
placements = st.one_of(
    st.builds(
        BrowserPlacement,
        mode=st.sampled_from([m for m in Mode if m not in {Mode.NAMED_WINDOW, Mode.IDENTITY}]),
        fill=st.sampled_from(Fill),
        max_windows=caps,
        max_tabs_per_window=caps,
    ),
    st.builds(BrowserPlacement, mode=st.just(Mode.NAMED_WINDOW), window_id=windows),
    st.builds(
        BrowserPlacement,
        mode=st.just(Mode.IDENTITY),
        identity=st.just("shop"),
        exclusive=st.booleans(),
        max_tabs_per_window=caps,
    ),
)
requests = st.builds(
    request,
    namespace=namespaces,
    task_queue=queues,
    activity_type=st.sampled_from([None, "job", "b\0"]),
    node=nodes,
    client_type=st.none() | types,
    requirements=st.just({}) | metadata,
    identity=st.none() | identities,
    profile=profiles,
    affinity_client_id=st.none() | ids,
    placement=st.none() | placements,
)
few = st.integers(0, 3)
FIELDS = (
    *("namespace", "task_queue", "activity_type", "node"),
    *("client_type", "requirements", "identity", "profile"),
)
off = st.sampled_from([0, 0, 0, 0, -1, 1])
timeouts = st.sampled_from([0.1, 7.3, 60.0, float("inf")])
