"""click, hover, drag, press and scroll."""

from playwright.async_api import Locator

from agent.steps.failures import StepFailed
from agent.steps.selectors import locate
from agent.steps.stage import Stage
from farm.protocol.failures import Reason
from farm.protocol.steps import Click, Drag, Effect, Hover, Press, Scroll

_DRAG_MOVES = 12
"""The mouse is seen on its way so often: what can be dragged mostly wants to see it move."""
_NUDGE = 4
_SCROLL_BY = "([x, y]) => window.scrollBy({left: x, top: y, behavior: 'instant'})"
_SCROLL_TO = """bottom => {
  const root = document.scrollingElement || document.documentElement;
  window.scrollTo({top: bottom ? root.scrollHeight : 0, behavior: 'instant'});
}"""


async def click(stage: Stage, step: Click) -> None:
    """Click an element once it is visible, still, enabled and not covered."""
    target = stage.target(step)
    with stage.using(step.selector):
        if stage.counts_as is not Effect.NONE:
            # A dry run tells what can't be clicked while nothing has begun yet.
            if step.force:
                await target.wait_for(state="attached", timeout=stage.clock.playwright_ms)
            else:
                await target.click(trial=True, timeout=stage.clock.playwright_ms)
        async with stage.effect(), stage.acting():
            await target.click(
                button=step.button,
                click_count=step.count,
                modifiers=step.modifiers or None,
                force=step.force,
                timeout=stage.clock.playwright_ms,
            )


async def hover(stage: Stage, step: Hover) -> None:
    """Move the mouse over an element."""
    target = stage.target(step)
    with stage.using(step.selector):
        await stage.visible(target)
        async with stage.effect(), stage.acting():
            await target.hover(timeout=stage.clock.playwright_ms)


async def drag(stage: Stage, step: Drag) -> None:
    """Take an element at its middle, and let it go on the middle of another, or some way off."""
    target = stage.target(step)
    goal = None if step.to is None else locate(stage.page, step.to)
    if goal is not None:
        with stage.using(step.to):
            await goal.wait_for(state="visible", timeout=stage.clock.playwright_ms)
    with stage.using(step.selector):
        await target.hover(trial=True, timeout=stage.clock.playwright_ms)
        async with stage.effect(), stage.acting():
            await target.hover(timeout=stage.clock.playwright_ms)
            at = await _middle(target)
            await stage.page.mouse.down()
            try:
                # What the browser drags itself has to be on its way before the page scrolls.
                await stage.page.mouse.move(at[0] + _NUDGE, at[1] + _NUDGE, steps=2)
                x, y = await _end(goal, at, step)
                await stage.page.mouse.move(x, y, steps=_DRAG_MOVES)
            finally:
                await stage.page.mouse.up()


async def _end(goal: Locator | None, at: tuple[float, float], step: Drag) -> tuple[float, float]:
    if goal is None:
        return at[0] + step.x, at[1] + step.y
    await goal.scroll_into_view_if_needed()
    return await _middle(goal)


async def _middle(element: Locator) -> tuple[float, float]:
    box = await element.bounding_box()
    if box is None:
        raise StepFailed(
            Reason.SELECTOR_NOT_FOUND, "the element to drag, or to drop it on, is gone"
        )
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def press(stage: Stage, step: Press) -> None:
    """Press a key or chord on an element, or where the focus is."""
    with stage.using(step.selector):
        if step.selector is None:
            async with stage.effect(), stage.acting():
                await stage.page.keyboard.press(step.key)
            return
        target = locate(stage.page, step.selector)
        await stage.visible(target)
        async with stage.effect(), stage.acting():
            await target.press(step.key, timeout=stage.clock.playwright_ms)


async def scroll(stage: Stage, step: Scroll) -> None:
    """Scroll the page by pixels, to its top or bottom, or until an element is in view."""
    match step.to:
        case None:
            await stage.page.evaluate(_SCROLL_BY, [step.x, step.y])
        case "top" | "bottom":
            await stage.page.evaluate(_SCROLL_TO, step.to == "bottom")
        case selector:
            with stage.using(selector):
                await locate(stage.page, selector).scroll_into_view_if_needed(
                    timeout=stage.clock.playwright_ms
                )
