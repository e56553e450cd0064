"""What was last read of a shard's clients, so that only what changed since has to be read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from farm.core.model import Client, ClientId, Instant
from farm.stores.redis.records import client_from, pairs

# How many clients one script reads at most, so that Redis is not kept from others for long.
_CLIENTS_AT_ONCE = 200

ReadChanges = Callable[[str, int], Awaitable[list[Any]]]
"""Runs snapshot.lua: the revision to read after, and how many clients at most."""


class Picture:
    """The clients as of one revision. Each reading brings it up to date and returns all."""

    def __init__(self) -> None:
        self._revision = "0"
        self._clients: dict[ClientId, Client] = {}
        self._reading = asyncio.Lock()

    async def read(self, changes: ReadChanges) -> tuple[Client, ...]:
        """Return every client, in order of client_id."""
        # One at a time: an answer that came late must not replace a later one.
        async with self._reading:
            while True:
                _, seen, self._revision, changed = await changes(self._revision, _CLIENTS_AT_ONCE)
                for client in map(client_from, changed):
                    self._clients[client.client_id] = client
                if len(changed) < _CLIENTS_AT_ONCE:
                    break
            self._clients = {
                client_id: self._seen(client_id, Instant(float(at)))
                for client_id, at in sorted((ClientId(one), at) for one, at in pairs(seen))
            }
            return tuple(self._clients.values())

    def _seen(self, client_id: ClientId, at: Instant) -> Client:
        # A heartbeat is no change of the client, for there are many of them.
        client = self._clients[client_id]
        return client if client.seen_at == at else replace(client, seen_at=at)
