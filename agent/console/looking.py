"""wait, wait_for, wait_for_url, assert, set and html: what only looks, or keeps.

A page of a flow does not change by itself, so whoever waits for something has the answer at once.
"""

import asyncio

from agent.console.reading import text_of
from agent.console.selecting import elements
from agent.console.sight import may_be_seen
from agent.console.stage import Stage
from agent.steps.asserting import OPERATORS, tidy, wrong_variable
from agent.steps.failed import StepFailed, clean
from agent.steps.globs import url_matches
from farm.protocol.failures import Reason
from farm.protocol.steps import Assert, Html, Set, Wait, WaitFor, WaitForUrl

_NO_MORE = "and a flow runs no scripts, so there will be no more"


async def wait(stage: Stage, step: Wait) -> None:
    """Let the time pass."""
    if step.timeout is None:
        stage.clock.restart(step.ms + stage.clock.timeout_ms)
    await asyncio.sleep(step.ms / 1000)


async def wait_for(stage: Stage, step: WaitFor) -> None:
    """Look whether some element is in the state, none is, or so many match.

    Raises:
        StepFailed: `selector_not_found`, if not.
    """
    found = elements(stage.flow.page.document, step.selector)
    if step.count is not None:
        holds = OPERATORS[step.operator](len(found), step.count)
        wrong = f"matches {len(found)}, not {step.operator} {step.count}"
    else:
        there = (
            found if step.state in ("attached", "detached") else list(filter(may_be_seen, found))
        )
        wanted = step.state in ("visible", "attached")
        holds = bool(there) is wanted
        wrong = f"is not {step.state}"
    if not holds:
        detail = f"{step.selector!r} {wrong}, {_NO_MORE}"
        raise StepFailed(Reason.SELECTOR_NOT_FOUND, clean(detail))


async def wait_for_url(stage: Stage, step: WaitForUrl) -> None:
    """Look whether the address matches.

    Raises:
        StepFailed: `needs_browser`, if not: only a script could still change it.
    """
    url = stage.flow.page.url
    if not url_matches(step.url, url):
        detail = f"the address is {url}, not {step.url}, and a flow runs no scripts to change it"
        raise StepFailed(Reason.NEEDS_BROWSER, clean(detail))


async def assert_that(stage: Stage, step: Assert) -> None:
    """Look whether everything said holds.

    Raises:
        StepFailed: `assertion_failed`, which says what does not hold.
    """
    wrong = wrong_variable(step, stage.flow.variables, stage.flow.names())
    if wrong is None:
        wrong = _wrong_on_page(stage, step)
    if wrong is not None:
        detail = wrong if step.message is None else f"{step.message} ({wrong})"
        raise StepFailed(Reason.ASSERTION_FAILED, clean(detail))


async def set_variable(stage: Stage, step: Set) -> None:
    """Keep a value under a name."""
    stage.flow.variables[step.var] = step.value


async def html(stage: Stage, step: Html) -> None:
    """Keep the page's markup, as its parser understood it."""
    markup = stage.flow.page.source
    await stage.upload(step.name, markup.encode("utf-8", "replace"), "text/html")


def _wrong_on_page(stage: Stage, step: Assert) -> str | None:
    page = stage.flow.page
    if step.url is not None and not url_matches(step.url, page.url):
        return f"the address is {page.url}, not {step.url}"
    if step.selector is not None:
        return _wrong_element(stage, step.selector, step.text)
    if step.text is not None:
        body = page.document.select_one("body")
        if tidy(step.text) not in tidy(text_of(page.document if body is None else body)):
            return f"the page does not say {step.text!r}"
    return None


def _wrong_element(stage: Stage, selector: str, text: str | None) -> str | None:
    seen = list(filter(may_be_seen, elements(stage.flow.page.document, selector)))
    if not seen:
        return f"nothing visible matches {selector!r}"
    texts = [tidy(text_of(element)) for element in seen]
    if text is None or any(tidy(text) in found for found in texts):
        return None
    return f"{selector!r} says {texts[0][:200]!r}, not {text!r}"
