"""A plan in a flow, step by step."""

from functools import partial

from agent.console.stage import Flow, Stage
from agent.console.verbs import VERBS, Verb
from agent.steps.failed import StepFailed, clean
from agent.steps.substitution import has_references, substitute_step
from agent.steps.timing import StepClock, timed_out, timeout_of
from agent.steps.told import told
from farm.protocol.failures import Failure, Reason
from farm.protocol.flows import needs_browser
from farm.protocol.steps import Step


async def run_plan(flow: Flow) -> Failure | None:
    """Run the steps of a flow's plan in order, to the end or to the first that fails.

    Every step is bounded by a clock of ours; the job's own clock is the caller's business. The
    failed step has no `StepEnded`: the failure names it.

    Returns:
        Why the attempt failed, or None.
    """
    for index, step in enumerate(flow.plan.steps):
        flow.index = index
        failure = await told(flow.evidence, index, step, partial(_bounded, flow, step))
        if failure is not None:
            return failure
    return None


async def _bounded(flow: Flow, step: Step) -> None:
    """Do a step within its time."""
    verb = VERBS.get(type(step))
    if verb is None or any(True for _ in needs_browser(step)):
        why = next((why for _, why in needs_browser(step)), f"{step.type} needs a browser")
        raise StepFailed(Reason.NEEDS_BROWSER, clean(why))
    clock = StepClock(timeout_of(step, flow.plan.timeouts, navigates=verb.navigates))
    try:
        async with clock.running():
            await _do(flow, step, verb, clock)
    except TimeoutError:
        raise timed_out(clock, navigation=verb.navigates, url=flow.page.url) from None


async def _do(flow: Flow, step: Step, verb: Verb, clock: StepClock) -> None:
    if has_references(step):
        step = substitute_step(step, flow.names())
    stage = Stage(flow, step, clock)
    if verb.begins_effect:
        await verb.do(stage, step)
        return
    async with stage.effect():
        await verb.do(stage, step)
