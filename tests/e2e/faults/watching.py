"""Submitting jobs, and waiting for what their histories say; every wait is bounded."""

import asyncio
from collections.abc import Mapping
from typing import Any

from farm.protocol.resources import EventView, JobDetail
from farm.sdk import FarmClient
from tests.patience import PATIENCE_S

Steps = list[object]
SEEN_S = 5.0
"""Within this long of the end of an agent's link a job says so."""


def job(name: str, *steps: object, **more: object) -> dict[str, Any]:
    return {"name": name, "steps": list(steps), **more}


def once(name: str, *steps: object, **more: object) -> dict[str, Any]:
    """A job that is not tried again."""
    return job(name, *steps, **{"retry": {"max_attempts": 1}, **more})


async def submitted(client: FarmClient, body: Mapping[str, Any]) -> str:
    return (await client.submit(body)).id


async def rested(client: FarmClient, job_id: str, within_s: float = 60.0) -> JobDetail:
    """Wait until the farm does nothing more for a job by itself."""
    async with asyncio.timeout(within_s):
        while not (job := await client.job(job_id, wait_s=10)).at_rest:
            pass
    return job


async def ran(client: FarmClient, body: Mapping[str, Any], within_s: float = 60.0) -> JobDetail:
    return await rested(client, await submitted(client, body), within_s)


async def happened(
    client: FarmClient, job_id: str, kind: str, within_s: float = 60.0, after: int = 0
) -> EventView:
    """Wait until a job's history has an event of this kind after number `after`."""
    async with asyncio.timeout(within_s):
        async for event in client.events(job_id, after=after):
            if event.type == kind:
                return event
    raise AssertionError(f"the job came to rest without {kind}")


async def kinds(client: FarmClient, job_id: str) -> list[str]:
    return [event.type async for event in client.events(job_id, follow=False)]


async def notices(client: FarmClient, job_id: str) -> list[str]:
    """The codes of what a job's attempts had to remark."""
    return [
        str(event.data["code"])
        async for event in client.events(job_id, follow=False)
        if event.type == "notice"
    ]


async def works(client: FarmClient, url: str) -> None:
    """The slot is free, so the next job runs; and no clean window stays behind."""
    done = await ran(client, once("next", {"goto": f"{url}/status/200"}, {"wait_for": "#status"}))
    assert done.state == "succeeded", done.failure
    async with asyncio.timeout(PATIENCE_S):
        while any(w.identity is None and not w.prepared for w in await client.windows()):
            await asyncio.sleep(0.05)
