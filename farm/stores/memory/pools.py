"""Who is in which pool, who of them takes work now, and whose turn it is in each."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

from farm.core.model import Client, ClientId, Namespace, Request

_FEW = 32
Pool = tuple[Namespace, str, str | None]
"""Namespace, task queue and activity type, which is None for any."""


def pool_of(request: Request) -> Pool:
    """Return the pool a request is for."""
    return request.namespace, request.task_queue, request.activity_type


class Pools:
    """The clients of each pool in order of id, and a cursor a pool: whose turn it last was.

    A cursor is there no longer than somebody is in its pool.
    """

    def __init__(self) -> None:
        self._of: dict[ClientId, frozenset[Pool]] = {}
        self._members: dict[Pool, list[ClientId]] = {}
        self._free: dict[Pool, list[ClientId]] = {}
        self._open: set[ClientId] = set()
        self._last: dict[Pool, ClientId] = {}

    def join(self, client: Client) -> None:
        """Note which pools a client is in, and that it is in no other."""
        client_id, before = client.client_id, self._of.get(client.client_id, frozenset())
        now: frozenset[Pool] = frozenset(
            (namespace, client.task_queue, activity)
            for namespace in client.namespaces
            for activity in (None, *client.activity_types)
        )
        for pool in now - before:
            insort(self._members.setdefault(pool, []), client_id)
            if client_id in self._open:
                insort(self._free.setdefault(pool, []), client_id)
        self._part(client_id, before - now)
        self._of[client_id] = now

    def leave(self, client_id: ClientId) -> None:
        """Forget a client."""
        self.close(client_id)
        self._part(client_id, self._of.pop(client_id, frozenset()))

    def open(self, client_id: ClientId) -> None:
        """Note that a client takes work and has a slot free."""
        if client_id not in self._open:
            self._open.add(client_id)
            for pool in self._of.get(client_id, ()):
                insort(self._free.setdefault(pool, []), client_id)

    def close(self, client_id: ClientId) -> None:
        """Note that it does not, or has none."""
        if client_id in self._open:
            self._open.discard(client_id)
            for pool in self._of.get(client_id, ()):
                _drop(self._free, pool, client_id)

    def free(self, pool: Pool, among: Iterable[ClientId] | None = None) -> Iterator[ClientId]:
        """Yield who may have a slot free, of all or of some, beginning with whose turn it is."""
        if among is None:
            return self._in_turn(self._free.get(pool, []), pool)
        here = (one for one in among if one in self._open and pool in self._of.get(one, ()))
        return self._in_turn(sorted(here), pool)

    def members(self, pool: Pool) -> Iterator[ClientId]:
        """Yield who is in the pool, beginning with whose turn it is."""
        return self._in_turn(self._members.get(pool, []), pool)

    def had(self, pool: Pool, client_id: ClientId) -> None:
        """Note whose turn it was."""
        self._last[pool] = client_id

    def _in_turn(self, ids: list[ClientId], pool: Pool) -> Iterator[ClientId]:
        """Yield them from whose turn it is on, few at a time: they may be many, and may leave."""
        last = self._last.get(pool)
        at = 0 if last is None else bisect_right(ids, last)
        while few := ids[at : at + _FEW]:
            yield from few
            at = bisect_right(ids, few[-1])
        at = 0
        while last is not None and (few := ids[at : min(at + _FEW, bisect_right(ids, last))]):
            yield from few
            at = bisect_right(ids, few[-1])

    def _part(self, client_id: ClientId, pools: frozenset[Pool]) -> None:
        for pool in pools:
            _drop(self._members, pool, client_id)
            _drop(self._free, pool, client_id)
            if pool not in self._members:
                self._last.pop(pool, None)


def _drop(lists: dict[Pool, list[ClientId]], pool: Pool, client_id: ClientId) -> None:
    ids = lists.get(pool, [])
    at = bisect_left(ids, client_id)
    if ids[at : at + 1] == [client_id]:
        del ids[at]
        if not ids:
            del lists[pool]
