"""What a verb works with: page, clock of the step, variables, and the journal of effects."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Locator, Page
from playwright.async_api import TimeoutError as PlaywrightTimeout

from agent.ports import Bare, Control, Denied, Evidence, Files
from agent.steps.collecting import Kept
from agent.steps.failures import StepFailed, failed, nothing_was_done
from agent.steps.selectors import locate
from agent.steps.substitution import Names
from agent.steps.timing import StepClock
from farm.protocol.messages import EffectBegun, EffectDone, Notice
from farm.protocol.plan import Plan
from farm.protocol.steps import Effect, StepBase, Targeted, effect_of


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What outlives a step: everything the steps of one attempt share."""

    page: Page
    plan: Plan
    evidence: Evidence
    denied: Callable[[], Sequence[Denied]]
    bare: Bare
    control: Control
    files: Files
    variables: dict[str, Any] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    index: int = 0
    step: StepBase | None = None
    """The step that runs, with `index`: an observed request is put down to it."""

    def names(self, title: str | None = None) -> Names:
        """Return what a text may refer to at this moment."""
        page = {"url": self.page.url}
        if title is not None:
            page["title"] = title
        return {"vars": self.variables, "params": self.plan.params, "page": page}


class Stage:
    """One step on its page."""

    def __init__(self, attempt: Attempt, step: StepBase, clock: StepClock) -> None:
        self.attempt = attempt
        self.page = attempt.page
        self.clock = clock
        self._step = step
        self._effects = 0

    @asynccontextmanager
    async def effect(self, effect: Effect | None = None) -> AsyncIterator[None]:
        """Journal the body as an effect: durable at the farm before it runs, done after it.

        Does nothing but run the body where the step counts as having no effect. A body that raises
        leaves the effect begun and not done, because nobody knows how far it got; unless what it
        raised says that nothing was done yet.

        Args:
            effect: What it counts as; None is what the step counts as.

        Raises:
            StaleAssignment: If the attempt has ended for the farm; the body has not run.
        """
        counts_as = self.counts_as if effect is None else effect
        if counts_as is Effect.NONE:
            yield
            return
        effect_id = f"s{self.attempt.index}.{self._effects}"
        self._effects += 1
        begun = EffectBegun(effect_id=effect_id, index=self.attempt.index, effect=counts_as.value)
        async with self.clock.stopped():
            await self.attempt.evidence.settle(begun)
        try:
            yield
        except (PlaywrightError, StepFailed) as error:
            if nothing_was_done(error):
                await self.attempt.evidence.note(EffectDone(effect_id=effect_id))
            raise
        await self.attempt.evidence.note(EffectDone(effect_id=effect_id))

    def acting(self) -> AbstractAsyncContextManager[None]:
        """Let the step's mouse and keys reach the page; the body should be short."""
        return self.attempt.control.acting()

    @property
    def counts_as(self) -> Effect:
        """What the step may do outside: by its own word, else by its verb and the job."""
        return effect_of(self._step, self.attempt.plan.effects)

    @contextmanager
    def using(self, selector: str | None) -> Iterator[None]:
        """Turn what Playwright raises in the body into the failure of a step on `selector`."""
        try:
            yield
        except PlaywrightError as error:
            raise failed(error, selector=selector, waited=self.clock.words) from None

    async def visible(self, target: Locator) -> None:
        """Wait until the one element is there to be acted on, before its effect begins."""
        if self.counts_as is not Effect.NONE:
            await target.wait_for(state="visible", timeout=self.clock.playwright_ms)

    async def notice(self, code: str, detail: str) -> None:
        """Note something that fails nothing."""
        await self.attempt.evidence.note(Notice(code=code, detail=detail, index=self.attempt.index))

    async def upload(self, name: str, content: bytes, media_type: str) -> None:
        """Store an artifact; the step's clock stands still meanwhile.

        Raises:
            UploadRefused: If the farm does not take it.
        """
        async with self.clock.stopped():
            await self.attempt.evidence.upload(name, content, media_type)

    def target(self, step: Targeted) -> Locator:
        """Return the one element a step is about; strict unless `first` or `nth` is said."""
        locator = locate(self.page, step.selector)
        if step.nth is not None:
            return locator.nth(step.nth)
        return locator.first if step.first else locator

    async def pause(self, seconds: float) -> None:
        """Let a moment pass; ends with Playwright's error when the page crashes or closes."""
        await self.page.wait_for_timeout(seconds * 1000)

    async def poll_pause(self, turn: int) -> None:
        """Wait before looking again: 50 ms at first, up to 250 ms later.

        Raises:
            PlaywrightTimeout: If the step's time is over.
        """
        if self.clock.over:
            raise PlaywrightTimeout("time is over")
        until_last = self.clock.left_s - self.clock.reserve_s
        await self.pause(max(0.001, min(0.05 * (turn + 1), 0.25, until_last)))
