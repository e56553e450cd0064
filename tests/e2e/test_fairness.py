"""A noisy namespace and a quiet one on one agent, over the real wire."""

import asyncio
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from farm.sdk import FarmClient
from tests.e2e.faults.house import House
from tests.e2e.faults.watching import job, rested
from tests.simulated.agent import Sim, live

NOISY, QUIET = "noisy", "quiet"
BODY = job("look", {"goto": "https://example.com/"})


async def test_between_two_starts_of_a_quiet_namespace_a_noisy_one_has_at_most_one(
    tmp_path: Path,
) -> None:
    house = House(root=tmp_path, settings={"FARM_NAMESPACES__MINTING": "open"})
    try:
        await house.serve()
        async with house.client() as admin:
            tokens = {
                name: (await admin.create_token("admin", namespaces=[name])).token
                for name in (NOISY, QUIET)
            }
            both = (await admin.create_token("agent", namespaces=[NOISY, QUIET])).token
        async with (
            FarmClient(house.url, tokens[NOISY]) as noisy,
            FarmClient(house.url, tokens[QUIET]) as quiet,
        ):
            for _ in range(60):
                await noisy.submit(BODY)
            waited_for = [(await quiet.submit(BODY)).id for _ in range(8)]
            sim = Sim(client_id="a", urls=(house.url,), token=both, namespaces=(NOISY, QUIET))
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(live(sim, stop))
                for job_id in waited_for:
                    await rested(quiet, job_id)
                stop.set()
            starts = [*await begun(noisy, NOISY), *await begun(quiet, QUIET)]
    finally:
        house.close()
    order = [name for _, name in sorted(starts)]
    places = [place for place, name in enumerate(order) if name == QUIET]
    assert len(places) == len(waited_for)
    assert places[0] <= 1
    assert max(after - before - 1 for before, after in pairwise(places)) <= 1


async def begun(client: FarmClient, name: str) -> list[tuple[datetime, str]]:
    """When each of the jobs that have begun did so."""
    jobs = (await client.jobs(limit=100)).items
    return [(job.started_at, name) for job in jobs if job.started_at is not None]
