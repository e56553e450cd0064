"""click, hover, press and scroll."""

from agent.steps.selectors import locate
from agent.steps.stage import Stage
from farm.protocol.steps import Click, Effect, Hover, Press, Scroll

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
