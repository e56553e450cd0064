"""eval and set: values and scripts of the job's own."""

from playwright.async_api import Error as PlaywrightError

from agent.steps.failures import (
    StepFailed,
    clean,
    failed,
    navigated_away,
    page_is_gone,
    script_message,
)
from agent.steps.stage import Stage
from agent.steps.values import to_json_value
from farm.protocol.failures import Reason
from farm.protocol.steps import Eval, Set, StepBase

_STATEMENTS = ("Illegal return statement", "await is only valid in")


async def evaluate(stage: Stage, step: Eval) -> None:
    """Run a script: an expression, a function (called with `args`), or statements with `return`."""
    try:
        async with stage.effect():
            result = await _run(stage, step)
    except PlaywrightError as error:
        raise _script_failed(error) from None
    try:
        value = to_json_value(result)
    except ValueError as error:
        raise StepFailed(
            Reason.SCRIPT_ERROR, clean(f"the script's result is not JSON: {error}")
        ) from None
    if step.var is not None:
        stage.attempt.variables[step.var] = value


async def set_variable(stage: Stage, step: Set) -> None:
    """Keep a value under a name."""
    stage.attempt.variables[step.var] = step.value


async def only_in_flows(stage: Stage, step: StepBase) -> None:
    """Refuse what is done without a browser; the farm does not send it here."""
    raise StepFailed(Reason.VALUE_INVALID, "this step is done by flows, not in a tab")


async def _run(stage: Stage, step: Eval) -> object:
    try:
        return await stage.page.evaluate(step.script, step.args)
    except PlaywrightError as error:
        text = script_message(error)
        # A script that does not parse has done nothing yet: try it as the body of a function.
        if not text.startswith("SyntaxError") or not any(s in text for s in _STATEMENTS):
            raise
    return await stage.page.evaluate(f"async args => {{\n{step.script}\n}}", step.args)


def _script_failed(error: PlaywrightError) -> StepFailed:
    gone = page_is_gone(error)
    if gone is not None:
        return gone
    if navigated_away(error):
        return failed(error)
    return StepFailed(Reason.SCRIPT_ERROR, script_message(error))
