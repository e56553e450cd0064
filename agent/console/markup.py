"""Markup of a parsed tree, as `innerHTML` and `outerHTML` have it in a browser of today.

The parser's own serializer does it, but for one thing: it puts a line break after `<pre>`,
`<textarea>` and `<listing>` where their text begins with one, which browsers have ceased to do.
"""

import re
from collections.abc import Iterable

from turbohtml import Comment, Doctype, Document, DocumentFragment, Element, Text

_AT_STAKE = re.compile(r"<(?:pre|textarea|listing)\b[^>]*>\n", re.IGNORECASE)
_VOID = frozenset(
    (
        *("area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img"),
        *("input", "keygen", "link", "meta", "param", "source", "track", "wbr"),
    )
)
_RAW = frozenset(
    ("style", "script", "xmp", "iframe", "noembed", "noframes", "plaintext", "noscript")
)
_TEXT = str.maketrans({"&": "&amp;", "\xa0": "&nbsp;", "<": "&lt;", ">": "&gt;"})
_VALUE = str.maketrans({"&": "&amp;", "\xa0": "&nbsp;", '"': "&quot;", "<": "&lt;", ">": "&gt;"})


def inner(element: Element) -> str:
    """Return what is between an element's tags."""
    markup = element.inner_html
    return markup if _AT_STAKE.search(markup) is None else _inside(element)


def outer(element: Element) -> str:
    """Return an element with its tags."""
    markup = element.html
    return markup if _AT_STAKE.search(markup) is None else _node(element)


def whole(document: Document) -> str:
    """Return a document with its doctype."""
    parts = (c for c in document.children if isinstance(c, Doctype | Element))
    return "".join(outer(c) if isinstance(c, Element) else c.serialize() for c in parts)


def _inside(element: Element) -> str:
    raw = element.tag in _RAW
    return "".join(_node(child, raw=raw) for child in _children(element))


def _children(element: Element) -> Iterable[object]:
    for child in element.children:
        if isinstance(child, DocumentFragment):  # what a template holds
            yield from child.children
        else:
            yield child


def _node(node: object, *, raw: bool = False) -> str:
    match node:
        case Text():
            return node.data if raw else node.data.translate(_TEXT)
        case Comment():
            return f"<!--{node.data}-->"
        case Element():
            said = "".join(f' {k}="{_value(v)}"' for k, v in node.attrs.items())
            end = "" if node.tag in _VOID else f"{_inside(node)}</{node.tag}>"
            return f"<{node.tag}{said}>{end}"
        case _:
            return ""


def _value(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    return text.translate(_VALUE)
