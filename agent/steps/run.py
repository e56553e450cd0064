"""A plan on a page, step by step."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from agent.ports import (
    Bare,
    Control,
    Denied,
    Evidence,
    Files,
)
from agent.steps.capture import capture
from agent.steps.failures import failed
from agent.steps.observed import observing
from agent.steps.stage import Attempt, Stage
from agent.steps.substitution import has_references, mentions, substitute_step
from agent.steps.timing import StepClock, timed_out, timeout_of
from agent.steps.told import told
from agent.steps.unattended import NoFiles, Unattended
from agent.steps.verbs import VERBS, Verb
from farm.protocol.failures import Failure
from farm.protocol.plan import Plan
from farm.protocol.steps import Step


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
            bounded = partial(_bounded, attempt, step, VERBS[type(step)])
            failure = await told(attempt.evidence, index, step, bounded)
            if failure is not None:
                async with bare():
                    await capture(attempt, failure)
                return failure
        # Who wanted it while the last step ran may still look at what it has done.
        await attempt.control.gate()
    return None


async def _bounded(attempt: Attempt, step: Step, verb: Verb) -> None:
    """Do a step within its time."""
    clock = StepClock(timeout_of(step, attempt.plan.timeouts, navigates=verb.navigates))
    try:
        async with clock.running(), attempt.bare() if verb.reads else nullcontext():
            await _do(attempt, step, verb, clock)
    except TimeoutError:
        raise timed_out(clock, navigation=verb.navigates, url=attempt.page.url) from None
    except PlaywrightError as error:
        raise failed(error, waited=clock.words) from None


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
