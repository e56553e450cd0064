"""A site of the tests' own, a browser for each module, and a farm that only remembers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Page, async_playwright

from agent.ports import Denied, StaleAssignment, UploadRefused
from agent.steps.run import run_plan
from farm.protocol.failures import Failure
from farm.protocol.messages import (
    AttemptEvent,
    EffectBegun,
    EffectDone,
    Items,
    Notice,
    StepEnded,
)
from farm.protocol.plan import Plan
from farm.protocol.recordings import RecordingKind
from tests.listening import listening

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """Pages by path, on a loopback port; `requests` are the methods and paths asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, str | Handler] = {}
        self.requests: list[str] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404, text="no such page")
        if isinstance(page, str):
            return web.Response(text=page, content_type="text/html")
        return await page(request)

    def posts(self) -> list[str]:
        return [seen for seen in self.requests if seen.startswith("POST")]


class MemoryEvidence:
    """Keeps what a run says, in order; can refuse as a farm may."""

    def __init__(self) -> None:
        self.events: list[AttemptEvent] = []
        self.settled: list[AttemptEvent] = []
        self.files: dict[str, tuple[bytes, str]] = {}
        self.stale = False
        self.full = False
        self.before_settled: Callable[[], Awaitable[None]] | None = None

    async def note(self, event: AttemptEvent) -> None:
        self.events.append(event)

    async def settle(self, event: AttemptEvent) -> None:
        if self.stale:
            raise StaleAssignment
        if self.before_settled is not None:
            await self.before_settled()
        self.events.append(event)
        self.settled.append(event)

    async def upload(
        self,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        if self.full:
            raise UploadRefused("artifact_store_full", "no room")
        assert isinstance(content, bytes)
        self.files[name] = (content, media_type)
        return name

    async def fetch(self, reference: str, into: Path, max_bytes: int) -> Path:
        raise UploadRefused("value_invalid", "this farm has no files")

    @property
    def items(self) -> list[dict[str, Any]]:
        return [item for event in self.events if isinstance(event, Items) for item in event.items]

    @property
    def notices(self) -> list[str]:
        return [event.code for event in self.events if isinstance(event, Notice)]

    @property
    def begun(self) -> list[EffectBegun]:
        return [event for event in self.events if isinstance(event, EffectBegun)]

    @property
    def done(self) -> list[str]:
        return [event.effect_id for event in self.events if isinstance(event, EffectDone)]

    @property
    def skipped(self) -> list[Failure]:
        return [e.skipped for e in self.events if isinstance(e, StepEnded) and e.skipped]


@dataclass
class Runner:
    """Runs steps on a tab, against a fresh evidence each time."""

    page: Page
    evidence: MemoryEvidence = field(default_factory=MemoryEvidence)
    denied: list[Denied] = field(default_factory=list)

    async def __call__(self, *steps: dict[str, Any], **plan: Any) -> Failure | None:
        timeouts = {"step": 20_000, "navigation": 30_000, **plan.pop("timeouts", {})}
        made = Plan.model_validate(
            {"job_id": "j", "attempt_id": "a", "name": "test", "steps": steps}
            | {"timeouts": timeouts}
            | plan
        )
        return await run_plan(self.page, made, self.evidence, denied=self._denied)

    async def on(self, markup: str, *steps: dict[str, Any], **plan: Any) -> Failure | None:
        """Run steps on a page of this markup."""
        await self.page.set_content(markup)
        return await self(*steps, **plan)

    async def extract(self, markup: str, fields: dict[str, Any], **spec: Any) -> list[Any]:
        """Extract from a page of this markup; it must succeed."""
        failure = await self.on(markup, {"type": "extract", "fields": fields, **spec})
        assert failure is None, failure
        return self.evidence.items

    def _denied(self) -> Sequence[Denied]:
        return self.denied


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(chromium_executable: str) -> AsyncIterator[Browser]:
    """A browser for the module."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_executable)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def tab(chromium: Browser) -> AsyncIterator[Page]:
    """A tab in an identity of its own."""
    context = await chromium.new_context()
    yield await context.new_page()
    await context.close()


@pytest_asyncio.fixture(loop_scope="module")
async def run(tab: Page) -> Runner:
    """Runs steps on the tab."""
    return Runner(tab)


@pytest_asyncio.fixture(loop_scope="module")
async def site() -> AsyncIterator[Site]:
    """A site of the test's own."""
    one = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", one.answer)
    async with listening(app) as one.url:
        yield one


@pytest.fixture
def evidence(run: Runner) -> MemoryEvidence:
    """What the run has said."""
    return run.evidence
