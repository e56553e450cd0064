"""Unsafe requests of the page, journalled as effects whether a step declared them or not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, Request

from agent.steps.stage import Attempt
from agent.steps.urls import bare
from farm.protocol.messages import EffectBegun, EffectDone, Notice
from farm.protocol.steps import Effect

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_OBSERVED = 500
"""How many are journalled in one attempt; of further ones a notice tells."""
DRAIN_S = 3.0
"""How long the end of a run waits for answers to requests that are still out."""


@asynccontextmanager
async def observing(attempt: Attempt) -> AsyncIterator[None]:
    """Watch for the length of the body, and a moment longer for what is still out at its end.

    Only the beginning of requests is listened to, for all else costs a message for every picture
    on a page; how an unsafe one ends is asked for it alone.
    """
    context = attempt.page.context
    async with asyncio.TaskGroup() as group:
        observer = _Observer(attempt, group)
        context.on("request", observer.on_request)
        try:
            yield
            await observer.drain()
        finally:
            context.remove_listener("request", observer.on_request)
            observer.stop()


class _Observer:
    def __init__(self, attempt: Attempt, group: asyncio.TaskGroup) -> None:
        self._attempt = attempt
        self._others = [p for p in attempt.page.context.pages if p is not attempt.page]
        self._group = group
        self._out: set[asyncio.Task[None]] = set()
        self._count = 0

    async def drain(self) -> None:
        """Wait until everything is answered, but not for long."""
        if self._out:
            await asyncio.wait(self._out, timeout=DRAIN_S)

    def stop(self) -> None:
        """Wait for no answer any more."""
        for task in self._out:
            task.cancel()

    def on_request(self, request: Request) -> None:
        """Take note of a request that has begun."""
        if request.method in SAFE:
            return
        self._count += 1
        index, effect = self._attempt.index, self._counts_as()
        task = self._group.create_task(
            self._follow(request, self._count, index, effect), name=f"observed.{self._count}"
        )
        self._out.add(task)
        task.add_done_callback(self._out.discard)

    def _counts_as(self) -> Effect:
        step, job = self._attempt.step, self._attempt.plan.effects
        if Effect.IDEMPOTENT in (job, None if step is None else step.effect):
            return Effect.IDEMPOTENT
        return Effect.ONCE

    async def _follow(self, request: Request, number: int, index: int, effect: Effect) -> None:
        note = self._attempt.evidence.note
        if not await self._ours(request):
            return
        if number > MAX_OBSERVED:
            if number == MAX_OBSERVED + 1:
                detail = f"more than {MAX_OBSERVED} unsafe requests; the rest is not journalled"
                await note(Notice(code="observed_too_many", detail=detail, index=index))
            return
        effect_id = f"r{number}"
        url = bare(request.url)
        await note(
            EffectBegun(
                effect_id=effect_id,
                index=index,
                effect=effect.value,
                observed=True,
                method=request.method,
                url=url,
            )
        )
        if await _answered(request) or self._never_left(url):
            await note(EffectDone(effect_id=effect_id))

    async def _ours(self, request: Request) -> bool:
        """Tell whether this attempt caused it: another tab of the identity may be at work too."""
        page = _page_of(request)
        while page is not None and page is not self._attempt.page:
            if page in self._others:
                return False
            page = await page.opener()
            if page is None:
                return False
        return True

    def _never_left(self, url: str) -> bool:
        """Tell whether the egress proxy refused it, so that nothing can have come of it."""
        parts = urlsplit(url)
        tunnel = f"{parts.hostname}:{parts.port or 443}"
        return any(denied.url in (url, tunnel) for denied in self._attempt.denied())


async def _answered(request: Request) -> bool:
    try:
        return await request.response() is not None
    except PlaywrightError:
        return False


def _page_of(request: Request) -> Page | None:
    """Return the page a request is of; None where that cannot be told, as for a service worker."""
    try:
        return request.frame.page
    except PlaywrightError:
        return None
