"""A flow against a site of the test's own, and the same steps in a real tab."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, async_playwright

from agent.console.fetching import Limits, client
from agent.console.run import run_plan
from agent.console.stage import ActivityContext, Flow
from agent.egress.policy import Policy
from agent.egress.resolving import Resolver, system_resolver
from agent.steps.failed import StepFailed
from farm.protocol.failures import Failure, Reason
from farm.protocol.plan import Plan
from tests.agent.steps.conftest import MemoryEvidence, Site
from tests.listening import listening

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NoActivities:
    async def run(self, name: str, args: Mapping[str, Any], context: ActivityContext) -> object:
        raise StepFailed(Reason.VALUE_INVALID, "none are installed")


class FlowRun:
    """Runs steps in a flow, each time in a new one, with an evidence of its own."""

    def __init__(self) -> None:
        self.evidence = MemoryEvidence()
        self.activities: Any = NoActivities()
        self.resolver: Resolver = system_resolver
        self.max_bytes = 2_000_000
        self.may_act = True
        self.variables: dict[str, Any] = {}

    async def __call__(self, *steps: dict[str, Any], **plan: Any) -> Failure | None:
        self.evidence = MemoryEvidence()
        made = plan_of(*steps, **{"egress": {"allow": ["127.0.0.1"]}, **plan})
        async with client(
            Policy.of(made.egress),
            made.options,
            Limits(max_bytes=self.max_bytes),
            may_act=lambda: self.may_act,
            resolver=self.resolver,
        ) as one:
            flow = Flow(client=one, plan=made, evidence=self.evidence, activities=self.activities)
            self.variables = flow.variables
            return await run_plan(flow)

    @property
    def items(self) -> list[dict[str, Any]]:
        return self.evidence.items


def plan_of(*steps: dict[str, Any], **plan: Any) -> Plan:
    timeouts = {"step": 3_000, "navigation": 3_000, **plan.pop("timeouts", {})}
    return Plan.model_validate(
        {"job_id": "j", "attempt_id": "a", "name": "test", "steps": steps}
        | {"timeouts": timeouts}
        | plan
    )


@asynccontextmanager
async def served(site: Site) -> AsyncIterator[Site]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.answer)
    async with listening(app) as site.url:
        yield site


@pytest_asyncio.fixture(loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with served(Site()) as one:
        yield one


@pytest.fixture
def flow() -> FlowRun:
    return FlowRun()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(chromium_executable: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_executable)
        yield browser
        await browser.close()


def answering(body: bytes, content_type: str | None, **headers: str) -> Handler:
    """Answer with these bytes under this Content-Type; None says none."""

    async def handler(_: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        if content_type is None:
            response.headers["Content-Type"] = ""
        else:
            response.headers["Content-Type"] = content_type
        response.content_length = len(body)
        await response.prepare(_)
        await response.write(body)
        return response

    return handler


def as_bytes(items: list[dict[str, Any]]) -> bytes:
    return json.dumps(items, ensure_ascii=False).encode("utf-8", "surrogatepass")
