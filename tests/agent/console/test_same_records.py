"""The same steps on the same pages, in a flow and in a tab: the records are equal, to the byte.

Nothing on these pages is done by scripts, and nothing hidden by styles.
"""

from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from agent.steps.run import run_plan
from tests.agent.console.conftest import FlowRun, answering, as_bytes, plan_of
from tests.agent.console.pages import CHARSETS, SHAPES
from tests.agent.steps.conftest import MemoryEvidence, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


class Tab:
    """The same steps in a tab of a browser."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.evidence = MemoryEvidence()

    async def __call__(self, *steps: dict[str, Any], **plan: Any) -> object:
        self.evidence = MemoryEvidence()
        return await run_plan(self._page, plan_of(*steps, **plan), self.evidence)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab(chromium: Browser) -> Tab:
    context = await chromium.new_context()
    return Tab(await context.new_page())


async def both(flow: FlowRun, tab: Tab, *steps: dict[str, Any]) -> tuple[bytes, bytes]:
    in_flow, in_tab = await flow(*steps), await tab(*steps)
    assert in_tab is None, in_tab
    assert in_flow is None, in_flow
    assert flow.items
    return as_bytes(flow.items), as_bytes(tab.evidence.items)


@pytest.mark.parametrize("shape", SHAPES)
async def test_pages_of_every_shape(site: Site, flow: FlowRun, tab: Tab, shape: str) -> None:
    markup, spec = SHAPES[shape]
    site.pages["/page"] = answering(
        f"<!doctype html><title> A\n page </title>{markup}".encode(), "text/html; charset=utf-8"
    )
    steps = {"type": "goto", "url": f"{site.url}/page"}, {"type": "extract", **spec}
    in_flow, in_tab = await both(flow, tab, *steps)
    assert in_flow.decode() == in_tab.decode()


@pytest.mark.parametrize("charset", CHARSETS)
async def test_pages_in_every_encoding(site: Site, flow: FlowRun, tab: Tab, charset: str) -> None:
    site.pages["/page"] = answering(*CHARSETS[charset])
    fields = {"text": "body", "html": {"html": "outer"}, "title": {"value": "${page.title}"}}
    steps = {"type": "goto", "url": f"{site.url}/page"}, {"type": "extract", "fields": fields}
    in_flow, in_tab = await both(flow, tab, *steps)
    assert in_flow.decode("utf-8", "surrogatepass") == in_tab.decode("utf-8", "surrogatepass")
