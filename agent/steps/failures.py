"""From what Playwright raises to the typed reasons of a failure.

The only place that reads its words: Playwright tells most causes apart only in the text of its
errors, so this is a table of texts; the tests provoke each of them in a real browser.
"""

import re

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from agent.steps.failed import StepFailed, clean, invalid_selector
from farm.protocol.failures import Reason

__all__ = [
    "StepFailed",
    "ambiguous",
    "clean",
    "failed",
    "invalid_selector",
    "message_of",
    "navigated_away",
    "nothing_was_done",
    "page_is_gone",
    "script_message",
    "still_changing",
]

_MAX_SAID = 50_000
"""A page may throw a message of any length, and the table below would read it for minutes."""
_CALL_LOG = re.compile(r"\n(?:Call log:|=+ logs =+)\n")
_CALL = re.compile(r"^[A-Z]\w*\.\w+: ")
_STACK = re.compile(r"\n[ \t]+at .*")
_CRASHED = re.compile(r"(?:[A-Z]\w*\.\w+: )?(?:Target|Page) crashed\b")
_CLOSED = re.compile(
    r"(?:[A-Z]\w*\.\w+: )?(?:Target (?:page, context or browser has been )?closed"
    r"|Connection closed|Browser (?:has been )?closed|.*Not attached to an active page)"
)
_STRICT = re.compile(r"strict mode violation: .* resolved to (\d+) elements", re.DOTALL)
_INVALID = re.compile(
    r"while parsing|InvalidSelectorError|is not a valid (?:XPath expression|selector)"
    r"|Unknown attribute \"|Unknown (?:engine|role) |SyntaxError: Failed to execute"
    r"|Role must not be empty"
)
_NAVIGATED = re.compile(r"Execution context was destroyed|Frame was detached|frame was detached")
_CHANGING = re.compile(r"the page is navigating and changing the content")
_VALUE = re.compile(
    r"Malformed value|Cannot type text into|cannot be filled|Element is not a|Not a checkbox"
    r"|Node is not an HTMLInputElement|(?:Non-multiple|Non-file) input|can only accept single file"
    r"|Unknown key|Unknown paper format|Cannot uncheck radio"
)
_DOES_NOT_PARSE = re.compile(r"SyntaxError: .*\n\s+at eval \(<anonymous>\)\n\s+at UtilityScript")
_BEFORE_ACTING = frozenset(
    {
        Reason.EGRESS_DENIED,
        Reason.SELECTOR_AMBIGUOUS,
        Reason.SELECTOR_INVALID,
        Reason.VALUE_INVALID,
    }
)
_NOT_YET = re.compile(
    r"- (element is (?:not|outside) [^\n]*|did not find some options"
    r"|[^\n]* intercepts pointer events)"
)


def _said(error: PlaywrightError) -> str:
    return error.message[:_MAX_SAID]


def message_of(error: PlaywrightError) -> str:
    """Return what an error says, without the call's name, its log and JavaScript stacks."""
    text = _CALL_LOG.split(_said(error), maxsplit=1)[0]
    return clean(_CALL.sub("", _STACK.sub("", text)))


def script_message(error: PlaywrightError) -> str:
    """Return what a script threw, as the page worded it."""
    return clean(_CALL.sub("", _STACK.sub("", _said(error))))


def page_is_gone(error: PlaywrightError) -> StepFailed | None:
    """Return the failure when the page crashed or closed under the call, else None."""
    if _CRASHED.match(_said(error)):
        return StepFailed(Reason.PAGE_CRASHED, "the page crashed")
    if _CLOSED.match(_said(error)):
        return StepFailed(Reason.PAGE_CLOSED, "the page was closed")
    return None


def nothing_was_done(error: PlaywrightError | StepFailed) -> bool:
    """Tell whether a step is known to have failed before it did anything to the page."""
    if isinstance(error, StepFailed):
        return error.reason in _BEFORE_ACTING
    if isinstance(error, PlaywrightTimeout):
        return False
    text = message_of(error)
    return any(found.search(text) for found in (_VALUE, _STRICT, _INVALID)) or (
        _DOES_NOT_PARSE.search(_said(error)) is not None
    )


def navigated_away(error: PlaywrightError) -> bool:
    """Tell whether a call was lost because the page went elsewhere meanwhile."""
    return _NAVIGATED.search(_said(error)) is not None


def still_changing(error: PlaywrightError) -> bool:
    """Tell whether the page could not be read only because another one is taking its place."""
    return _CHANGING.search(_said(error)) is not None


def failed(error: PlaywrightError, *, selector: str | None = None, waited: str = "") -> StepFailed:
    """Turn an error of a Playwright call into the failure it means.

    Args:
        error: What was raised.
        selector: What the call looked for, as the job wrote it.
        waited: What was waited for and how long, such as `within 15 s`, for the text.
    """
    gone = page_is_gone(error)
    if gone is not None:
        return gone
    if isinstance(error, PlaywrightTimeout):
        return _timed_out(error, selector, waited)
    return _refused(error, selector)


def ambiguous(selector: str | None, count: str | int) -> StepFailed:
    """Return the failure of a selector that matches more than one element."""
    return StepFailed(
        Reason.SELECTOR_AMBIGUOUS,
        clean(
            f"{selector!r} matches {count} elements; make it match one,"
            " or say `first: true` or `nth: 0`"
        ),
    )


def _timed_out(error: PlaywrightTimeout, selector: str | None, waited: str) -> StepFailed:
    if selector is None:
        return StepFailed(Reason.STEP_TIMEOUT, clean(f"not done {waited}"))
    if "locator resolved to" not in _said(error):
        return StepFailed(
            Reason.SELECTOR_NOT_FOUND, clean(f"nothing matched {selector!r} {waited}")
        )
    reasons = _NOT_YET.findall(_said(error))
    if not reasons and "locator resolved to hidden" in _said(error):
        reasons = ["it is hidden"]
    why = f": {reasons[-1]}" if reasons else ""
    return StepFailed(
        Reason.STEP_TIMEOUT,
        clean(f"{selector!r} was found, but could not be used {waited}{why}"),
    )


def _refused(error: PlaywrightError, selector: str | None) -> StepFailed:
    text = message_of(error)
    strict = _STRICT.search(_said(error))
    if strict is not None:
        return ambiguous(selector, strict[1])
    if selector is not None and _INVALID.search(text):
        return invalid_selector(selector, text)
    if navigated_away(error):
        return StepFailed(Reason.NAVIGATION_FAILED, "the page went elsewhere during the step")
    if _VALUE.search(text):
        where = "" if selector is None else f"{selector!r}: "
        return StepFailed(Reason.VALUE_INVALID, clean(f"{where}{text}"))
    return StepFailed(Reason.INTERNAL, text)
