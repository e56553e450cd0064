"""Values of a parsed page, by the rules of `agent/steps/extract.js`, line by line the same.

A change to one of the two is a change to the other; a test holds them to equal records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from turbohtml import CData, Document, Element, Text

from agent.console import markup, urls
from agent.console.page import Page, attribute
from agent.console.selecting import Found, Unfit, query
from agent.steps.collecting import MAX_TEXT
from agent.steps.failed import StepFailed, invalid_selector
from farm.protocol.failures import Reason

_SKIPPED = frozenset({"script", "style", "template", "noscript"})
_BREAKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "details", "dialog", "div"),
        *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3"),
        *("h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p", "pre"),
        *("section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    )
)
_ABSOLUTE = frozenset({"href", "src", "action"})
_CONTROLS = frozenset({"input", "textarea", "select", "option", "button"})
_OTHER_VALUES = frozenset({"li", "meter", "progress", "data", "output", "param"})
_DISABLED = _CONTROLS | {"optgroup", "fieldset", "link", "style"}
_LINKS = frozenset({"a", "area", "link", "base"})
_SOURCES = frozenset(
    {"img", "script", "iframe", "embed", "source", "audio", "video", "track", "input", "frame"}
)


@dataclass(slots=True)
class Reading:
    """Reads one page; `cut` counts the texts that were too long."""

    page: Page
    cut: int = 0
    _base: str = field(init=False)

    def __post_init__(self) -> None:
        self._base = self.page.base

    def records(
        self, roots: Sequence[Found], fields: Sequence[dict[str, Any]], limit: int
    ) -> list[list[Any]]:
        """Return what the compiled fields give for each root, in their order.

        Raises:
            StepFailed: `selector_invalid`, naming the field; `needs_browser` for a property that
                does not follow from the markup.
        """
        return [self._record(root, fields) for root in roots[:limit]]

    def _record(self, root: Found, fields: Sequence[dict[str, Any]]) -> list[Any]:
        return [self._read(root, spec) for spec in fields]

    def _read(self, root: Found, spec: dict[str, Any]) -> object:
        kind = spec["kind"]
        if kind == "value":
            return None
        found = _find(root, spec, spec["selector"])
        if kind == "exists":
            return bool(found)
        if kind == "count":
            return len(found)
        if kind == "fields":
            return self._nested(found, spec)
        if spec["all"]:
            return [self._take(node, spec) for node in found[: spec["limit"]]]
        return self._take(found[0], spec) if found else None

    def _nested(self, found: list[Found], spec: dict[str, Any]) -> object:
        if spec["list"] is None:
            return self._record(found[0], spec["fields"]) if found else None
        if not found:
            return []
        rows = _find(found[0], spec, spec["list"])
        return [self._record(row, spec["fields"]) for row in rows[: spec["limit"]]]

    def _take(self, found: Found, spec: dict[str, Any]) -> object:
        kind = spec["kind"]
        node = found
        if isinstance(found, Document) and kind not in ("text", "prop"):
            node = found.select_one("html")
        match kind:
            case "attribute":
                return self._attribute(node, spec["name"])
            case "prop":
                return self._property(node, spec["name"])
            case "inner":
                return self._bounded(markup.inner(node)) if isinstance(node, Element) else None
            case "outer":
                return self._bounded(markup.outer(node)) if isinstance(node, Element) else None
            case _:
                return self._text(node)

    def _text(self, node: Found) -> str:
        if getattr(node, "is_attribute", False):
            return self._bounded(self._absolute(str(node.attrname), str(node)))
        return self._bounded(text_of(node))

    def _attribute(self, node: Found, name: str) -> str | None:
        if not isinstance(node, Element):
            return None
        value = attribute(node, name)
        return None if value is None else self._bounded(self._absolute(name, value))

    def _absolute(self, name: str, value: str) -> str:
        if name not in _ABSOLUTE:
            return value
        joined = urls.join(self._base, value)
        return value if joined is None else joined

    def _property(self, node: Found, name: str) -> object:
        value = self._of_element(node, name) if isinstance(node, Element) else None
        return self._bounded(value) if isinstance(value, str) else value

    def _of_element(self, node: Element, name: str) -> object:
        simple: dict[str, Callable[[], object]] = {
            "id": lambda: attribute(node, "id") or "",
            "className": lambda: attribute(node, "class") or "",
            "tagName": lambda: node.tag.upper(),
            "textContent": lambda: content(node),
            "innerHTML": lambda: markup.inner(node),
            "outerHTML": lambda: markup.outer(node),
            "value": lambda: _value(node),
            "checked": lambda: _flag(node, "checked", frozenset({"input"})),
            "selected": lambda: _flag(node, "selected", frozenset({"option"})),
            "disabled": lambda: _flag(node, "disabled", _DISABLED),
            "href": lambda: self._address(node, "href", _LINKS),
            "src": lambda: self._address(node, "src", _SOURCES),
        }
        if name not in simple:
            raise StepFailed(Reason.NEEDS_BROWSER, f"the property {name} needs a browser"[:2000])
        return simple[name]()

    def _address(self, node: Element, name: str, tags: frozenset[str]) -> str | None:
        if node.tag not in tags:
            return None
        value = attribute(node, name)
        return "" if value is None else self._absolute(name, value)

    def _bounded(self, text: str) -> str:
        if len(text) <= MAX_TEXT // 2:
            return text
        units = text.encode("utf-16-le", "surrogatepass")
        if len(units) <= 2 * MAX_TEXT:
            return text
        self.cut += 1
        return units[: 2 * MAX_TEXT].decode("utf-16-le", "surrogatepass")


def text_of(node: Found) -> str:
    """Return a node's text as the markup has it: a space where a block parts words, no scripts."""
    if isinstance(node, Document):
        return _walk(node)
    if not isinstance(node, Element):
        return _as_javascript(node)
    if _leaf(node) or node.tag in _SKIPPED:
        return content(node)
    return _walk(node)


