"""From one page of results to the next."""

from urllib.parse import urldefrag

from agent.steps.navigation import open_url
from agent.steps.selectors import locate
from agent.steps.stage import Stage
from farm.protocol.extraction import Paginate
from farm.protocol.steps import Extract

_NEXT = """elements => {
  const off = element => element !== null && (element.disabled === true
    || element.getAttribute('aria-disabled') === 'true' || element.classList.contains('disabled'));
  for (let i = 0; i < elements.length; i++) {
    const element = elements[i];
    if (element.localName === 'link') {
      if (element.href) return {index: i, href: element.href};
      continue;
    }
    const link = element.closest('a[href], area[href]');
    if (off(element) || off(element.parentElement) || off(link)) continue;
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    return {index: i, href: link !== null && typeof link.href === 'string' ? link.href : null};
  }
  return null;
}"""


class Pager:
    """Follows `paginate.next` of one extract step.

    A link with an address is opened (a GET, so no effect); anything else is clicked, which counts
    as an effect as a click step would.
    """

    def __init__(self, stage: Stage, step: Extract, paginate: Paginate) -> None:
        self._stage = stage
        self._step = step
        self._paginate = paginate
        self._pages = 1
        self._visited = {self.address}
        self.clicked = False
        self.came_from = self.address

    @property
    def address(self) -> str:
        """Where the page is, without the fragment."""
        return urldefrag(self._stage.page.url).url

    async def advance(self) -> bool:
        """Go to the next page; return False where this one is the last.

        Each page has the step's clock anew, unless the step says how long all of them may take.
        """
        if self._pages >= self._paginate.max_pages:
            return False
        clock = self._stage.attempt.plan.timeouts
        self._restart(clock.step)
        following = await self._following()
        if following is None:
            return False
        index, href = following
        if href is not None and href != self.address and href in self._visited:
            await self._stage.notice("pages_in_circles", f"the next page was there before: {href}")
            return False
        self._restart(clock.navigation + self._paginate.delay)
        if self._paginate.delay:
            await self._stage.pause(self._paginate.delay / 1000)
        self._pages += 1
        self.came_from = self.address
        self.clicked = href is None
        if href is None:
            await self._click(index)
        else:
            await open_url(self._stage, href)
        self._visited.add(self.address)
        self._restart(clock.step)
        return True

    async def _following(self) -> tuple[int, str | None] | None:
        """Return which match of `next` to take, and its address where it is a link."""
        with self._stage.using(self._paginate.next):
            found = await locate(self._stage.page, self._paginate.next).evaluate_all(_NEXT)
        if found is None:
            return None
        # A link within the page, `href="#"` above all, is a button that its script listens to.
        href, within, _ = (found["href"] or "").partition("#")
        leads = href.startswith(("http:", "https:")) and not (within and href == self.address)
        return found["index"], href if leads else None

    async def _click(self, index: int) -> None:
        target = locate(self._stage.page, self._paginate.next).nth(index)
        counts_as = self._step.effect or self._stage.attempt.plan.effects
        with self._stage.using(self._paginate.next):
            await target.click(trial=True, timeout=self._stage.clock.playwright_ms)
            async with self._stage.effect(counts_as), self._stage.acting():
                await target.click(timeout=self._stage.clock.playwright_ms)

    def _restart(self, timeout_ms: int) -> None:
        if self._step.timeout is None:
            self._stage.clock.restart(timeout_ms)
