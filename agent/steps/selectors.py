"""From a selector as people write it to a Playwright locator.

One string, in any of these forms; Playwright's own chains (`a >> b`) work too, each part in any
form but the first four, and a part that names an iframe leads into it:

=========================== =====================================================
`text/Foo`                  the smallest element with this text, ignoring case
`aria/Name`                 the accessible name, any role
`aria/Name[role="button"]`  name and role; also `aria/[name="x"][role="y"]`
`xpath/EXPR`                XPath; also `xpath=EXPR` and `//EXPR`
`css/…` `css=…` `pierce/…`  CSS, open shadow roots included; also without a prefix
`role=button[name="Save"]`  Playwright's role engine
`label=` `placeholder=`     the getters of the same name; in quotes: the whole text, exactly
`testid=` `alt=` `title=`
=========================== =====================================================
"""

import re
from typing import Any, cast

from playwright.async_api import FrameLocator, Locator, Page

from agent.steps.failures import invalid_selector

Scope = Page | Locator | FrameLocator

_ARIA_TAIL = re.compile(r"""\[\s*(name|role)\s*=\s*(?:"([^"]*)"|'([^']*)')\s*\]\s*$""")
_FRAME = re.compile(r"(?:^|[\s>+~])i?frame(?:[.#:\[][^\s]*)?$")
_NAMED_ROLES = (
    "button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch",
    "slider", "spinbutton", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
    "treeitem",
)  # fmt: skip
_PASSIVE_ROLES = ("heading", "img", "dialog", "alert", "region", "cell", "columnheader", "row")
_NOT_INSIDE = (
    "css=:not(:is(a,button,label,summary,option,[role=button],[role=link],[role=tab],"
    "[role=menuitem],[role=option]) *)"
)


def locate(scope: Page | Locator, selector: str) -> Locator:
    """Return the locator a selector stands for, inside a page or an element.

    Nothing is looked up yet; whether the engine understands it shows when it is used.

    Raises:
        StepFailed: `selector_invalid`, for what can be told from the text alone.
    """
    text = selector.strip()
    if text == "":
        raise invalid_selector(selector, "it is empty")
    if "::-p-" in text:
        raise invalid_selector(selector, "write aria/…, text/… or xpath/… for Puppeteer's ::-p-…()")
    form, _, rest = text.partition("/")
    match form:
        case "text":
            return scope.get_by_text(rest)
        case "aria":
            return _aria(scope, selector, rest)
        case "xpath":
            return scope.locator(f"xpath={rest}")
        case "css" | "pierce":
            return scope.locator(f"css={rest}")
        case _:
            return _chain(scope, selector, text)


def _aria(scope: Page | Locator, selector: str, text: str) -> Locator:
    said: dict[str, str] = {}
    while (tail := _ARIA_TAIL.search(text)) is not None:
        said[tail[1]] = tail[2] if tail[2] is not None else tail[3]
        text = text[: tail.start()]
    name = said.get("name", text.strip())
    role = cast("Any", said.get("role"))  # any word; the engine refuses what is no role
    if role:
        return scope.get_by_role(role, name=name or None, exact=True if name else None)
    if not name:
        raise invalid_selector(selector, "aria/ needs a name or a role")
    return _any_role(scope, name)


def _any_role(scope: Page | Locator, name: str) -> Locator:
    """Find by name alone. There is no engine for that, so ask for each role that has names.

    A heading or picture inside a link or button has the same name as what is around it: there
    only the outer one counts.
    """
    passive = _one_of(scope, _PASSIVE_ROLES, name).and_(scope.locator(_NOT_INSIDE))
    return _one_of(scope, _NAMED_ROLES, name).or_(scope.get_by_label(name, exact=True)).or_(passive)


def _one_of(scope: Page | Locator, roles: tuple[str, ...], name: str) -> Locator:
    found: Locator | None = None
    for role in roles:
        more = scope.get_by_role(cast("Any", role), name=name, exact=True)
        found = more if found is None else found.or_(more)
    assert found is not None  # noqa: S101 - both tables have entries
    return found


def _chain(scope: Page | Locator, selector: str, text: str) -> Locator:
    parts = _split(text)
    inner: Scope = scope
    for part in parts[:-1]:
        outer = _simple(inner, part)
        inner = outer.content_frame if _FRAME.search(part) else outer
    if parts[-1] == "":
        raise invalid_selector(selector, "something must follow >>")
    return _simple(inner, parts[-1])


def _split(text: str) -> list[str]:
    """Split at ` >> ` outside quotes."""
    parts, quote, start = [], "", 0
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif text.startswith(" >> ", position):
            parts.append(text[start:position].strip())
            start = position + 4
    return [*parts, text[start:].strip()]


def _simple(scope: Scope, text: str) -> Locator:
    form, mark, rest = text.partition("=")
    value, exact = _unquote(rest) if mark else ("", False)
    match form:
        case "label":
            return scope.get_by_label(value, exact=exact)
        case "placeholder":
            return scope.get_by_placeholder(value, exact=exact)
        case "testid":
            return scope.get_by_test_id(value)
        case "alt":
            return scope.get_by_alt_text(value, exact=exact)
        case "title":
            return scope.get_by_title(value, exact=exact)
        case _:
            return scope.locator(text)


def _unquote(text: str) -> tuple[str, bool]:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1], True
    return text, False
