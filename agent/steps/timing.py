"""The clock of a step, and what it says when the time is over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.steps.failed import StepFailed
from farm.protocol.failures import Reason
from farm.protocol.plan import Timeouts
from farm.protocol.steps import HUMAN_MS, Human, StepBase

FASTER_BY_S = 0.5
"""How much earlier than ours Playwright's clock ends, at most: its message says more."""


class StepClock:
    """How long a step may still take. Stands still while the farm is what we wait for."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._loop = asyncio.get_running_loop()
        self._outer = asyncio.timeout(timeout_ms / 1000)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Cancel the body when the time is over.

        Raises:
            TimeoutError: In place of the cancellation, and only for it.
        """
        async with self._outer:
            yield

    def restart(self, timeout_ms: int) -> None:
        """Give the step so long from now on."""
        self.timeout_ms = timeout_ms
        self._outer.reschedule(self._loop.time() + timeout_ms / 1000)

    @property
    def left_s(self) -> float:
        """The seconds left, never negative."""
        end = self._outer.when()
        return 0.0 if end is None else max(0.0, end - self._loop.time())

    @property
    def playwright_ms(self) -> float:
        """What to give a Playwright call as `timeout`: a little less than is left, never 0."""
        left = self.left_s
        return max(1.0, 1000 * (left - min(FASTER_BY_S, left / 10)))

    @property
    def over(self) -> bool:
        """Whether so little is left that there is time for one last look."""
        return self.left_s <= self.reserve_s

    @property
    def reserve_s(self) -> float:
        """What a step that looks again and again leaves for its last look."""
        return min(FASTER_BY_S, max(0.1, self.timeout_ms / 10_000), self.timeout_ms / 2_000)

    @property
    def words(self) -> str:
        """The limit, for a person: `within 15 s`."""
        return f"within {self.timeout_ms / 1000:g} s"

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """Let the body take any time; the job's clock bounds it."""
        left = self.left_s
        self._outer.reschedule(None)
        try:
            yield
        finally:
            if not self._outer.expired():
                self._outer.reschedule(self._loop.time() + left)


def timeout_of(step: StepBase, timeouts: Timeouts, *, navigates: bool) -> int:
    """Return how long a step may take, in milliseconds."""
    if step.timeout is not None:
        return step.timeout
    if isinstance(step, Human):
        return HUMAN_MS
    return timeouts.navigation if navigates else timeouts.step


def timed_out(clock: StepClock, *, navigation: bool, url: str) -> StepFailed:
    """Return the failure of a step that our own clock ended."""
    if navigation:
        return StepFailed(
            Reason.NAVIGATION_TIMEOUT, f"the navigation did not end {clock.words}; at {url}"[:2000]
        )
    return StepFailed(Reason.STEP_TIMEOUT, f"the step did not end {clock.words}")
