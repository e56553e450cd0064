"""extract: records from the page, one evaluation for each page of results."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Locator

from agent.steps.collecting import MAX_TEXT, Collector, mentions_title
from agent.steps.failures import StepFailed, clean, failed, invalid_selector, navigated_away
from agent.steps.pagination import Pager
from agent.steps.records import UNLIMITED, compile_fields, tampered
from agent.steps.selectors import locate
from agent.steps.stage import Stage
from agent.steps.substitution import substitute
from farm.protocol.failures import Reason
from farm.protocol.steps import Extract

CHANGE_S = 5.0
"""How long a click on `next` may take to show something else."""
_SCRIPT = files("agent.steps").joinpath("extract.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfResults:
    """What one evaluation found: how many elements, and the values of those within the limit."""

    count: int
    records: list[Any]
    size: int
    """How long the answer was, in characters; 0 where it did not come as a text."""

    @property
    def mark(self) -> tuple[int, Any]:
        """What tells this page of results from another at the same address."""
        return self.count, self.records[:1]


class _Extraction:
    """One extract step, on however many pages of results."""

    def __init__(self, stage: Stage, step: Extract) -> None:
        self.stage = stage
        self.step = step
        self.collector = Collector(step, stage.attempt.kept, stage.attempt.evidence)
        self._spec = {
            "fields": compile_fields(step.fields),
            "limit": step.limit or UNLIMITED,
            "maxText": MAX_TEXT,
            "list": step.list,
            "within": step.within,
        }
        self._roots = _roots(stage, step)
        self._written = step.list or step.within
        self._needs_title = mentions_title(step.fields)

    async def page(self) -> PageOfResults:
        """Evaluate the page; waits until there are as many records as `min` wants."""
        wanted = self.step.min if self.step.list is not None else 1
        while True:
            found = await self.look()
            if found.count >= wanted:
                return found
            await self._wait_until_there(wanted, found.count)

    async def look(self) -> PageOfResults:
        """Evaluate the page once, or again where it went elsewhere meanwhile."""
        turn = 0
        while True:
            try:
                return await self._evaluate()
            except PlaywrightError as error:
                if not navigated_away(error) or self.stage.clock.over:
                    raise self._not_evaluated(error) from None
            await self.stage.poll_pause(turn)
            turn += 1

    async def keep(self, found: PageOfResults) -> int:
        """Note the records as items and return how many were new.

        Raises:
            StepFailed: `required_missing`; the records before that one have been noted.
        """
        resolve = await self._resolver()
        return await self.collector.keep(found.records, resolve=resolve, size=found.size)

    @property
    def full(self) -> bool:
        """Whether there are as many items as were asked for."""
        return self.collector.full

    async def _evaluate(self) -> PageOfResults:
        answer = None
        if self._roots is None or self.step.list is not None:
            # As part of the text: Playwright takes arguments apart, value by value.
            answer = await self.stage.page.evaluate(f"({_SCRIPT})({json.dumps(self._spec)})")
        if answer is None or answer == {"elsewhere": True}:
            assert self._roots is not None  # noqa: S101 - the document itself is never elsewhere
            answer = await self._roots.evaluate_all(_SCRIPT, self._spec)
        size = len(answer) if isinstance(answer, str) else 0
        parsed = _parsed(answer)
        if "invalid" in parsed:
            raise invalid_selector(
                str(parsed["invalid"]), f"{parsed.get('why')} (field {parsed.get('path')})"
            )
        match parsed:
            case {"n": int(count), "records": list(records), "cut": int(cut)}:
                if cut:
                    await self.stage.notice(
                        "text_cut", f"texts of more than {MAX_TEXT} characters were cut: {cut}"
                    )
                return PageOfResults(count=count, records=records, size=size)
            case _:
                raise tampered()

    async def _wait_until_there(self, wanted: int, count: int) -> None:
        assert self._roots is not None  # noqa: S101 - the document itself is always there
        try:
            with self.stage.using(self._written):
                await self._roots.nth(wanted - 1).wait_for(
                    state="attached", timeout=self.stage.clock.playwright_ms
                )
        except StepFailed as failure:
            if failure.reason is not Reason.SELECTOR_NOT_FOUND:
                raise
            raise StepFailed(
                Reason.SELECTOR_NOT_FOUND,
                clean(
                    f"{self._written!r} matched {count}, wanted at least {wanted}"
                    f" {self.stage.clock.words}"
                ),
            ) from None

    def _not_evaluated(self, error: PlaywrightError) -> StepFailed:
        failure = failed(error, selector=self._written, waited=self.stage.clock.words)
        if failure.reason is not Reason.INTERNAL:
            return failure
        return StepFailed(Reason.SCRIPT_ERROR, clean(f"{tampered().detail}: {failure.detail}"))

    async def _resolver(self) -> Callable[[str], object]:
        title = await self.stage.page.title() if self._needs_title else None
        names = self.stage.attempt.names(title)
        return lambda text: substitute(text, names)


async def extract(stage: Stage, step: Extract) -> None:
    """Take the records of the page, and with `paginate` of those after it."""
    extraction = _Extraction(stage, step)
    found = await extraction.page()
    await extraction.keep(found)
    if step.paginate is None:
        return
    pager = Pager(stage, step, step.paginate)
    while not extraction.full and await pager.advance():
        found_before, found = found, await _next_page(stage, extraction, pager, found)
        if pager.address == pager.came_from and found.mark == found_before.mark:
            await stage.notice("page_unchanged", "the next page shows what this one does")
            return
        new = await extraction.keep(found)
        if new == 0 and found.records and step.unique_by and not extraction.full:
            await stage.notice("nothing_new", "the next page has no record that was not there yet")
            return


async def _next_page(
    stage: Stage, extraction: _Extraction, pager: Pager, before: PageOfResults
) -> PageOfResults:
    """Evaluate the page that was advanced to; after a click, once it shows something else."""
    if pager.clicked:
        turn, until = 0, max(0.0, stage.clock.left_s - CHANGE_S)
        while pager.address == pager.came_from and stage.clock.left_s > until:
            if (await extraction.look()).mark != before.mark:
                break
            await stage.poll_pause(turn)
            turn += 1
        with stage.using(None):
            await stage.page.wait_for_load_state("load", timeout=stage.clock.playwright_ms)
    return await extraction.page()


def _roots(stage: Stage, step: Extract) -> Locator | None:
    """Return the elements that are records; None is the document itself."""
    if step.within is None:
        return None if step.list is None else locate(stage.page, step.list)
    inside = locate(stage.page, step.within).first
    return inside if step.list is None else locate(inside, step.list)


def _parsed(answer: object) -> dict[str, Any]:
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            raise tampered() from None
    if not isinstance(answer, dict):
        raise tampered()
    return answer
