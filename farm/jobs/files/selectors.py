"""The forms of a selector, as far as they can be told without a browser. CSS is not parsed."""

import re

from farm.jobs.files.problems import shown
from farm.protocol.nearest import nearest

_SLASHED = ("xpath", "text", "aria", "css", "pierce")
_EQUALS = (
    "css", "xpath", "text", "role", "label", "placeholder", "testid", "alt", "title",
    "id", "data-testid", "data-test-id", "data-test", "nth", "visible",
)  # fmt: skip
_SLASH_FORM = re.compile(r"(?P<form>[A-Za-z][\w-]*)/(?P<rest>.*)", re.DOTALL)
_EQUALS_FORM = re.compile(r"(?P<form>[A-Za-z][\w-]*)=(?P<rest>.*)", re.DOTALL)
_PUPPETEER = re.compile(r"::-p-(?P<form>aria|text|xpath)\b")
_ATTRIBUTE = re.compile(r"""\[\s*(name|role)\s*=\s*("[^"]*"|'[^']*')\s*\]""")
_ROLE = re.compile(r"[a-z]+\s*(\[.*\])?\s*", re.DOTALL)
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_PAIRS = {")": "(", "]": "["}

Finding = tuple[str, str | None]
"""What is wrong, and the nearest form that would be right."""


def selector_problem(selector: str) -> Finding | None:
    """Return what is wrong with the form of a selector; None where nothing can be told."""
    text = selector.strip()
    if text == "":
        return "a selector may not be empty", None
    if "${" in text:
        return None  # known only at run time
    if "::-p-" in text:
        found = _PUPPETEER.search(text)
        form = f"{found['form']}/" if found else None
        return f"write {form or 'aria/, text/ or xpath/'}… for Puppeteer's ::-p-…()", form
    if text.startswith(("//", "(//", "..", "xpath=", "xpath/")):
        return _xpath_problem(re.sub(r"^xpath[/=]", "", text))
    if slashed := _SLASH_FORM.match(text):
        return _slash_problem(slashed["form"], slashed["rest"].strip())
    for part in _QUOTED.sub("''", text).split(" >> "):
        if problem := _part_problem(part.strip()):
            return problem
    return None


def _slash_problem(form: str, rest: str) -> Finding | None:
    if form not in _SLASHED:
        near = nearest(form, _SLASHED)
        return f"unknown selector form {shown(form + '/')}", near and f"{near}/"
    if rest == "":
        return f"something must follow {form}/", None
    if form == "aria":
        name = _ATTRIBUTE.sub("", rest).strip()
        empty = not name and all(value in ('""', "''") for _, value in _ATTRIBUTE.findall(rest))
        return ("aria/ needs a name or a role", None) if empty else None
    return None


def _part_problem(part: str) -> Finding | None:
    if part in ("", ">>") or part.endswith(" >>"):
        return "something must stand on both sides of >>", None
    match = _EQUALS_FORM.match(part)
    if match is None:
        return None
    form, rest = match["form"], match["rest"].strip()
    if form not in _EQUALS:
        near = nearest(form, _EQUALS)
        return f"unknown selector form {shown(form + '=')}", near and f"{near}="
    if rest == "":
        return f"something must follow {form}=", None
    if form == "role" and not _ROLE.fullmatch(rest):
        return 'role= is followed by a role, then maybe [name="…"]', None
    return None


def _xpath_problem(expression: str) -> Finding | None:
    text = expression.strip()
    if text == "":
        return "something must follow xpath/", None
    bare = _QUOTED.sub("''", text)
    if bare.count('"') + bare.replace("''", "").count("'"):
        return "the XPath has a quotation mark without its partner", None
    if problem := _unbalanced(bare):
        return problem, None
    if "///" in bare or bare.endswith(("/", "@", "::")) or re.search(r"\[\s*\]", bare):
        return "the XPath is unfinished: something is missing after /, @, :: or in []", None
    return None


def _unbalanced(text: str) -> str | None:
    opened: list[str] = []
    for char in text:
        if char in "([":
            opened.append(char)
        elif char in _PAIRS and (not opened or opened.pop() != _PAIRS[char]):
            return f"the XPath has a {char} too many"
    return f"the XPath has a {opened[-1]} that is not closed" if opened else None
