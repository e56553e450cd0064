"""Where to look for an idle context, so that a success need not look at all there is."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TypeVar

from farm.core.eligibility import canonical
from farm.core.model import (
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Namespace,
    Request,
)
from farm.core.placement import Fill
from farm.stores.memory.pools import Pools

_CLIENTS, _CONTEXTS = 32, 64
"""So many are looked at."""

K = TypeVar("K")
Place = tuple[str | None, str]
"""Identity and profile of a window."""
Kind = tuple[ClientType | None, Namespace, str, Place]
"""What a request names: its type, or None for any; its namespace, task queue and place."""


class Ready:
    """The clients that are linked, take work, and have a slot and an idle context, by load.

    It is told of each change and decides nothing: what it names is checked as ever.
    """

    def __init__(self) -> None:
        self.pools = Pools()
        self._idle: dict[ClientId, dict[Place, dict[ContextId, None]]] = {}
        self._by_load: dict[Kind, dict[float, dict[ClientId, None]]] = {}
        self._shown: dict[ClientId, tuple[float, list[Kind]]] = {}
        self._with: dict[tuple[str, str], dict[ClientId, None]] = {}
        self._metadata: dict[ClientId, list[tuple[str, str]]] = {}

    def learn(self, client: Client) -> None:
        """Note what a client has registered or reported."""
        self._forget(client.client_id)
        self.pools.join(client)
        idle: dict[Place, dict[ContextId, None]] = {}
        for context_id in sorted(client.contexts):
            context = client.contexts[context_id]
            if context.lendable and context_id not in client.assignments:
                idle.setdefault(_place(client, context), {})[context_id] = None
        self._idle[client.client_id] = idle
        self._metadata[client.client_id] = list(_facts(client.metadata))
        for fact in self._metadata[client.client_id]:
            self._with.setdefault(fact, {})[client.client_id] = None
        self.show(client)

    def forget(self, client_id: ClientId) -> None:
        """Forget a client."""
        self._forget(client_id)
        self.pools.leave(client_id)

    def _forget(self, client_id: ClientId) -> None:
        self._unshow(client_id)
        self._idle.pop(client_id, None)
        for fact in self._metadata.pop(client_id, ()):
            _drop(self._with, fact, client_id)

    def taken(self, client: Client, context_id: ContextId) -> None:
        """Note that a context is assigned: it is idle no more, until it is reported so again."""
        for contexts in self._idle[client.client_id].values():
            contexts.pop(context_id, None)
        self.show(client)

    def show(self, client: Client) -> None:
        """Note how full a client is now, and whether it takes work."""
        self._unshow(client.client_id)
        limit = client.capacity.max_concurrency
        if client.link is None or client.draining or limit is None or client.used_slots() >= limit:
            self.pools.close(client.client_id)
            return
        self.pools.open(client.client_id)
        load = client.used_slots() / limit
        kinds = [
            (client_type, namespace, client.task_queue, place)
            for place, contexts in self._idle[client.client_id].items()
            if contexts
            for namespace in dict.fromkeys(client.namespaces)
            for client_type in (None, client.client_type)
        ]
        for kind in kinds:
            self._by_load.setdefault(kind, {}).setdefault(load, {})[client.client_id] = None
        self._shown[client.client_id] = load, kinds

    def hide(self, client_id: ClientId) -> None:
        """Name a client no more, until it is shown again."""
        self.pools.close(client_id)
        self._unshow(client_id)

    def _unshow(self, client_id: ClientId) -> None:
        load, kinds = self._shown.pop(client_id, (0.0, []))
        for kind in kinds:
            by_load = self._by_load[kind]
            _drop(by_load, load, client_id)
            if not by_load:
                del self._by_load[kind]

    def clients(self, request: Request) -> list[ClientId]:
        """Return whom to ask, in order: affinity, then the emptiest, or the fullest if wanted."""
        near = request.affinity_client_id
        packed = request.placement is not None and request.placement.fill is Fill.PACK
        few = self.few_who_meet(request)
        if few is not None:
            shown = [(self._shown[one][0], one) for one in few if one in self._shown]
            others: Iterable[ClientId] = [one for _, one in sorted(shown, reverse=packed)]
        else:
            kind = (request.client_type, request.namespace, request.task_queue, _asked(request))
            by_load = self._by_load.get(kind)
            loads = sorted(by_load or {}, reverse=packed)
            others = chain.from_iterable((by_load or {})[load] for load in loads)
        known = near is not None and near in self._idle
        return [*([near] if near is not None and known else []), *islice(others, _CLIENTS)]

    def contexts(self, request: Request, client_id: ClientId) -> list[ContextId]:
        """Return a client's contexts that may do."""
        return list(islice(self._idle[client_id].get(_asked(request), ()), _CONTEXTS))

    def few_who_meet(self, request: Request) -> Iterable[ClientId] | None:
        """Return who has the rarest of the facts required, if they are few; None if not."""
        sets = [self._with.get(fact, {}) for fact in _facts(request.requirements)]
        rarest = min(sets, key=len, default=None)
        return rarest if rarest is not None and len(rarest) <= _CLIENTS else None


def _facts(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    return ((key, canonical(value)) for key, value in values.items())


def _asked(request: Request) -> Place:
    return request.identity, request.profile


def _place(client: Client, context: Context) -> Place:
    window = client.windows.get(context.window_id) if context.window_id is not None else None
    return (None, "") if window is None else (window.identity, window.profile)


def _drop(sets: dict[K, dict[ClientId, None]], key: K, client_id: ClientId) -> None:
    found = sets.get(key)
    if found is not None:
        found.pop(client_id, None)
        if not found:
            del sets[key]
