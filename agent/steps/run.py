"""A plan on a page, step by step."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from agent.clock import monotonic
from agent.ports import (
    Bare,
    Control,
    Denied,
    Evidence,
    Files,
    StaleAssignment,
    UploadRefused,
)
from agent.steps.capture import capture
from agent.steps.failures import StepFailed, clean, failed
from agent.steps.naming import label_of
from agent.steps.observed import observing
from agent.steps.stage import Attempt, Stage
from agent.steps.substitution import has_references, mentions, substitute_step
from agent.steps.timing import StepClock, timed_out, timeout_of
from agent.steps.unattended import NoFiles, Unattended
from agent.steps.verbs import VERBS, Verb
from farm.protocol.failures import Failure, Reason
from farm.protocol.messages import StepEnded, StepStarted
from farm.protocol.plan import Plan
from farm.protocol.steps import Step

_NEVER_SKIPPED = frozenset(
    {Reason.PAGE_CRASHED, Reason.PAGE_CLOSED, Reason.BROWSER_LOST, Reason.STALE_ASSIGNMENT}
)
"""After these there is no going on, optional or not."""


def none_denied() -> Sequence[Denied]:
    """Say that no request has been refused: the egress is not watched."""
    return ()


async def run_plan(
    page: Page,
    plan: Plan,
    evidence: Evidence,
    *,
    denied: Callable[[], Sequence[Denied]] = none_denied,
    bare: Bare = nullcontext,
    control: Control | None = None,
    files: Files | None = None,
) -> Failure | None:
    """Run the steps of a plan in order, to the end or to the first that fails.

    Every step is bounded by a clock of ours; the job's own clock is the caller's business, and so
    is closing the page. The failed step has no `StepEnded`: the failure names it. A failure leaves
    a picture and the page's markup as artifacts where that is possible; a cancellation nothing.

    Args:
        page: A page nobody else drives meanwhile.
        plan: What to do.
        evidence: Where to say what is done.
        denied: Which requests the egress proxy has refused since the attempt began.
        bare: Keeps what is not the page's own out of it, while it is read.
        control: Who has control of the tab; None is automation, always.
        files: What pages hand out and are given; None is nothing.

    Returns:
        Why the attempt failed, or None.
    """
    attempt = Attempt(
        page=page,
        plan=plan,
        evidence=evidence,
        denied=denied,
        bare=bare,
        control=control or Unattended(),
        files=files or NoFiles(),
    )
    async with observing(attempt):
        for index, step in enumerate(plan.steps):
            await attempt.control.gate()
            attempt.index, attempt.step = index, step
            failure = await _step(attempt, step)
            if failure is not None:
                async with bare():
                    await capture(attempt, failure)
                return failure
        # Who wanted it while the last step ran may still look at what it has done.
        await attempt.control.gate()
    return None


async def _step(attempt: Attempt, step: Step) -> Failure | None:
    index, label = attempt.index, label_of(step)
    note = attempt.evidence.note
    await note(StepStarted(index=index, verb=step.type, label=label))
    began = monotonic()
    try:
        await _bounded(attempt, step, VERBS[type(step)])
    except StepFailed as failed_step:
        failure = Failure(
            reason=failed_step.reason,
            detail=failed_step.detail,
            step_index=index,
            step=label,
            status=failed_step.status,
        )
        if not step.optional or failure.reason in _NEVER_SKIPPED:
            return failure
        await note(StepEnded(index=index, ms=_ms_since(began), skipped=failure))
    else:
        await note(StepEnded(index=index, ms=_ms_since(began)))
    return None


async def _bounded(attempt: Attempt, step: Step, verb: Verb) -> None:
    """Do a step within its time; whatever goes wrong comes as `StepFailed`."""
    clock = StepClock(timeout_of(step, attempt.plan.timeouts, navigates=verb.navigates))
    try:
        async with clock.running(), attempt.bare() if verb.reads else nullcontext():
            await _do(attempt, step, verb, clock)
    except TimeoutError:
        raise timed_out(clock, navigation=verb.navigates, url=attempt.page.url) from None
    except PlaywrightError as error:
        raise failed(error, waited=clock.words) from None
    except UploadRefused as refused:
        raise StepFailed(Reason(refused.reason), clean(refused.detail)) from None
    except StaleAssignment:
        raise StepFailed(Reason.STALE_ASSIGNMENT, "the attempt has ended for the farm") from None


async def _do(attempt: Attempt, step: Step, verb: Verb, clock: StepClock) -> None:
    if has_references(step):
        title = await attempt.page.title() if mentions(step, "page.title") else None
        step = substitute_step(step, attempt.names(title))
    stage = Stage(attempt, step, clock)
    if verb.begins_effect:
        await verb.do(stage, step)
        return
    async with stage.effect():
        await verb.do(stage, step)


def _ms_since(began: float) -> float:
    return round(1000 * (monotonic() - began), 1)
