"""The load on the farm: jobs through its HTTP API, each from submission to its items in hand."""

import asyncio
import time
from typing import Any

from farm.sdk.client import FarmClient
from tests.benchmarks.site import PAGES, ROWS


class Load:
    """One cell of measurements."""

    def __init__(self, client: FarmClient, base: str, browser: dict[str, str]) -> None:
        self._client = client
        self._base = base
        self._browser = browser
        self._number = 0
        self.latencies: list[float] = []

    async def run(self, concurrency: int, seconds: float) -> None:
        """Do as many jobs as fit."""
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._one_after_another(until))

    async def _one_after_another(self, until: float) -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            await self._one()
            self.latencies.append(time.monotonic() - began)

    async def _one(self) -> None:
        self._number += 1
        job = await self._client.submit(self._job(self._number), wait_s=30)
        if job.state != "succeeded":
            raise RuntimeError(f"{job.id} is {job.state}: {job.failure}")
        items = [item async for item in self._client.items(job.id)]
        if len(items) != ROWS:
            raise RuntimeError(f"{job.id} has {len(items)} items")

    def _job(self, number: int) -> dict[str, Any]:
        fields = {"name": ".name a", "url": ".name a@href", "price": ".price", "stock": ".stock"}
        return {
            "name": "bench",
            "browser": self._browser,
            "steps": [
                {"goto": f"{self._base}/p/{number % PAGES}"},
                {"extract": {"list": "tr.row", "fields": fields}},
            ],
        }
