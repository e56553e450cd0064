"""A started browser with everything it has told, and steps that can't be stopped."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from agent.chromium.browser import ChromiumBrowser
from agent.ports import Bare, BrowserEvent, BrowserInfo, Control, Denied, Evidence, Files, Outcome
from farm.protocol.failures import Failure, Reason
from farm.protocol.messages import StepStarted
from farm.protocol.plan import BrowserOptions, Plan
from tests.agent.chromium.journal import Journal, plan
from tests.patience import PATIENCE_S

PLAIN = "data:text/html,<title>plain</title><h1>Plain</h1>"
FOR_EVER = {"type": "wait", "ms": 60_000}
SETTLED = {"type": "wait_for", "selector": "#settled", "state": "attached"}


class Rig:
    """A started browser, and everything it has told."""

    def __init__(self, **keys: Any) -> None:
        settings: dict[str, Any] = {"headless": True, "env": os.environ}
        self.browser = ChromiumBrowser(**(settings | keys))
        self.events: list[BrowserEvent] = []
        self.journal = Journal()
        self.info: BrowserInfo | None = None

    async def __aenter__(self) -> "Rig":
        self.info = await self.browser.start(self.events.append)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.browser.kill()

    async def window(self, window_id: str = "w", context_id: str = "c", **keys: Any) -> Page:
        await self.browser.open_window(window_id, context_id, BrowserOptions(**keys))
        return self.page(window_id, context_id)

    def page(self, window_id: str = "w", context_id: str = "c") -> Page:
        return self.browser._windows[window_id].tabs[context_id].page

    async def run(self, *steps: dict[str, Any], **keys: Any) -> Outcome:
        async with asyncio.timeout(60):
            return await self.browser.run("c", plan(*steps, **keys), self.journal)

    async def run_until(
        self, condition: Callable[[], object], *steps: dict[str, Any], **keys: Any
    ) -> Outcome:
        """Run the steps, and a last one for as long as a condition does not hold."""
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.run(*steps, SETTLED, **keys))
            await self.until(lambda: running.done() or condition())
            if not running.done():
                await self.page().evaluate("() => { document.documentElement.id = 'settled' }")
        return running.result()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.01)


def reason(outcome: Outcome) -> Reason | None:
    return outcome.failure.reason if outcome.failure else None


async def stubborn(
    page: Page,
    plan: Plan,
    evidence: Evidence,
    *,
    denied: Callable[[], Sequence[Denied]],
    bare: Bare,
    control: Control,
    files: Files,
) -> Failure | None:
    """Steps that take no notice of being cancelled."""
    await evidence.note(StepStarted(index=0, verb="click", label="click"))
    while not page.is_closed():
        try:
            await page.wait_for_timeout(60_000)
        except asyncio.CancelledError:
            continue
        except PlaywrightError:
            break
    return None
