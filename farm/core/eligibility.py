"""Which agents and contexts could take a task, and why the others could not (P3).

Each check is one small function; a table holds their order, from the least to the most likely to
change, and the first that fails is the reason reported.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from farm.core.model import (
    Client,
    Context,
    ContextState,
    Instant,
    Owner,
    Request,
    WindowId,
    is_link_of,
)
from farm.core.placement import ANYWHERE
from farm.core.pools import Exclusion


class Reason(StrEnum):
    """Why a client or context was passed over; the values are part of the public API."""

    ABSENT = "absent"
    OTHER_NAMESPACE = "other_namespace"
    OTHER_QUEUE = "other_queue"
    ACTIVITY_NOT_SERVED = "activity_not_served"
    OTHER_NODE = "other_node"
    PLACEMENT_UNKNOWN = "placement_unknown"
    OTHER_CLIENT_TYPE = "other_client_type"
    REQUIREMENTS_NOT_MET = "requirements_not_met"
    LINKED_ELSEWHERE = "linked_elsewhere"
    IN_PROBATION = "in_probation"
    UNREACHABLE = "unreachable"
    DRAINING = "draining"
    CAPACITY_UNANNOUNCED = "capacity_unannounced"
    AT_CAPACITY = "at_capacity"
    USER_OWNED = "user_owned"
    ASSIGNED = "assigned"
    NOT_READY = "not_ready"
    NOT_CLEAN = "not_clean"
    OTHER_IDENTITY = "other_identity"
    OTHER_OPTIONS = "other_options"
    OTHER_WINDOW = "other_window"
    WINDOW_SHARED = "window_shared"
    WINDOW_DEDICATED = "window_dedicated"
    MUST_BE_NEW = "must_be_new"
    NOT_CHOSEN = "not_chosen"
    IDENTITY_ELSEWHERE = "identity_elsewhere"
    NO_WINDOW_FREE = "no_window_free"
    NO_TAB_FREE = "no_tab_free"
    NO_FLOW_FREE = "no_flow_free"
    NO_SUCH_WINDOW = "no_such_window"
    IDENTITY_NOT_NAMED = "identity_not_named"
    CREATION_NOT_PERMITTED = "creation_not_permitted"
    CANNOT_PROVISION_TYPE = "cannot_provision_type"
    NO_APP_NODE = "no_app_node"
    NO_BROWSER_WINDOW_REGISTRY = "no_browser_window_registry"
    NO_FLOW_REGISTRY = "no_flow_registry"
    NOT_PROVISIONING_OWNER = "not_provisioning_owner"
    LOST_RACE = "lost_race"
    CREATION_FAILED = "creation_failed"


_PLAIN = frozenset({str, int, bool, type(None)})
"""Types of which a value is equal to another of them where both are one type, and equal."""
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def canonical(value: object) -> str:
    """Return a text that is equal exactly where two JSON values are equal, types counted.

    `1`, `1.0`, `true` and `"1"` all differ; the order of an object's keys does not count.
    """
    return _encode(value)


def is_same(one: object, other: object) -> bool:
    """Tell whether two JSON values are equal, types counted; see `canonical`."""
    if type(one) is type(other) and type(one) in _PLAIN:
        return one == other
    return canonical(one) == canonical(other)


def meets(requirements: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Tell whether the metadata has every required key with exactly the required value."""
    return not requirements or all(
        key in metadata and is_same(metadata[key], value) for key, value in requirements.items()
    )


ClientCheck = Callable[[Request, Client, Instant, float], Reason | None]


def is_present(client: Client, *, now: Instant, window_s: float) -> bool:
    """Tell whether a client is on a link and was heard of in the last `window_s` seconds (P2)."""
    return client.link is not None and now - client.seen_at <= window_s


def _is_present(request: Request, client: Client, now: Instant, window_s: float) -> Reason | None:
    return None if is_present(client, now=now, window_s=window_s) else Reason.ABSENT


def _is_of_namespace(
    request: Request, client: Client, now: Instant, window_s: float
) -> Reason | None:
    return None if request.namespace in client.namespaces else Reason.OTHER_NAMESPACE


def _is_in_pool(request: Request, client: Client, now: Instant, window_s: float) -> Reason | None:
    return None if request.task_queue == client.task_queue else Reason.OTHER_QUEUE


def _serves_activity(
    request: Request, client: Client, now: Instant, window_s: float
) -> Reason | None:
    wanted = request.activity_type
    served = wanted is None or wanted in client.activity_types
    return None if served else Reason.ACTIVITY_NOT_SERVED


def _is_on_node(request: Request, client: Client, now: Instant, window_s: float) -> Reason | None:
    return None if request.node in (None, client.node) else Reason.OTHER_NODE


def _is_of_type(request: Request, client: Client, now: Instant, window_s: float) -> Reason | None:
    wanted = request.client_type
    return None if wanted in (None, client.client_type) else Reason.OTHER_CLIENT_TYPE


def _meets(request: Request, client: Client, now: Instant, window_s: float) -> Reason | None:
    met = meets(request.requirements, client.metadata)
    return None if met else Reason.REQUIREMENTS_NOT_MET


def _is_within_reach(
    request: Request, client: Client, now: Instant, window_s: float
) -> Reason | None:
    through, link = request.through, client.link
    within = through is None or (link is not None and is_link_of(through, link))
    return None if within else Reason.LINKED_ELSEWHERE


def _is_not_excluded(
    request: Request, client: Client, now: Instant, window_s: float
) -> Reason | None:
    return None if client.excluded is None else _EXCLUDED[client.excluded]


