"""Short ways to say what a test puts into a registry."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Request,
    TaskId,
    Token,
    Window,
    WindowId,
)
from farm.core.reservation import Denial, Reservation
from farm.stores.ports.contexts import ClientRelease, FirstFit
from farm.stores.ports.registries import Registry, TurnKeeper
from farm.stores.ports.reservations import PlacedReservations, Slots

NS = Namespace("default")
A, B = ClientId("a"), ClientId("b")
LINK = LinkId("link-1")
T1, T2 = ContextId("T1"), ContextId("T2")
W1 = WindowId("W1")
METADATA = {"n": 1, "nested": {"b": 2, "a": [1, 2]}, "none": None, "": "\ud83d/\0"}
T0 = Instant(1_000.0)
WINDOW_S = 10.0
TIMEOUT_S = 60.0
RESERVED_S = 25.0


class Everything(
    Registry, FirstFit, ClientRelease, TurnKeeper, PlacedReservations, Slots, Protocol
):
    """What the farm's own stores offer."""


NewRegistry = Callable[[int], Awaitable[Everything]]
"""Makes an empty registry of a store epoch."""


def at(seconds: float) -> Instant:
    return Instant(T0 + seconds)


def hello(client_id: str = "a", *, link: str = "link-1", **changes: Any) -> Client:
    values: dict[str, Any] = {
        "client_id": ClientId(client_id),
        "client_type": ClientType.BROWSER,
        "link": LinkId(link),
        "epoch": 0,
        "instance": f"process-{client_id}",
        "namespaces": (NS,),
        "metadata": {},
        "capacity": Capacity(max_concurrency=2, max_windows=4, max_tabs_per_window=2),
        "seen_at": T0,
    }
    return Client(**(values | changes))


async def registered(
    registry: Registry,
    client: Client | None = None,
    *,
    epoch: str = "browser-1",
    highest: Token | None = None,
    now: Instant = T0,
) -> Client:
    found = await registry.register(
        client or hello(), epoch_name=epoch, highest_token=highest, now=now
    )
    assert isinstance(found, Client)
    return found


async def reported(
    registry: Registry,
    *tabs: str | Context,
    client: Client,
    number: int = 1,
    link: LinkId = LINK,
    identity: str | None = None,
    now: Instant = T0,
) -> tuple[Assignment, ...] | Denial:
    contexts = [tab if isinstance(tab, Context) else in_window(tab) for tab in tabs]
    windows = {c.window_id for c in contexts if c.window_id is not None}
    return await registry.report(
        client.client_id,
        link,
        epoch=client.epoch,
        number=number,
        windows=[Window(window_id=w, identity=identity) for w in sorted(windows)],
        contexts=contexts,
        now=now,
    )


def in_window(tab: str, **changes: Any) -> Context:
    values: dict[str, Any] = {
        "context_id": ContextId(tab),
        "window_id": WindowId(tab.replace("T", "W")),
    }
    return Context(**(values | changes))


def request(task: str = "task", **changes: Any) -> Request:
    values: dict[str, Any] = {"namespace": NS, "task_id": TaskId(task), "auto_provision": True}
    return Request(**(values | changes))


async def assigned(
    registry: Registry, tab: str = "T1", *, task: str = "task", now: Instant = T0
) -> Assignment:
    found = await registry.assign(request(task), A, ContextId(tab), now=now, timeout_s=TIMEOUT_S)
    assert isinstance(found, Assignment), found
    return found


async def window(
    registry: Registry, client_id: ClientId = A, *, identity: str | None = None, now: Instant = T0
) -> Reservation:
    found = await registry.reserve_window(client_id, identity=identity, now=now)
    assert isinstance(found, Reservation), found
    return found


async def tab(registry: Registry, window_id: str = "W1", *, now: Instant = T0) -> Reservation:
    found = await registry.reserve_tab(A, WindowId(window_id), now=now)
    assert isinstance(found, Reservation), found
    return found


async def only(registry: Registry, client_id: ClientId = A, now: Instant = T0) -> Client:
    snapshot = await registry.snapshot(now=now)
    return next(c for c in snapshot.clients if c.client_id == client_id)