def content(node: Element) -> str:
    """Return the DOM's `textContent`; that of a template is not its child."""
    if not _leaf(node):
        return "".join(content(c) if isinstance(c, Element) else _data(c) for c in node.children)
    return "".join(_data(c) for c in node.children)


def _find(root: Found, spec: dict[str, Any], target: dict[str, Any] | None) -> list[Found]:
    try:
        return query(root, target)
    except Unfit as unfit:
        written = "" if target is None else target["written"]
        raise invalid_selector(written, f"{unfit.why} (field {spec['path']})") from None


def _walk(node: Document | Element) -> str:
    parts: list[str] = []
    for child in node.children:
        if isinstance(child, Element):
            if child.tag in _SKIPPED:
                continue
            inner = content(child) if _leaf(child) else _walk(child)
            parts.append(f" {inner} " if child.tag in _BREAKS else inner)
        else:
            parts.append(_data(child))
    return "".join(parts)


def _leaf(node: Element) -> bool:
    return not any(isinstance(child, Element) for child in node.children)


def _data(node: object) -> str:
    return str(node.data) if isinstance(node, Text | CData) else ""


def _as_javascript(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        case float():
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(
                repr(value), repr(value)
            )
        case _:
            return value if isinstance(value, str) else _data(value)


def _value(node: Element) -> object:
    if node.tag in _OTHER_VALUES:
        raise StepFailed(Reason.NEEDS_BROWSER, f"the value of <{node.tag}> needs a browser")
    match node.tag:
        case "select":
            return _chosen(node)
        case "option":
            return _of_option(node)
        case "button":
            return attribute(node, "value") or ""
        case "input" | "textarea":
            return node.field_value or ""
        case _:
            return None


def _chosen(select: Element) -> str:
    options = select.select("option")
    chosen = [option for option in options if "selected" in option.attrs]
    if chosen:
        return _of_option(chosen[0] if "multiple" in select.attrs else chosen[-1])
    if "multiple" in select.attrs:
        return ""
    free = [option for option in options if not option.matches(":disabled")]
    return _of_option(free[0]) if free else ""


def _of_option(option: Element) -> str:
    value = attribute(option, "value")
    return " ".join(content(option).split()) if value is None else value


def _flag(node: Element, name: str, tags: frozenset[str]) -> bool | None:
    return name in node.attrs if node.tag in tags else None
