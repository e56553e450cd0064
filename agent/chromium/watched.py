"""The evidence of an attempt, listened to: which step runs, and since when without a sign."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agent.chromium.overlays import TabOverlay
from agent.ports import Evidence
from farm.protocol.messages import AttemptEvent, StepEnded, StepStarted
from farm.protocol.plan import Plan
from farm.protocol.recordings import RecordingKind
from farm.protocol.steps import (
    HUMAN_MS,
    Back,
    Extract,
    Goto,
    Human,
    Reload,
    Step,
    Type,
    Wait,
    WaitForUrl,
)

UNHANG_S = 0.1
"""So long after a step's own time a page that does not answer has its script broken off."""
OVERDUE_S = 5.0
"""So long after it we end the step ourselves. A failed step has until then for its picture."""
_WAITING = frozenset({"goto", "back", "reload", "wait", "wait_for", "wait_for_url", "human"})
"""Verbs that point at nothing in the page, so the overlay's controls may be in the way."""


class Watched:
    """An `Evidence` that passes everything on, and runs the outer clock of the steps.

    The clock stands still while the farm is what is waited for.
    """

    def __init__(
        self,
        evidence: Evidence,
        plan: Plan,
        *,
        overlay: TabOverlay | None,
        hung: Callable[[], None],
        overdue: Callable[[], None],
    ) -> None:
        self._evidence = evidence
        self._plan = plan
        self._overlay = overlay
        self._loop = asyncio.get_running_loop()
        self._calls = (UNHANG_S, hung), (OVERDUE_S, overdue)
        self._timers: list[asyncio.TimerHandle] = []
        self._limit_s: float | None = None
        self.step: StepStarted | None = None
        """The step that has begun last."""

    async def note(self, event: AttemptEvent) -> None:
        """Pass on, and take it for a sign of life."""
        match event:
            case StepStarted(index=index, verb=verb, label=label):
                self.step = event
                self._limit_s = limit_s(self._plan.steps[index], self._plan)
                if self._overlay is not None:
                    await self._overlay.step(index + 1, label, live=verb in _WAITING)
            case StepEnded():
                self._limit_s = None
            case _:
                pass
        self._restart()
        await self._evidence.note(event)

    async def settle(self, event: AttemptEvent) -> None:
        """Pass on."""
        self.stop()
        try:
            await self._evidence.settle(event)
        finally:
            self._restart()

    async def upload(
        self,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        """Pass on."""
        self.stop()
        try:
            return await self._evidence.upload(name, content, media_type, recording=recording)
        finally:
            self._restart()

    async def fetch(self, reference: str, into: Path, max_bytes: int) -> Path:
        """Pass on."""
        self.stop()
        try:
            return await self._evidence.fetch(reference, into, max_bytes)
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
        case Human():
            limit = HUMAN_MS
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
