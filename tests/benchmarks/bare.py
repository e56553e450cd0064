"""The bare loop: Playwright alone, with the farm's browser, flags and context options.

A process of its own, so that its CPU can be read. Reads one JSON order a line from stdin
(`{"mode", "concurrency", "seconds", "base"}`) and answers each with its latencies.
"""

import asyncio
import json
import os
import sys
import time

from playwright.async_api import BrowserContext, Page

from agent.chromium.discovery import find
from agent.chromium.launch import Life
from agent.telemetry import configure_logging
from tests.benchmarks.site import PAGES, ROWS

EXTRACT = """() => [...document.querySelectorAll('tr.row')].map(row => ({
  name: row.querySelector('.name a').textContent.trim(),
  url: row.querySelector('.name a').href,
  price: row.querySelector('.price').textContent.trim(),
  stock: row.querySelector('.stock').textContent.trim(),
}))"""


class Loop:
    """One cell of measurements."""

    def __init__(self, life: Life, base: str) -> None:
        self._life = life
        self._base = base
        self._number = 0
        self.latencies: list[float] = []

    async def run(self, mode: str, concurrency: int, seconds: float) -> None:
        """Do as many pages as fit."""
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._tabs(until) if mode == "tab" else self._contexts(until))

    async def _tabs(self, until: float) -> None:
        context = await self._life.browser.new_context()
        page = await context.new_page()
        while time.monotonic() < until:
            await self._one(page)
        await context.close()

    async def _contexts(self, until: float) -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            context: BrowserContext = await self._life.browser.new_context()
            await self._visit(await context.new_page())
            await context.close()
            self.latencies.append(time.monotonic() - began)

    async def _one(self, page: Page) -> None:
        began = time.monotonic()
        await self._visit(page)
        self.latencies.append(time.monotonic() - began)

    async def _visit(self, page: Page) -> None:
        self._number += 1
        await page.goto(f"{self._base}/p/{self._number % PAGES}")
        if len(await page.evaluate(EXTRACT)) != ROWS:
            raise RuntimeError("the page is not what it should be")


async def main() -> None:
    """Obey orders until stdin closes."""
    configure_logging(level="error")
    env = dict(os.environ)
    found = await find(headless=True, env=env, executable=env.get("AGENT_BROWSER"))
    life = Life(found, headless=True, env=env)
    info = await life.start(lambda detail: sys.exit(detail))
    print(json.dumps({"product": info.product, "executable": info.executable}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        loop = Loop(life, order["base"])
        await loop.run(order["mode"], order["concurrency"], order["seconds"])
        print(json.dumps({"latencies": loop.latencies}), flush=True)
    await life.kill()


if __name__ == "__main__":
    asyncio.run(main())
