"""What was last read of a shard's clients, so that only what is new has to be read."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from farm.core.model import Client, ClientId, Instant
from farm.core.pools import Exclusion
from farm.core.reachability import marked
from farm.stores.departures import Departures
from farm.stores.redis.records import client_from, exclusions_from

# How many clients one script reads at most, so that Redis is not kept from others for long.
_CLIENTS_AT_ONCE = 200

ReadNews = Callable[[str, int], Awaitable[list[Any]]]
"""Runs snapshot.lua: the revision to read after, and how many changed clients at most."""


class Picture:
    """The clients as of one revision. Each reading brings it up to date and returns all."""

    def __init__(self) -> None:
        self._reading = asyncio.Lock()
        self._begin()

    def _begin(self) -> None:
        self._revision = "0"
        self._clients: dict[ClientId, Client] = {}
        self._all: tuple[Client, ...] = ()
        self._departures = Departures()
        self._excluded: dict[ClientId, Exclusion] = {}

    async def read(self, news: ReadNews) -> tuple[tuple[Client, ...], Sequence[Client]]:
        """Return every client, in order of client_id, and of those that have gone one a kind."""
        # One at a time: an answer that came late must not replace a later one.
        async with self._reading:
            while not await self._read(news):
                pass
            return marked(self._all, self._excluded), self._departures.all()

    async def _read(self, news: ReadNews) -> bool:
        """Take in one answer; tell whether that is all."""
        _, until, changed, seen, gone, clients, excluded, departed = await news(
            self._revision, _CLIENTS_AT_ONCE
        )
        self._excluded = exclusions_from(excluded)
        for client_id in gone:
            self._clients.pop(client_id, None)
        for client_id, at in seen:
            self._hear(client_id, Instant(float(at)))
        self._change(map(client_from, changed))
        if changed or seen or gone:
            self._all = tuple(self._clients.values())
        for kind, at in departed:
            self._departures.note(kind, Instant(float(at)))
        self._revision = until
        if len(changed) == _CLIENTS_AT_ONCE:
            return False
        if len(self._clients) != clients:
            # Redis came back with a past state, in which some have not come or not gone.
            self._begin()
            return False
        return True

    def _hear(self, client_id: ClientId, at: Instant) -> None:
        # A heartbeat is no change of the client, for there are many of them.
        if client := self._clients.get(client_id):
            self._clients[client_id] = replace(client, seen_at=at)

    def _change(self, changed: Iterable[Client]) -> None:
        before = len(self._clients)
        for client in changed:
            self._clients[client.client_id] = client
        if len(self._clients) != before:
            self._clients = dict(sorted(self._clients.items()))
