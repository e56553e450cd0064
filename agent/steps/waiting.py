"""wait, wait_for and assert: steps that only look."""

from agent.steps.asserting import OPERATORS, tidy, wrong_variable
from agent.steps.failures import StepFailed, clean
from agent.steps.globs import url_matches
from agent.steps.selectors import locate
from agent.steps.stage import Stage
from farm.protocol.failures import Reason
from farm.protocol.steps import Assert, Wait, WaitFor

_PAGE_TEXT = "() => document.body ? document.body.innerText : document.documentElement.textContent"


async def wait(stage: Stage, step: Wait) -> None:
    """Let the time pass; notices at once when the page crashes or closes."""
    if step.timeout is None:
        stage.clock.restart(step.ms + stage.clock.timeout_ms)
    await stage.pause(step.ms / 1000)


async def wait_for(stage: Stage, step: WaitFor) -> None:
    """Wait until some element is in the state, none is, or so many match."""
    if step.count is not None:
        async with stage.attempt.bare():
            await _wait_for_count(stage, step, step.count)
        return
    every = locate(stage.page, step.selector)
    some = every.filter(visible=True).first if step.state in ("visible", "hidden") else every.first
    try:
        with stage.using(step.selector):
            await some.wait_for(state=step.state, timeout=stage.clock.playwright_ms)
    except StepFailed as failure:
        if failure.reason not in (Reason.SELECTOR_NOT_FOUND, Reason.STEP_TIMEOUT):
            raise
        raise _not_in_state(stage, step) from None


async def assert_that(stage: Stage, step: Assert) -> None:
    """Look until everything said holds at once.

    Raises:
        StepFailed: `assertion_failed` when it does not in time; says what does not hold.
    """
    wrong = wrong_variable(step, stage.attempt.variables, stage.attempt.names())
    turn = 0
    while wrong is None and (wrong := await _wrong_on_page(stage, step)) is not None:
        if stage.clock.over:
            break
        wrong = None
        await stage.poll_pause(turn)
        turn += 1
    if wrong is not None:
        detail = wrong if step.message is None else f"{step.message} ({wrong})"
        raise StepFailed(Reason.ASSERTION_FAILED, clean(detail))


async def _wait_for_count(stage: Stage, step: WaitFor, wanted: int) -> None:
    every = locate(stage.page, step.selector)
    holds = OPERATORS[step.operator]
    turn = 0
    while True:
        with stage.using(step.selector):
            count = await every.count()
        if holds(count, wanted):
            return
        if stage.clock.over:
            raise StepFailed(
                Reason.SELECTOR_NOT_FOUND if count < wanted else Reason.STEP_TIMEOUT,
                clean(
                    f"{step.selector!r} matches {count},"
                    f" not {step.operator} {wanted}, {stage.clock.words}"
                ),
            )
        await stage.poll_pause(turn)
        turn += 1


def _not_in_state(stage: Stage, step: WaitFor) -> StepFailed:
    if step.state in ("hidden", "detached"):
        return StepFailed(
            Reason.STEP_TIMEOUT,
            clean(f"{step.selector!r} did not become {step.state} {stage.clock.words}"),
        )
    return StepFailed(
        Reason.SELECTOR_NOT_FOUND,
        clean(f"{step.selector!r}: nothing {step.state} matched {stage.clock.words}"),
    )


async def _wrong_on_page(stage: Stage, step: Assert) -> str | None:
    """Return what does not hold now, or None."""
    if step.url is not None and not url_matches(step.url, stage.page.url):
        return f"the address is {stage.page.url}, not {step.url}"
    if step.selector is not None:
        return await _wrong_element(stage, step.selector, step.text)
    if step.text is not None and tidy(step.text) not in tidy(await stage.page.evaluate(_PAGE_TEXT)):
        return f"the page does not say {step.text!r}"
    return None


async def _wrong_element(stage: Stage, selector: str, text: str | None) -> str | None:
    visible = locate(stage.page, selector).filter(visible=True)
    with stage.using(selector):
        if text is None:
            return None if await visible.count() else f"nothing visible matches {selector!r}"
        texts = await visible.all_inner_texts()
    if any(tidy(text) in tidy(found) for found in texts):
        return None
    if not texts:
        return f"nothing visible matches {selector!r}"
    return f"{selector!r} says {tidy(texts[0])[:200]!r}, not {text!r}"
