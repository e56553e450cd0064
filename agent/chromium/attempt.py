"""One attempt on one tab, under clocks of our own.

What ends first decides: the plan, the tab (crashed, closed, or lost with the browser), the job's
time, or a step that goes on after its own time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Protocol, assert_never

import structlog
from playwright.async_api import Page

import overlay
from agent.chromium.control import Act
from agent.chromium.countdown import Countdown
from agent.chromium.files import AttemptFiles
from agent.chromium.happenings import Happenings
from agent.chromium.recording import Recordings
from agent.chromium.shielding import to_the_end
from agent.chromium.tabs import End, Tab
from agent.chromium.watched import Watched
from agent.machine.control import Move, OutOfPlaceError
from agent.ports import Bare, Control, Denied, Evidence, Files, Outcome, StaleAssignment
from farm.protocol.failures import Failure, Reason
from farm.protocol.plan import Plan

_log = structlog.get_logger(__name__)
AT_BROWSER = "somebody at the browser"
_MOVES = {
    "pause": Move.PAUSE,
    "resume": Move.RESUME,
    "take_over": Move.TAKE_OVER,
    "hand_back": Move.HAND_BACK,
}
_CANCEL_S = 2.0
_NEWS_S = 0.3
"""How long a failure waits for word that the tab or the browser was its cause."""
_MAYBE_GONE = frozenset({Reason.PAGE_CLOSED, Reason.PAGE_CRASHED, Reason.INTERNAL})


class RunPlan(Protocol):
    """What runs the steps: `agent.steps.run.run_plan`."""

    async def __call__(
        self,
        page: Page,
        plan: Plan,
        evidence: Evidence,
        *,
        denied: Callable[[], Sequence[Denied]],
        bare: Bare,
        control: Control,
        files: Files,
    ) -> Failure | None:
        """Run the plan; None is success."""
        ...


class Attempt:
    """Runs once."""

    def __init__(
        self,
        tab: Tab,
        plan: Plan,
        evidence: Evidence,
        run_plan: RunPlan,
        folder: Path,
        recordings: Recordings | None = None,
    ) -> None:
        self._tab = tab
        self._plan = plan
        self._run_plan = run_plan
        self._evidence = evidence
        self._recordings = recordings
        self._verdict: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._hung, self._moved = asyncio.Event(), asyncio.Event()
        self._happenings = Happenings()
        self._files = AttemptFiles(folder)
        self._watched = Watched(
            evidence, plan, overlay=tab.overlay, hung=self._hung.set, overdue=self._overdue
        )

        self._job_time = Countdown(plan.timeouts.job / 1000, self._job_over)
        self._pause_time = Countdown(tab.control.longest_s, self._paused_too_long)

    async def run(self, close: Callable[[], Awaitable[None]]) -> Outcome:
        """Run to the first end; `close` closes the tab, and is awaited if the plan does not stop.

        What is recorded has been handed in then, or has failed.

        Raises:
            CancelledError: If cancelled; the plan has been stopped, the tab has not been closed.
        """
        recordings = self._recordings
        if recordings is None:
            return await self._run(close)
        self._tab.company = recordings.company
        try:
            outcome = await self._run(close)
            await recordings.end(failed=outcome.outcome != "succeeded")
        except asyncio.CancelledError:
            await to_the_end(recordings.hurry(), name="recordings.hurry")
            raise
        finally:
            self._tab.company = None
        return outcome

    async def _run(self, close: Callable[[], Awaitable[None]]) -> Outcome:
        self._job_time.go()
        self._tab.control.begin(self._happenings.tell, self._control_moved)
        self._tab.happenings, self._tab.files = self._happenings, self._files
        self._tab.most_extras = self._plan.popups
        self._tab.ended.add_done_callback(self._on_end)
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [
                    group.create_task(
                        self._happenings.forward(self._evidence), name="attempt.notices"
                    ),
                    group.create_task(self._free_when_hung(), name="attempt.unhang"),
                    group.create_task(self._show_control(), name="attempt.control"),
                    group.create_task(self._look_at_screen(), name="attempt.screen"),
                ]
                if self._recordings is not None:
                    watch = group.create_task(self._recordings.watch(), name="attempt.record")
                    helpers.append(watch)
                work = group.create_task(self._work(), name="attempt.plan")
                try:
                    await asyncio.wait({work, self._verdict}, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError:
                    await to_the_end(_stop(work, close))
                    raise
                outcome = await self._conclude(work, close)
                for helper in helpers:
                    helper.cancel()
            if self._tab.overlay is not None:
                await self._tab.overlay.finish()
            await self._happenings.forward_rest(self._evidence)
            return outcome
        finally:
            self._tab.control.end()
            self._job_time.stop()
            self._pause_time.stop()
            self._watched.stop()
            self._tab.ended.remove_done_callback(self._on_end)
            self._tab.happenings = self._tab.files = None
            await self._files.close()

    async def _work(self) -> Outcome:
        overlay = self._tab.overlay
        if overlay is not None:
            await overlay.begin(self._plan, self)
        if self._recordings is None:
            return await self._steps()
        without = self._plan.record is not None and not self._plan.record.overlay
        async with overlay.bare() if without and overlay is not None else nullcontext():
            await self._recordings.begin()
            return await self._steps()

    async def _steps(self) -> Outcome:
        overlay = self._tab.overlay
        try:
            failure = await self._run_plan(
                self._tab.page,
                self._plan,
                self._watched,
                denied=self._happenings.denied,
                bare=nullcontext if overlay is None else overlay.bare,
                control=self._tab.control,
                files=self._files,
            )
        except StaleAssignment:
            return self._failed(Reason.STALE_ASSIGNMENT, "the attempt has ended for the farm")
        except Exception as error:  # noqa: BLE001 - a run ends with an outcome, whatever happens
            _log.exception("attempt.broken", context_id=self._tab.context_id)
            return self._failed(Reason.INTERNAL, f"{type(error).__name__}: {error}")
        if failure is None:
            return Outcome(outcome="succeeded")
        return Outcome(outcome="failed", failure=failure)

    async def _conclude(
        self, work: asyncio.Task[Outcome], close: Callable[[], Awaitable[None]]
    ) -> Outcome:
        if not self._verdict.done():
            outcome = work.result()
            if outcome.failure is None or outcome.failure.reason not in _MAYBE_GONE:
                return outcome
            await asyncio.wait({self._verdict}, timeout=_NEWS_S)
            return self._verdict.result() if self._verdict.done() else outcome
        if self._tab.ended.done() and self._tab.ended.result() is End.FLOODED:
            await self._tab.silence()
        await _stop(work, close)
        return self._verdict.result()

    async def _free_when_hung(self) -> None:
        while True:
            await self._hung.wait()
            self._hung.clear()
            await self._tab.unhang()

    async def _show_control(self) -> None:
        control, shown = self._tab.control, self._tab.overlay
        while shown is not None:
            await self._moved.wait()
            self._moved.clear()
            await shown.control(control.holder, control.by, control.asked)

    async def _look_at_screen(self) -> None:
        while self._tab.overlay is not None:
            await self._tab.overlay.seen(await self._tab.pressed.get())

    # What people at the browser want: see `agent.chromium.overlays.Wishes`

    def wanted(self, said: overlay.Stop | overlay.Control) -> None:
        """Stop the run, or let somebody have it or go on."""
        match said:
            case overlay.Stop():
                self._stopped()
            case overlay.Control(what=what):
                # What is out of place was pressed on a picture that is old by now.
                with suppress(OutOfPlaceError):
                    self._tab.control.move(_MOVES[what], AT_BROWSER)
            case _ as unreachable:
                assert_never(unreachable)

    def acted(self, act: Act) -> None:
        """The person in control has done something in the page."""
        self._tab.control.acted(act)

    def _on_end(self, ended: asyncio.Future[End]) -> None:
        match ended.result():
            case End.CRASHED:
                self._decide(self._failed(Reason.PAGE_CRASHED, "the page's renderer crashed"))
            case End.CLOSED:
                self._decide(self._failed(Reason.PAGE_CLOSED, "somebody closed the page"))
            case End.FLOODED:
                self._decide(
                    self._failed(
                        Reason.PAGE_FLOODED, "the page's scripts raised errors without end"
                    )
                )
            case End.LOST:
                self._decide(self._failed(Reason.BROWSER_LOST, "the browser ended"))
            case _ as unreachable:
                assert_never(unreachable)

    def _job_over(self) -> None:
        limit = self._plan.timeouts.job / 1000
        failure = self._failure(Reason.JOB_TIMEOUT, f"the job did not end within {limit:g} s")
        self._decide(Outcome(outcome="timed_out", failure=failure))

    def _control_moved(self) -> None:
        control = self._tab.control
        self._moved.set()
        if control.human_may_act:
            # By whichever way they came; a page does not tell of all that a person can do in it.
            self._tab.traces.stain("a person had control")
        if control.held:
            self._job_time.stop()
        else:
            self._job_time.go()
        if control.held and not control.asked:
            self._pause_time.go()
        elif not control.held:
            self._pause_time.reset()

    def _paused_too_long(self) -> None:
        by = f" by {self._tab.control.by}" if self._tab.control.by else ""
        limit = self._tab.control.longest_s
        self._decide(
            self._failed(
                Reason.PAUSED_TOO_LONG, f"held{by}; nobody let it go on within {limit:g} s"
            )
        )

    def _stopped(self) -> None:
        failure = self._failure(Reason.CANCELLED, "a person stopped it in the browser")
        self._decide(Outcome(outcome="cancelled", failure=failure))

    def _overdue(self) -> None:
        self._decide(self._failed(Reason.STEP_TIMEOUT, "the step went on after its time"))

    def _decide(self, outcome: Outcome) -> None:
        if not self._verdict.done():
            self._verdict.set_result(outcome)

    def _failed(self, reason: Reason, detail: str) -> Outcome:
        return Outcome(outcome="failed", failure=self._failure(reason, detail))

    def _failure(self, reason: Reason, detail: str) -> Failure:
        step = self._watched.step
        if step is None:
            return Failure(reason=reason, detail=detail[:2000])
        return Failure(
            reason=reason, detail=detail[:2000], step_index=step.index, step=step.label or step.verb
        )


async def _stop(work: asyncio.Task[Outcome], close: Callable[[], Awaitable[None]]) -> None:
    work.cancel()
    await asyncio.wait({work}, timeout=_CANCEL_S)
    if not work.done():
        await close()  # makes every call on the page raise
