"""Running one job through a farm's HTTP API, and what came of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient

Item = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A job at rest and the records of its last attempt."""

    job: JobDetail
    items: list[Item]

    @property
    def story(self) -> str:
        """What to say when the job did not do what it should."""
        return f"{self.job.name} is {self.job.state}: {self.job.failure}"


async def run_job(
    client: FarmClient,
    body: str | Mapping[str, Any],
    *,
    params: Mapping[str, str] | None = None,
    within_s: float = 120.0,
) -> Done:
    """Submit a job, wait until it is at rest, and return its records."""
    async with asyncio.timeout(within_s):
        accepted = await client.submit(body, params=params)
        job = await client.job(accepted.id, wait_s=30)
        while not job.at_rest:
            job = await client.job(accepted.id, wait_s=30)
        items = [item async for item in client.items(accepted.id)]
    return Done(job=job, items=[without_dataset(item) for item in items])


def without_dataset(item: Item) -> Item:
    """Return what was on the page, without the name of the data set that the farm adds."""
    return {key: value for key, value in item.items() if key != "_dataset"}
