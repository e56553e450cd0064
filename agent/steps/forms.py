"""fill, type, select, check and uncheck."""

from typing import Any, TypeVar

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Locator

from agent.steps.failures import StepFailed, clean, message_of, navigated_away
from agent.steps.stage import Stage
from farm.protocol.failures import Reason
from farm.protocol.steps import Check, Fill, Select, Type, Uncheck

_T = TypeVar("_T")
_TICKED = frozenset({"true", "yes", "on", "1", "checked"})
_UNTICKED = frozenset({"false", "no", "off", "0", "unchecked", ""})
_OPTIONS = """(element, wanted) => {
  const select = element.tagName === 'LABEL' && element.control ? element.control : element;
  if (select.tagName !== 'SELECT') return {select: false};
  const tidy = text => String(text).replace(/\\s+/g, ' ').trim();
  const missing = [], there = [];
  for (let i = 0; i < wanted.length; i++) {
    let found = false;
    for (let o = 0; o < select.options.length && !found; o++) {
      const option = select.options[o], want = wanted[i];
      found = want.by === 'index' ? o === want.what : tidy(option.label) === tidy(want.what)
        || (want.by === 'value' && option.value === want.what);
    }
    if (!found) missing[missing.length] = wanted[i].what;
  }
  for (let o = 0; o < select.options.length && o < 20; o++) {
    there[there.length] = tidy(select.options[o].label);
  }
  return {select: true, missing, there};
}"""


_LEFT_EMPTY = """elements => elements.length === 1 && elements[0].localName === 'input'
  && /^(date|time|datetime-local|month|week)$/.test(elements[0].type) && elements[0].value === ''"""


async def fill(stage: Stage, step: Fill) -> None:
    """Put a value into a field of any kind; with `submit`, press Enter afterwards.

    Filling alone is no effect unless the step says so: the effect of `submit` begins at the Enter.
    """
    target = stage.target(step)
    with stage.using(step.selector):
        if step.effect is None:
            await _put(stage, target, step)
            if step.submit:
                async with stage.effect(), stage.acting():
                    await target.press("Enter", timeout=stage.clock.playwright_ms)
            return
        await stage.visible(target)
        async with stage.effect():
            await _put(stage, target, step)
            if step.submit:
                async with stage.acting():
                    await target.press("Enter", timeout=stage.clock.playwright_ms)


async def type_text(stage: Stage, step: Type) -> None:
    """Type a text key by key."""
    if step.timeout is None:
        stage.clock.restart(stage.clock.timeout_ms + step.delay * len(step.text))
    target = stage.target(step)
    with stage.using(step.selector):
        await stage.visible(target)
        async with stage.effect(), stage.acting():
            await target.press_sequentially(
                step.text, delay=step.delay, timeout=stage.clock.playwright_ms
            )


async def select(stage: Stage, step: Select) -> None:
    """Choose options, once all of them are there."""
    target = stage.target(step)
    with stage.using(step.selector):
        await target.wait_for(state="visible", timeout=stage.clock.playwright_ms)
        await _options_there(stage, target, step)
        async with stage.effect():
            await target.select_option(
                value=_many(step.value) or None,
                label=_many(step.label) or None,
                index=_many(step.index) or None,
                timeout=stage.clock.playwright_ms,
            )


async def check(stage: Stage, step: Check) -> None:
    """Tick a checkbox or radio button."""
    await _tick(stage, step, ticked=True)


async def uncheck(stage: Stage, step: Uncheck) -> None:
    """Untick a checkbox."""
    await _tick(stage, step, ticked=False)


async def _tick(stage: Stage, step: Check | Uncheck, *, ticked: bool) -> None:
    target = stage.target(step)
    with stage.using(step.selector):
        await target.set_checked(ticked, trial=True, timeout=stage.clock.playwright_ms)
        async with stage.effect(), stage.acting():
            await target.set_checked(ticked, timeout=stage.clock.playwright_ms)


async def _put(stage: Stage, target: Locator, step: Fill) -> None:
    """Fill by the kind of the field, which Playwright's refusal tells, before anything is done."""
    try:
        await target.fill(step.value, timeout=stage.clock.playwright_ms)
    except PlaywrightError as error:
        text = message_of(error)
        if "not an <input>, <textarea> or [contenteditable]" in text:
            await target.select_option(step.value, timeout=stage.clock.playwright_ms)
        elif 'type "checkbox"' in text or 'type "radio"' in text:
            ticked = _ticked(step)
            async with stage.acting():
                await target.set_checked(ticked, timeout=stage.clock.playwright_ms)
        else:
            raise
    else:
        await _check_taken(target, step)


async def _check_taken(target: Locator, step: Fill) -> None:
    """Refuse a value that a date or time field has silently dropped."""
    try:
        dropped = step.value != "" and await target.evaluate_all(_LEFT_EMPTY)
    except PlaywrightError as error:
        if navigated_away(error):
            return
        raise
    if dropped:
        raise StepFailed(
            Reason.VALUE_INVALID,
            clean(f"{step.selector!r} does not take {step.value!r}; a date is written 2026-12-31"),
        )


def _ticked(step: Fill) -> bool:
    word = step.value.strip().lower()
    if word in _TICKED:
        return True
    if word in _UNTICKED:
        return False
    raise StepFailed(
        Reason.VALUE_INVALID, clean(f"{step.selector!r} takes true or false, not {step.value!r}")
    )


async def _options_there(stage: Stage, target: Locator, step: Select) -> None:
    wanted = [{"by": by, "what": what} for by, what in _wanted(step)]
    turn = 0
    while True:
        found: dict[str, Any] = await target.evaluate(_OPTIONS, wanted)
        if not found["select"]:
            raise StepFailed(Reason.VALUE_INVALID, clean(f"{step.selector!r} is not a <select>"))
        if not found["missing"]:
            return
        if stage.clock.over:
            raise StepFailed(
                Reason.SELECTOR_NOT_FOUND,
                clean(
                    f"{step.selector!r} has no option {found['missing'][0]!r}"
                    f" {stage.clock.words}; there are {', '.join(map(repr, found['there']))}"
                ),
            )
        await stage.poll_pause(turn)
        turn += 1


def _wanted(step: Select) -> list[tuple[str, str | int]]:
    return [
        *(("value", what) for what in _many(step.value)),
        *(("label", what) for what in _many(step.label)),
        *(("index", what) for what in _many(step.index)),
    ]


def _many(value: _T | tuple[_T, ...] | None) -> list[_T]:
    if value is None:
        return []
    return list(value) if isinstance(value, tuple) else [value]
