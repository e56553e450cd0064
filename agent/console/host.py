"""`agent.ports.Host` of flows: attempts side by side in this process, each with all it needs."""

import asyncio
import os
from collections.abc import Callable, Iterable
from importlib.metadata import version

import structlog
import turbohtml

from agent.console.activities import ActivityMissing, InstalledActivities
from agent.console.fetching import Limits, client
from agent.console.run import run_plan
from agent.console.stage import Flow
from agent.egress.policy import Policy
from agent.ports import (
    BrowserEvent,
    BrowserInfo,
    BrowserLost,
    BrowserUnavailable,
    Evidence,
    Lender,
    Outcome,
    StaleAssignment,
)
from farm.protocol.failures import Failure, Reason
from farm.protocol.plan import Plan

_log = structlog.get_logger(__name__)


class FlowHost:
    """Implements `agent.ports.Host`.

    Args:
        max_page_bytes: How long a page, or the answer of an `http` step, may be.
        activities: The names of the installed activities that may be run.
        may_act: Whether the farm can't have taken us for gone; while it says no, nothing is sent.
    """

    def __init__(
        self,
        *,
        max_page_bytes: int,
        activities: Iterable[str] = (),
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._limits = Limits(max_bytes=max_page_bytes)
        self._allowed = tuple(activities)
        self._may_act = may_act
        self._activities: InstalledActivities | None = None
        self._runaway: str | None = None
        self._tell: Callable[[BrowserEvent], None] = lambda _: None
        self._attempts: set[asyncio.Task[object]] = set()

    async def start(self, tell: Callable[[BrowserEvent], None]) -> BrowserInfo:
        """Begin a life; see the port. There is none after an activity that would not stop."""
        if self._runaway is not None:
            raise BrowserUnavailable(f"the activity {self._runaway} does not stop: start anew")
        try:
            self._activities = InstalledActivities(self._allowed, runaway=self._on_runaway)
        except ActivityMissing as error:
            raise BrowserUnavailable(str(error)) from None
        self._tell = tell
        await self.probe()
        return BrowserInfo(
            product=f"flows/turbohtml {version('turbohtml')}", executable="", pid=os.getpid()
        )

    async def run(
        self, context_id: str, plan: Plan, evidence: Evidence, lender: Lender | None = None
    ) -> Outcome:
        """Run a plan in a flow; see the port. Nothing of it is left afterwards."""
        if plan.borrows is not None:
            detail = "a flow has no window for an identity, and goes through no proxy"
            return _failed(Reason.IDENTITY_UNAVAILABLE, detail)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._attempts.add(task)
        try:
            async with asyncio.timeout(plan.timeouts.job / 1000):
                return await self._run(context_id, plan, evidence)
        except TimeoutError:
            limit = plan.timeouts.job / 1000
            failure = Failure(
                reason=Reason.JOB_TIMEOUT, detail=f"the job did not end within {limit:g} s"
            )
            return Outcome(outcome="timed_out", failure=failure, page_gone=True)
        finally:
            self._attempts.discard(task)

    async def _run(self, context_id: str, plan: Plan, evidence: Evidence) -> Outcome:
        try:
            policy = Policy.of(plan.egress)
        except ValueError as error:
            return _failed(Reason.VALUE_INVALID, f"egress.allow: {error}")
        if self._activities is None:
            return _failed(Reason.BROWSER_LOST, "the flows have ended")
        try:
            async with client(policy, plan.options, self._limits, may_act=self._may_act) as one:
                flow = Flow(client=one, plan=plan, evidence=evidence, activities=self._activities)
                failure = await run_plan(flow)
        except StaleAssignment:
            return _failed(Reason.STALE_ASSIGNMENT, "the attempt has ended for the farm")
        except Exception as error:  # noqa: BLE001 - a run ends with an outcome, whatever happens
            _log.exception("attempt.broken", context_id=context_id)
            return _failed(Reason.INTERNAL, f"{type(error).__name__}: {error}")
        if failure is not None:
            return Outcome(outcome="failed", failure=failure, page_gone=True)
        return Outcome(outcome="succeeded")

    async def drain(self) -> None:
        """Nobody sees a flow; see the port."""

    async def probe(self) -> None:
        """Parse a page and read something of it; see the port."""
        title = turbohtml.parse("<title>probe</title>").select_one("title")
        if title is None or title.text != "probe":
            raise RuntimeError("the page does not say what it was given")

    async def kill(self) -> None:
        """Break off every attempt; see the port."""
        self._activities = None
        for task in tuple(self._attempts):
            task.cancel()

    def _on_runaway(self, name: str) -> None:
        self._runaway = name
        self._tell(BrowserLost(f"the activity {name} does not stop"))


def _failed(reason: Reason, detail: str) -> Outcome:
    failure = Failure(reason=reason, detail=detail[:2000])
    return Outcome(outcome="failed", failure=failure, page_gone=True)
