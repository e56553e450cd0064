"""extract: records from the page, and with `paginate` from those that its links lead to."""

import asyncio
from dataclasses import dataclass
from typing import Any

from turbohtml import Element

from agent.console import urls
from agent.console.navigation import open_url
from agent.console.page import Page, attribute
from agent.console.reading import Reading
from agent.console.selecting import Found, elements
from agent.console.sight import may_be_seen
from agent.console.stage import Stage
from agent.steps.collecting import MAX_TEXT, Collector
from agent.steps.failed import StepFailed, clean
from agent.steps.records import UNLIMITED, compile_fields
from agent.steps.substitution import substitute
from farm.protocol.extraction import Paginate
from farm.protocol.failures import Reason
from farm.protocol.steps import Extract

_CLOSEST = ("a", "area")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfResults:
    """What one page gave: how many elements, and the values of those within the limit."""

    count: int
    records: list[list[Any]]
    cut: int

    @property
    def mark(self) -> tuple[int, Any]:
        """What tells this page of results from another at the same address."""
        return self.count, self.records[:1]


async def extract(stage: Stage, step: Extract) -> None:
    """Take the records of the page, and with `paginate` of those after it."""
    collector = Collector(step, stage.flow.kept, stage.flow.evidence)
    found = await _read(stage, step)
    await _keep(stage, found, collector)
    if step.paginate is None:
        return
    pager = _Pager(stage, step, step.paginate)
    while not collector.full and await pager.advance():
        before, found = found, await _read(stage, step)
        if pager.address == pager.came_from and found.mark == before.mark:
            await stage.notice("page_unchanged", "the next page shows what this one does")
            return
        new = await _keep(stage, found, collector)
        if new == 0 and found.records and step.unique_by and not collector.full:
            await stage.notice("nothing_new", "the next page has no record that was not there yet")
            return


async def _read(stage: Stage, step: Extract) -> PageOfResults:
    # In a thread: a large page takes its time, and the agent's heartbeats must not wait for it.
    found = await asyncio.to_thread(read_page, stage.flow.page, step)
    wanted = step.min if step.list is not None else 1
    if found.count < wanted:
        raise StepFailed(
            Reason.SELECTOR_NOT_FOUND,
            clean(
                f"{step.list or step.within!r} matched {found.count}, wanted at least {wanted};"
                " a flow runs no scripts, so there will be no more"
            ),
        )
    if found.cut:
        detail = f"texts of more than {MAX_TEXT} characters were cut: {found.cut}"
        await stage.notice("text_cut", detail)
    return found


async def _keep(stage: Stage, found: PageOfResults, collector: Collector) -> int:
    names = stage.flow.names()
    return await collector.keep(found.records, resolve=lambda text: substitute(text, names))


def read_page(page: Page, step: Extract) -> PageOfResults:
    """Read the records of a page.

    Raises:
        StepFailed: `selector_invalid` or `needs_browser`.
    """
    roots = _roots(page, step)
    reading = Reading(page)
    try:
        records = reading.records(roots, compile_fields(step.fields), step.limit or UNLIMITED)
    except RecursionError:
        raise StepFailed(Reason.NEEDS_BROWSER, "the page is nested too deep for a flow") from None
    return PageOfResults(count=len(roots), records=records, cut=reading.cut)


def _roots(page: Page, step: Extract) -> list[Found]:
    scope: Any = page.document
    if step.within is not None:
        inside = elements(page.document, step.within)
        if not inside:
            return []
        scope = inside[0]
    return [scope] if step.list is None else list(elements(scope, step.list))


class _Pager:
    """Follows `paginate.next`, where it is a link with an address."""

    def __init__(self, stage: Stage, step: Extract, paginate: Paginate) -> None:
        self._stage = stage
        self._step = step
        self._paginate = paginate
        self._pages = 1
        self._visited = {self.address}
        self.came_from = self.address

    @property
    def address(self) -> str:
        """Where the page is, without the fragment."""
        return urls.without_fragment(self._stage.flow.page.url)

    async def advance(self) -> bool:
        """Go to the next page; return False where this one is the last.

        Each page has the step's clock anew, unless the step says how long all of them may take.

        Raises:
            StepFailed: `needs_browser` where what leads on has to be clicked.
        """
        if self._pages >= self._paginate.max_pages:
            return False
        clock = self._stage.flow.plan.timeouts
        href = self._following()
        if href is None:
            return False
        if href != self.address and href in self._visited:
            detail = f"the next page was there before: {href}"
            await self._stage.notice("pages_in_circles", detail)
            return False
        self._restart(clock.navigation + self._paginate.delay)
        await asyncio.sleep(self._paginate.delay / 1000)
        self._pages += 1
        self.came_from = self.address
        await open_url(self._stage, href)
        self._visited.add(self.address)
        self._restart(clock.step)
        return True

    def _following(self) -> str | None:
        page = self._stage.flow.page
        for element in elements(page.document, self._paginate.next):
            if element.tag == "link":
                if href := _href(page, element):
                    return self._leads(href)
                continue
            link = _link_around(element)
            parent = element.parent if isinstance(element.parent, Element) else None
            if any(map(_is_off, (element, parent, link))) or not may_be_seen(element):
                continue
            return self._leads(None if link is None else _href(page, link))
        return None

    def _leads(self, address: str | None) -> str:
        # A link within the page, `href="#"` above all, is a button that its script listens to.
        href, within, _ = (address or "").partition("#")
        if not href.startswith(("http:", "https:")) or (within and href == self.address):
            raise StepFailed(
                Reason.NEEDS_BROWSER,
                clean(f"{self._paginate.next!r} is no link with an address: it has to be clicked"),
            )
        return href

    def _restart(self, timeout_ms: int) -> None:
        if self._step.timeout is None:
            self._stage.clock.restart(timeout_ms)


def _link_around(element: Element) -> Element | None:
    node: Any = element
    while isinstance(node, Element):
        if node.tag in _CLOSEST and "href" in node.attrs:
            return node
        node = node.parent
    return None


def _href(page: Page, element: Element) -> str | None:
    value = attribute(element, "href")
    return None if value is None else urls.join(page.base, value)


def _is_off(element: Element | None) -> bool:
    if element is None:
        return False
    disabled = "disabled" in element.attrs and element.tag in ("button", "input", "select")
    return (
        disabled or attribute(element, "aria-disabled") == "true" or element.has_class("disabled")
    )
