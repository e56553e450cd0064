"""Selectors over a parsed page: CSS as `querySelectorAll` has it, and XPath."""

from typing import Any

from turbohtml import Document, DocumentFragment, Element

from agent.steps.failed import StepFailed, clean, invalid_selector
from agent.steps.records import target_of
from farm.protocol.failures import Reason
from farm.protocol.flows import selector_needs_browser

Found = Any
"""An element, the document, or a text that an XPath yields: of an attribute, a node, a function."""
Root = Document | Element


class Unfit(Exception):  # noqa: N818 - carried to where the selector's field is known
    """A selector that can't be understood."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def elements(root: Root, selector: str) -> list[Element]:
    """Return the elements that a selector of a step finds below a root, in document order.

    Raises:
        StepFailed: `needs_browser` for a form that parsed markup does not answer;
            `selector_invalid`.
    """
    if (why := selector_needs_browser(selector)) is not None:
        raise StepFailed(Reason.NEEDS_BROWSER, clean(why))
    target = target_of(selector)
    if target is None or target["text"].strip() == "":
        raise invalid_selector(selector, "it is empty")
    try:
        found = query(root, target)
    except Unfit as unfit:
        raise invalid_selector(selector, unfit.why) from None
    return [node for node in found if isinstance(node, Element)]


def query(root: Found, target: dict[str, Any] | None) -> list[Found]:
    """Return what a compiled selector finds, seen from a node.

    Raises:
        Unfit: If it can't be understood.
    """
    if target is None:
        return [root]
    if not isinstance(root, Document | Element):
        return []
    try:
        return _xpath(root, target["text"]) if target["xpath"] else _css(root, target["text"])
    except (ValueError, TypeError, RecursionError) as error:
        raise Unfit(str(error)) from None


def _css(root: Root, selector: str) -> list[Element]:
    found = root.select(selector)
    if not found and isinstance(root, Element):
        shadow: DocumentFragment | None = root.shadow_root
        if shadow is not None:
            found = shadow.select(selector)
    return list(found)


def _xpath(root: Root, expression: str) -> list[Found]:
    inside = expression.startswith("/") and isinstance(root, Element)
    found = root.xpath(f".{expression}" if inside else expression, smart_strings=True)
    match found:
        case list():
            return found
        case str():
            return [found] if found else []
        case _:
            return [found]
