"""What can be done without a browser: told from a step alone, before anything is asked for.

The farm refuses by it what can't be run as said, and places by it what may run either way; the
agent holds to it. What depends on the page shows when it is there, as `needs_browser`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import assert_never

from farm.protocol import steps
from farm.protocol.extraction import FieldSpec
from farm.protocol.failures import Reason

Path = tuple[str | int, ...]

FLOW_OPTIONS = frozenset({"locale", "user_agent"})
"""What a flow takes of the options of a window."""

PROPERTIES = frozenset(
    {
        "checked",
        "className",
        "disabled",
        "href",
        "id",
        "innerHTML",
        "outerHTML",
        "selected",
        "src",
        "tagName",
        "textContent",
        "value",
    }
)
"""DOM properties that follow from the markup alone."""

FALLS_BACK = frozenset(
    {
        Reason.NEEDS_BROWSER,
        Reason.REQUIRED_MISSING,
        Reason.SELECTOR_NOT_FOUND,
        Reason.ASSERTION_FAILED,
    }
)
"""Failures of a flow that a browser may not meet: it runs the scripts of the page."""

_XPATH = ("//", "(//", "..", "./", "(.//", "xpath=", "xpath/")
_CSS = ("css=", "css/", "pierce/")
_FORM = re.compile(r"[A-Za-z][\w-]*[=/]|[\"']")
_CHAIN = re.compile(r"\s>>\s")
_PSEUDO = re.compile(
    r":(?:visible|text|text-is|text-matches|has-text|nth-match|light|left-of|right-of|above|below"
    r"|near)\b"
)
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")


def only_without_browser(step: steps.StepBase) -> bool:
    """Tell whether a step is done by flows and not in a tab."""
    return isinstance(step, steps.Http | steps.Activity)


def needs_browser(step: steps.Step) -> Iterator[tuple[Path, str]]:
    """Yield what of a step can't be done without a browser: the place in it, and why."""
    match step:
        case steps.Goto() | steps.Reload():
            if step.wait_until == "networkidle":
                yield ("wait_until",), "a flow runs no scripts, so the network is idle at once"
        case steps.WaitFor() | steps.Assert():
            yield from _selector(("selector",), step.selector)
        case steps.Extract():
            yield from _extract(step)
        case (
            steps.WaitForUrl()
            | steps.Wait()
            | steps.Html()
            | steps.Http()
            | steps.Activity()
            | steps.Set()
        ):
            pass
        case (
            steps.Back()
            | steps.Human()
            | steps.Click()
            | steps.Fill()
            | steps.Type()
            | steps.Press()
            | steps.Select()
            | steps.Check()
            | steps.Uncheck()
            | steps.Hover()
            | steps.Drag()
            | steps.Scroll()
            | steps.Screenshot()
            | steps.Download()
            | steps.Upload()
            | steps.Pdf()
            | steps.Eval()
        ):
            yield (), f"{step.type} needs a browser"
        case _ as unreachable:
            assert_never(unreachable)


def selector_needs_browser(selector: str) -> str | None:
    """Say why a selector is nothing for parsed markup, or None."""
    text = selector.strip()
    if "${" in text or text.startswith(_XPATH):
        return None
    plain = _QUOTED.sub("''", text)
    form = None if text.startswith(_CSS) else _FORM.match(plain)
    if form is not None or _CHAIN.search(plain) or _PSEUDO.search(plain):
        return f"without a browser a selector is CSS or XPath, not {selector!r}"
    return None


def _extract(step: steps.Extract) -> Iterator[tuple[Path, str]]:
    yield from _selector(("list",), step.list)
    yield from _selector(("within",), step.within)
    if step.paginate is not None:
        yield from _selector(("paginate", "next"), step.paginate.next)
    yield from _fields(step.fields, ("fields",))


def _fields(fields: Mapping[str, FieldSpec], path: Path) -> Iterator[tuple[Path, str]]:
    for name, spec in fields.items():
        if spec.prop is not None and spec.prop not in PROPERTIES:
            yield (*path, name, "prop"), f"the property {spec.prop} needs a browser"
        yield from _selector((*path, name, "selector"), spec.selector)
        yield from _selector((*path, name, "list"), spec.list)
        yield from _fields(spec.fields or {}, (*path, name, "fields"))


def _selector(path: Path, selector: str | None) -> Iterator[tuple[Path, str]]:
    if selector is not None and (why := selector_needs_browser(selector)) is not None:
        yield path, why
