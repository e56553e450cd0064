"""A noisy namespace and a quiet one on one agent of one slot, over the real wire."""

import asyncio
from datetime import datetime
from itertools import pairwise

from farm.sdk import FarmClient
from tests.e2e.faults.house import House
from tests.e2e.faults.watching import job, rested
from tests.simulated.agent import Sim, live

NOISY, QUIET = "noisy", "quiet"
SETTINGS = {"FARM_NAMESPACES__MINTING": "open"}
_BODY = job("look", {"goto": "https://example.com/"})


async def starts_of(house: House, *, noisy: int, quiet: int) -> list[str]:
    """Submit so many jobs of each to a farm that has minting open; the order of their starts.

    It ends when the quiet ones have. The noisy ones are queued before the first of them.
    """
    async with house.client() as admin:
        tokens = {
            name: (await admin.create_token("admin", namespaces=[name])).token
            for name in (NOISY, QUIET)
        }
        both = (await admin.create_token("agent", namespaces=[NOISY, QUIET])).token
    async with (
        FarmClient(house.url, tokens[NOISY]) as loud,
        FarmClient(house.url, tokens[QUIET]) as still,
    ):
        for _ in range(noisy):
            await loud.submit(_BODY)
        waited_for = [(await still.submit(_BODY)).id for _ in range(quiet)]
        sim = Sim(client_id="a", urls=(house.url,), token=both, namespaces=(NOISY, QUIET))
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(live(sim, stop))
            for job_id in waited_for:
                await rested(still, job_id)
            stop.set()
        starts = [*await _begun(loud, NOISY), *await _begun(still, QUIET)]
    return [name for _, name in sorted(starts)]


async def _begun(client: FarmClient, name: str) -> list[tuple[datetime, str]]:
    """When each of the jobs that have begun did so."""
    jobs = (await client.jobs(limit=100)).items
    return [(job.started_at, name) for job in jobs if job.started_at is not None]


def most_between(starts: list[str]) -> int:
    """Count the starts of the noisy one between two of the quiet one, where they are the most."""
    places = [place for place, name in enumerate(starts) if name == QUIET]
    return max(after - before - 1 for before, after in pairwise(places))