_EXCLUDED: Mapping[Exclusion, Reason] = {
    Exclusion.OPENING_PROBATION: Reason.IN_PROBATION,
    Exclusion.REACHABILITY_LOST: Reason.UNREACHABLE,
}


def _takes_work(request: Request, client: Client, now: Instant, window_s: float) -> Reason | None:
    return Reason.DRAINING if client.draining else None


def _has_slot(request: Request, client: Client, now: Instant, window_s: float) -> Reason | None:
    limit = client.capacity.max_concurrency
    if limit is None:
        return Reason.CAPACITY_UNANNOUNCED
    return None if client.used_slots() < limit else Reason.AT_CAPACITY


AGENT_CHECKS: tuple[ClientCheck, ...] = (
    _is_of_namespace,
    _is_in_pool,
    _serves_activity,
    _is_on_node,
    _is_of_type,
    _meets,
    _is_present,
    _is_within_reach,
    _is_not_excluded,
    _takes_work,
)
"""What makes an agent one of those that would do, full or not."""
CLIENT_CHECKS: tuple[ClientCheck, ...] = (*AGENT_CHECKS, _has_slot)

ContextCheck = Callable[[Request, Client, Context], Reason | None]


def _is_worker_owned(request: Request, client: Client, context: Context) -> Reason | None:
    return None if context.owner is Owner.WORKER else Reason.USER_OWNED


def _is_unassigned(request: Request, client: Client, context: Context) -> Reason | None:
    return Reason.ASSIGNED if context.context_id in client.assignments else None


def _is_ready(request: Request, client: Client, context: Context) -> Reason | None:
    ready = context.state in (ContextState.ACTIVE, ContextState.IDLE)
    return None if ready else Reason.NOT_READY


def _is_clean(request: Request, client: Client, context: Context) -> Reason | None:
    return None if context.clean else Reason.NOT_CLEAN


def _is_of_identity(request: Request, client: Client, context: Context) -> Reason | None:
    window = client.windows.get(context.window_id) if context.window_id is not None else None
    identity, profile = (window.identity, window.profile) if window is not None else (None, "")
    if identity != request.identity:
        return Reason.OTHER_IDENTITY
    return None if profile == request.profile else Reason.OTHER_OPTIONS


def _is_in_window(request: Request, client: Client, context: Context) -> Reason | None:
    placement = request.placement
    if placement is None or placement.mode in ANYWHERE:
        return None
    # Who asks for a window is given no flow, which has none.
    fits = context.window_id is not None and placement.window_id in (None, context.window_id)
    return None if fits else Reason.OTHER_WINDOW


def _shares_well(request: Request, client: Client, context: Context) -> Reason | None:
    if context.window_id is None:
        return None
    return reject_company(request, client, context.window_id, besides=context)


def reject_company(
    request: Request, client: Client, window_id: WindowId, *, besides: Context | None = None
) -> Reason | None:
    """Say why the other tabs of a window keep the request out of it, or None.

    A window held as dedicated takes nobody else; and who asks for a dedicated one is not given one
    that has a tab of somebody else's, or a tab that somebody else has left and that is not clean.
    """
    others = [c for c in client.tabs_in(window_id) if c is not besides]
    held = [client.assignments[c.context_id] for c in others if c.context_id in client.assignments]
    if any(assignment.dedicated for assignment in held):
        return Reason.WINDOW_DEDICATED
    if not request.dedicated:
        return None
    strange = any(c.owner is not Owner.WORKER or not c.clean for c in others)
    shared = bool(held) or strange or client.opening_tabs.get(window_id, 0) > 0
    return Reason.WINDOW_SHARED if shared else None


CONTEXT_CHECKS: tuple[ContextCheck, ...] = (
    _is_worker_owned,
    _is_of_identity,
    _is_in_window,
    _is_unassigned,
    _is_ready,
    _is_clean,
    _shares_well,
)


def reject_client(
    request: Request, client: Client, *, now: Instant, window_s: float
) -> Reason | None:
    """Say why no context of the client will do, or None."""
    return _first(CLIENT_CHECKS, request, client, now, window_s)


def reject_agent(
    request: Request, client: Client, *, now: Instant, window_s: float
) -> Reason | None:
    """Say why the client would not do if it had room, or None."""
    return _first(AGENT_CHECKS, request, client, now, window_s)


def _first(
    checks: tuple[ClientCheck, ...],
    request: Request,
    client: Client,
    now: Instant,
    window_s: float,
) -> Reason | None:
    for check in checks:
        if reason := check(request, client, now, window_s):
            return reason
    return None


Reasons = tuple[Reason, ...]
"""Everything that keeps a client from doing, in the order of the checks."""
BEFORE_NODE = frozenset({Reason.OTHER_NAMESPACE, Reason.OTHER_QUEUE, Reason.ACTIVITY_NOT_SERVED})
"""What is told of a client rather than that it is on another node."""


def rejections(request: Request, client: Client, *, now: Instant, window_s: float) -> Reasons:
    """Say everything for which no context of the client will do; empty if one may.

    Of one that is another namespace's nothing else is said: where there are many, most are.
    """
    if (stranger := _is_of_namespace(request, client, now, window_s)) is not None:
        return (stranger,)
    found = [check(request, client, now, window_s) for check in CLIENT_CHECKS[1:]]
    return tuple([reason for reason in found if reason is not None])


def reject_context(request: Request, client: Client, context: Context) -> Reason | None:
    """Say why this context will not do, or None."""
    for check in CONTEXT_CHECKS:
        if reason := check(request, client, context):
            return reason
    return None
