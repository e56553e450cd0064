"""Core values as the scripts read and write them.

Times are texts, as Python writes them: a script that decoded one from JSON and encoded it again
would round it. Requirements and metadata are canonical JSON a field (`eligibility.canonical`), so
that scripts compare texts where the core compares values, and no rule of equality is written twice.
Likewise a context's record holds what the core compares of its window, as one text: its *place*.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from farm.core.eligibility import canonical
from farm.core.model import (
    Assignment,
    Bounds,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    ContextState,
    DrainOrder,
    Instant,
    LinkId,
    Namespace,
    Owner,
    Request,
    ReservationId,
    TaskId,
    Token,
    Window,
    WindowId,
    link_of,
)
from farm.core.placement import ANYWHERE
from farm.core.pools import DEFAULT_QUEUE, JOB, Exclusion
from farm.core.reservation import Denial
from farm.stores.departures import serving

_WINDOWS, _FLOWS, _SLOTS, _TAB = "windows", "flows", "slots", "tab:"
"""The fields that count what is reserved; that of tabs goes on with their window."""


# Lua's decoder refuses the escape of half a surrogate pair, but passes its bytes on.
json_text = json.JSONEncoder(ensure_ascii=False).encode


@lru_cache(maxsize=1024)
def place(identity: str | None, profile: str) -> str:
    """Return what must be equal between a request and the window of a context."""
    return canonical([identity, profile])


def request_text(request: Request) -> str:
    """Return what a script needs of a request."""
    placement = request.placement
    wanted: dict[str, Any] = {
        "namespace": request.namespace,
        "task_id": request.task_id,
        "task_queue": request.task_queue,
        "requirements": {key: canonical(value) for key, value in request.requirements.items()},
        "place": place(request.identity, request.profile),
        "dedicated": request.dedicated,
        "in_window": placement is not None and placement.mode not in ANYWHERE,
    }
    if placement is not None and placement.window_id is not None:
        wanted["window_id"] = placement.window_id
    if request.activity_type is not None:
        wanted["activity_type"] = request.activity_type
    if request.node is not None:
        wanted["node"] = request.node
    if request.client_type is not None:
        wanted["client_type"] = request.client_type
    if request.through is not None:
        wanted["through"] = link_of(request.through, "")
    return json_text(wanted)


def client_fields(client: Client) -> list[str | int]:
    """Return the fields and values of what a hello replaces."""
    capacity = client.capacity
    fields: dict[str, str | int] = {
        "draining": int(client.draining),
        "draining_because": client.draining_because,
        "serving": serving(client),
        "namespaces": json_text(client.namespaces),
        "task_queue": client.task_queue,
        "activity_types": json_text(sorted(client.activity_types)),
        "max_windows": capacity.max_windows,
        "max_tabs_per_window": capacity.max_tabs_per_window,
        "max_flows": capacity.max_flows,
    }
    if capacity.max_concurrency is not None:
        fields["max_concurrency"] = capacity.max_concurrency
    if client.node is not None:
        fields["node"] = client.node
    if client.deployment is not None:
        fields["deployment"] = client.deployment
    if client.browser is not None:
        fields["browser"] = client.browser
    return flat(fields)


def drain_text(by: str, since: Instant) -> str:
    """Return the text of an order to leave."""
    return json_text({"by": by, "since": repr(since)})


def _drain_from(text: str | None) -> DrainOrder | None:
    if text is None:
        return None
    found = json.loads(text)
    return DrainOrder(by=found["by"], since=Instant(float(found["since"])))


def metadata_fields(client: Client) -> list[str | int]:
    """Return the fields and values of the metadata."""
    return flat({key: canonical(value) for key, value in client.metadata.items()})


def context_text(context: Context, where: str) -> str:
    """Return the record of a context in a place."""
    return json_text(
        {
            "context_id": context.context_id,
            "window_id": context.window_id,
            "owner": context.owner,
            "state": context.state,
            "clean": context.clean,
            "opener": context.opener,
            "place": where,
        }
    )


def flat(fields: Mapping[str, str | int]) -> list[str | int]:
    """Return fields and values in one list."""
    return [part for field in fields.items() for part in field]


def token_text(token: Token) -> str:
    """Return a token as the scripts compare it."""
    return f"{token.store_epoch}:{token.counter}"


def token_from(text: str) -> Token:
    """Return the token of a text."""
    store_epoch, counter = text.split(":")
    return Token(store_epoch=int(store_epoch), counter=int(counter))


def assignment_text(assignment: Assignment) -> str:
    """Return an assignment as the scripts keep it."""
    fields: dict[str, Any] = {
        "namespace": assignment.namespace,
        "client_id": assignment.client_id,
        "epoch": str(assignment.epoch),
        "context_id": assignment.context_id,
        "task_id": assignment.task_id,
        "token": token_text(assignment.token),
        "since": repr(assignment.since),
        "renewed_at": repr(assignment.renewed_at),
        "expires_at": repr(assignment.expires_at),
        "dedicated": assignment.dedicated,
    }
    if assignment.reservation_id is not None:
        fields["reservation_id"] = assignment.reservation_id
    return json_text(fields)


def assignment_from(text: str) -> Assignment:
    """Return the assignment of a text."""
    found = json.loads(text)
    its = found.get("reservation_id")
    return Assignment(
        namespace=Namespace(found["namespace"]),
        client_id=ClientId(found["client_id"]),
        epoch=int(found["epoch"]),
        context_id=ContextId(found["context_id"]),
        task_id=TaskId(found["task_id"]),
        token=token_from(found["token"]),
        since=Instant(float(found["since"])),
        renewed_at=Instant(float(found["renewed_at"])),
        expires_at=Instant(float(found["expires_at"])),
        dedicated=found["dedicated"],
        reservation_id=None if its is None else ReservationId(its),
    )


def assigned(
    reply: Sequence[Any],
    request: Request,
    client_id: ClientId,
    context_id: ContextId,
    *,
    now: Instant,
    timeout_s: float,
) -> Assignment | Denial:
    """Return what a script that takes this context has answered."""
    if reply[0] != "ok":
        return Denial(reply[0])
    _, epoch, token = reply
    return assignment(request, client_id, context_id, epoch, token, now=now, timeout_s=timeout_s)


def assignment(
    request: Request,
    client_id: str,
    context_id: str,
    epoch: str,
    token: str,
    *,
    now: Instant,
    timeout_s: float,
) -> Assignment:
    """Return the assignment that rules.lua `hold` has made."""
    return Assignment(
        namespace=request.namespace,
        client_id=ClientId(client_id),
        epoch=int(epoch),
        context_id=ContextId(context_id),
        task_id=request.task_id,
        token=token_from(token),
        since=now,
        renewed_at=now,
        expires_at=Instant(now + timeout_s),
        dedicated=request.dedicated,
    )


def client_from(parts: Sequence[Any]) -> Client:
    """Return the client whose parts state.lua `whole_client` has read."""
    client_id, own, metadata, windows, contexts, dirty, held, opening, identities, seen_at = parts
    fields = dict(pairs(own))
    counts = {field: int(count) for field, count in pairs(opening)}
    limit = fields.get("max_concurrency")
    return Client(
        client_id=ClientId(client_id),
        client_type=ClientType(fields["type"]),
        link=LinkId(fields["link"]) if "link" in fields else None,
        epoch=int(fields["epoch"]),
        instance=fields["instance"],
        namespaces=tuple(json.loads(fields["namespaces"])),
        metadata={key: json.loads(value) for key, value in pairs(metadata)},
        capacity=Capacity(
            max_concurrency=None if limit is None else int(limit),
            max_windows=int(fields["max_windows"]),
            max_tabs_per_window=int(fields["max_tabs_per_window"]),
            max_flows=int(fields["max_flows"]),
        ),
        seen_at=Instant(float(seen_at)),
        task_queue=fields.get("task_queue", DEFAULT_QUEUE),
        activity_types=frozenset(json.loads(fields.get("activity_types", json_text([JOB])))),
        node=fields.get("node"),
        deployment=fields.get("deployment"),
        draining=fields["draining"] == "1",
        drain=_drain_from(fields.get("drain")),
        draining_because=fields.get("draining_because", ""),
        browser=fields.get("browser"),
        windows={one.window_id: one for one in map(_window_from, windows)},
        contexts={one.context_id: one for one in _contexts_from(contexts, frozenset(dirty))},
        assignments={one.context_id: one for one in map(assignment_from, held)},
        opening_windows=counts.pop(_WINDOWS, 0),
        opening_flows=counts.pop(_FLOWS, 0),
        reserved_slots=counts.pop(_SLOTS, 0),
        opening_tabs={WindowId(field.removeprefix(_TAB)): n for field, n in counts.items()},
        opening_identities={identity: int(count) for identity, count in pairs(identities)},
    )


def exclusions_from(flat: Sequence[str]) -> dict[ClientId, Exclusion]:
    """Return the exclusions that exclusions.lua `exclusions` has read."""
    return {ClientId(client_id): Exclusion(kind) for client_id, kind in pairs(flat)}


def pairs(flat: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the fields and values of a hash, which scripts return in one list."""
    return zip(flat[::2], flat[1::2], strict=True)


def _window_from(text: str) -> Window:
    found = json.loads(text)
    return Window(
        window_id=WindowId(found["window_id"]),
        identity=found["identity"],
        profile=found["profile"],
        owner=Owner(found["owner"]),
        bounds=None if found["bounds"] is None else Bounds(**found["bounds"]),
        prepared=found.get("prepared", False),
    )


def _contexts_from(texts: Iterable[str], dirty: frozenset[str]) -> Iterator[Context]:
    for text in texts:
        found = json.loads(text)
        window_id, opener = found["window_id"], found["opener"]
        yield Context(
            context_id=ContextId(found["context_id"]),
            window_id=None if window_id is None else WindowId(window_id),
            owner=Owner(found["owner"]),
            state=ContextState(found["state"]),
            clean=found["clean"] and found["context_id"] not in dirty,
            opener=None if opener is None else ContextId(opener),
        )
