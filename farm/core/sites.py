"""Where a context may be created for a request, and why nowhere else.

Permission comes first, then what can be created at all and by whom, and then the room there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.core.eligibility import Reason, reject_company
from farm.core.model import Client, ClientId, ClientType, Owner, Request, WindowId
from farm.core.placement import ANYWHERE, Fill, Means, Mode


class Need(StrEnum):
    """What is reserved for a request, beside a slot."""

    TAB = "tab"
    WINDOW = "window"
    FLOW = "flow"
    SLOT = "slot"
    """Nothing but a slot: what it is for is there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A client on which a context may be created."""

    client_id: ClientId
    need: Need
    window_id: WindowId | None = None
    """That of a tab."""

    @property
    def window(self) -> WindowId:
        """The window of a tab."""
        if self.window_id is None:
            raise ValueError(f"a {self.need} is in no window that is there")
        return self.window_id


def site_on(
    request: Request, client: Client, means: Means, *, identity_is_open: bool
) -> Site | Reason:
    """Say what to create on a client that is otherwise eligible, or why nothing.

    Args:
        request: What is asked for.
        client: Where to create.
        means: What the manager has to create with.
        identity_is_open: A window of the request's identity is somewhere, or is being opened.
    """
    if not request.auto_provision or request.mode is Mode.REUSE_ONLY:
        return Reason.CREATION_NOT_PERMITTED
    if not _can_create_on(request, client):
        return Reason.CANNOT_PROVISION_TYPE
    if lacking := _lacking(client, means):
        return lacking
    if client.client_type is ClientType.CONSOLE:
        free = client.opening_flows + len(client.contexts) < client.capacity.max_flows
        return Site(client_id=client.client_id, need=Need.FLOW) if free else Reason.NO_FLOW_FREE
    return _in_browser(request, client, identity_is_open)


def _can_create_on(request: Request, client: Client) -> bool:
    if client.client_type is ClientType.BROWSER:
        return True
    if request.placement is not None and request.mode not in ANYWHERE:
        return False
    # Who leaves the type open is given an idle flow, but it is browsers that are made for it.
    return client.client_type is ClientType.CONSOLE and request.client_type is ClientType.CONSOLE


def _lacking(client: Client, means: Means) -> Reason | None:
    if not means.app_node:
        return Reason.NO_APP_NODE
    if client.client_id in means.not_on:
        return Reason.NOT_PROVISIONING_OWNER
    if client.client_type is ClientType.BROWSER:
        return None if means.windows else Reason.NO_BROWSER_WINDOW_REGISTRY
    return None if means.flows else Reason.NO_FLOW_REGISTRY


def _in_browser(request: Request, client: Client, identity_is_open: bool) -> Site | Reason:
    match request.mode:
        case Mode.NEW_TAB if request.identity is None:
            return Reason.IDENTITY_NOT_NAMED
        case Mode.NEW_TAB | Mode.NAMED_WINDOW:
            return _tab_or_nothing(request, client)
        case Mode.NEW_WINDOW:
            return _window(request, client, identity_is_open)
        case _:
            window_id = _window_of(request.identity, client)
            if window_id is not None:
                return _tab(request, client, window_id)
            return _window(request, client, identity_is_open)


def _tab_or_nothing(request: Request, client: Client) -> Site | Reason:
    window_id = _window_of(request.identity, client)
    if request.placement is not None and request.placement.window_id is not None:
        named = client.windows.get(WindowId(request.placement.window_id))
        if named is None or named.owner is not Owner.WORKER:
            return Reason.NO_SUCH_WINDOW
        if named.identity != request.identity:
            return Reason.OTHER_IDENTITY
        if named.identity is None:
            return Reason.IDENTITY_NOT_NAMED
        window_id = named.window_id
    return Reason.NO_SUCH_WINDOW if window_id is None else _tab(request, client, window_id)


def _tab(request: Request, client: Client, window_id: WindowId) -> Site | Reason:
    if client.windows[window_id].profile != request.profile:
        return Reason.OTHER_OPTIONS
    if tabs_in(client, window_id) >= most_tabs(request, client):
        return Reason.NO_TAB_FREE
    if company := reject_company(request, client, window_id):
        return company
    return Site(client_id=client.client_id, need=Need.TAB, window_id=window_id)


def _window(request: Request, client: Client, identity_is_open: bool) -> Site | Reason:
    # An identity's cookies live in one window; while that exists (or is being made), a second
    # window under the same name would be another identity.
    if identity_is_open:
        return Reason.IDENTITY_ELSEWHERE
    if client.worker_windows() + client.opening_windows >= most_windows(request, client):
        return Reason.NO_WINDOW_FREE
    return Site(client_id=client.client_id, need=Need.WINDOW)


def most_windows(request: Request | None, client: Client) -> int:
    """Return how many windows the client may have for this request, at most as negotiated."""
    cap = request.placement.max_windows if request and request.placement else None
    most = client.capacity.max_windows
    return most if cap is None else min(cap, most)


def most_tabs(request: Request | None, client: Client) -> int:
    """The same for the tabs of one window."""
    cap = request.placement.max_tabs_per_window if request and request.placement else None
    most = client.capacity.max_tabs_per_window
    return most if cap is None else min(cap, most)


def tabs_in(client: Client, window_id: WindowId) -> int:
    """Count the tabs of a window, those being created included; popups of its tabs are not."""
    own = sum(context.opener is None for context in client.tabs_in(window_id))
    return own + client.opening_tabs.get(window_id, 0)


def load(client: Client) -> float:
    """Return how full a client is, from 0 to 1."""
    return client.used_slots() / (client.capacity.max_concurrency or 1)


def in_order(request: Request, clients: Sequence[Client]) -> list[Client]:
    """Put clients in the order in which to try them: affinity, then by load, then by id."""
    packed = request.placement is not None and request.placement.fill is Fill.PACK
    sign = -1.0 if packed else 1.0

    def key(client: Client) -> tuple[bool, float, ClientId]:
        is_other = client.client_id != request.affinity_client_id
        return is_other, sign * load(client), client.client_id

    return sorted(clients, key=key)


def _window_of(identity: str | None, client: Client) -> WindowId | None:
    if identity is None:
        return None
    for window in client.windows.values():
        if window.identity == identity and window.owner is Owner.WORKER:
            return window.window_id
    return None
