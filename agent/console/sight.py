"""What might be seen of a page, as far as that can be told without its styles."""

import re

from turbohtml import Element

from agent.console.page import attribute

_HIDDEN = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))", re.IGNORECASE
)
_NEVER = frozenset({"head", "script", "style", "template", "noscript", "title", "meta", "link"})


def may_be_seen(element: Element) -> bool:
    """Tell whether nothing in the markup hides an element; what a stylesheet hides is seen."""
    node: object = element
    while isinstance(node, Element):
        if node.tag in _NEVER or "hidden" in node.attrs:
            return False
        if node.tag == "input" and (attribute(node, "type") or "").lower() == "hidden":
            return False
        if _HIDDEN.search(attribute(node, "style") or ""):
            return False
        node = node.parent
    return True
