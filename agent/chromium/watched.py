"""The evidence of an attempt, listened to: which step runs, and since when without a sign."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agent.chromium.badge import Badge
from agent.ports import Evidence
from farm.protocol.messages import AttemptEvent, StepEnded, StepStarted
from farm.protocol.plan import Plan
from farm.protocol.steps import Back, Extract, Goto, Reload, Step, Type, Wait, WaitForUrl

UNHANG_S = 0.1
"""So long after a step's own time a page that does not answer has its script broken off."""
OVERDUE_S = 5.0
"""So long after it we end the step ourselves. A failed step has until then for its picture."""
_READING = frozenset({"extract", "eval", "assert", "html", "pdf", "set", "wait_for"})


class Watched:
    """An `Evidence` that passes everything on, and runs the outer clock of the steps.

    The clock stands still while the farm is what is waited for.
    """

    def __init__(
        self,
        evidence: Evidence,
        plan: Plan,
        *,
        badge: Badge | None,
        hung: Callable[[], None],
        overdue: Callable[[], None],
    ) -> None:
        self._evidence = evidence
        self._plan = plan
        self._badge = badge
        self._loop = asyncio.get_running_loop()
        self._calls = (UNHANG_S, hung), (OVERDUE_S, overdue)
        self._timers: list[asyncio.TimerHandle] = []
        self._limit_s: float | None = None
        self.step: StepStarted | None = None
        """The step that has begun last."""

    async def note(self, event: AttemptEvent) -> None:
        """Pass on, and take it for a sign of life."""
        match event:
            case StepStarted(index=index, verb=verb):
                self.step = event
                self._limit_s = limit_s(self._plan.steps[index], self._plan)
                if self._badge is not None:
                    await self._badge.hide(verb in _READING or self._names_title(index))
            case StepEnded():
                self._limit_s = None
            case _:
                pass
        self._restart()
        await self._evidence.note(event)

    def _names_title(self, index: int) -> bool:
        return "page.title" in self._plan.steps[index].model_dump_json()

    async def settle(self, event: AttemptEvent) -> None:
        """Pass on."""
        self.stop()
        try:
            await self._evidence.settle(event)
        finally:
            self._restart()

    async def upload(self, name: str, content: bytes | Path, media_type: str) -> str:
        """Pass on."""
        self.stop()
        try:
            return await self._evidence.upload(name, content, media_type)
        finally:
            self._restart()

    def stop(self) -> None:
        """Stop the clock."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _restart(self) -> None:
        self.stop()
        if self._limit_s is not None:
            self._timers = [
                self._loop.call_later(self._limit_s + after, call) for after, call in self._calls
            ]


def limit_s(step: Step, plan: Plan) -> float | None:
    """Return for how many seconds a step may give no sign; None leaves it to the job's clock."""
    timeouts = plan.timeouts
    match step:
        case Goto() | Back() | Reload() | WaitForUrl():
            limit = timeouts.navigation
        case Extract():
            # It has a clock a page, and pages need both reading and opening.
            limit = timeouts.step + timeouts.navigation
        case Wait(ms=ms):
            limit = timeouts.step + ms
        case Type(delay=delay) if delay:
            return None  # as long as its text, which is not known here
        case _:
            limit = timeouts.step
    return (limit if step.timeout is None else step.timeout) / 1000
