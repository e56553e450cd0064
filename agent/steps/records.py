"""From what the page gave for each field to the values of a record. Pure.

`compile_fields` says to `extract.js` what to look for; `Reader` turns its answer into items.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import regex

from agent.steps.failed import StepFailed, clean
from agent.steps.numbers import parse_number
from agent.steps.values import as_text, to_json_value
from farm.protocol.extraction import FieldSpec
from farm.protocol.failures import Reason

UNLIMITED = 1_000_000
REGEX_S = 0.25
"""A pattern that takes longer on one text fails the step: meanwhile nothing else goes on."""
_CSS_PREFIXES = ("css/", "css=", "pierce/")
_XPATH_PREFIXES = ("xpath/", "xpath=")
_MISSING = object()


def compile_fields(fields: Mapping[str, FieldSpec], path: str = "") -> list[dict[str, Any]]:
    """Return what `extract.js` needs to know of each field, in their order."""
    return [_compile(spec, f"{path}{name}") for name, spec in fields.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Turns the values of one page into items.

    `resolve` gives a `value` with its references replaced.
    """

    fields: Mapping[str, FieldSpec]
    resolve: Callable[[str], object]

    def item(self, values: object, number: int) -> dict[str, Any]:
        """Return one record, with every declared field.

        Raises:
            StepFailed: `required_missing`, naming the path and the record's number, from 0;
                `script_error` if the page tampered with the answer.
        """
        return self._record(values, self.fields, "", number)

    def _record(
        self, values: object, fields: Mapping[str, FieldSpec], path: str, number: int
    ) -> dict[str, Any]:
        if not isinstance(values, list) or len(values) != len(fields):
            raise tampered()
        return {
            name: self._field(value, spec, f"{path}{name}", number)
            for value, (name, spec) in zip(values, fields.items(), strict=True)
        }

    def _field(self, raw: object, spec: FieldSpec, path: str, number: int) -> object:
        if spec.exists or spec.count:
            return to_json_value(raw)
        value = self._value(raw, spec, path, number)
        missing = value is _MISSING or (spec.all and value == [])
        if missing and spec.required:
            raise StepFailed(
                Reason.REQUIRED_MISSING, clean(f"{path} is missing in record {number}")
            )
        if missing and ("default" in spec.model_fields_set or value is _MISSING):
            return spec.default
        return value

    def _value(self, raw: object, spec: FieldSpec, path: str, number: int) -> object:
        if spec.value is not None:
            value = self.resolve(spec.value)
            return _convert(value, spec) if isinstance(value, str) else value
        if spec.fields is not None:
            return self._nested(raw, spec, spec.fields, path, number)
        if not spec.all:
            return _convert(raw, spec)
        if not isinstance(raw, list):
            raise tampered()
        return [v for v in (_convert(item, spec) for item in raw) if v is not _MISSING]

    def _nested(
        self, raw: object, spec: FieldSpec, fields: Mapping[str, FieldSpec], path: str, number: int
    ) -> object:
        if spec.list is None:
            return _MISSING if raw is None else self._record(raw, fields, f"{path}.", number)
        if not isinstance(raw, list):
            raise tampered()
        if not raw:
            return [] if not spec.required else _MISSING
        return [
            self._record(values, fields, f"{path}[{row}].", number)
            for row, values in enumerate(raw)
        ]


def tampered() -> StepFailed:
    """Return the failure of a page that has changed what JavaScript means too far for us."""
    return StepFailed(Reason.SCRIPT_ERROR, "the page interfered with the extraction")


def target_of(selector: str | None) -> dict[str, Any] | None:
    """Return how a field's selector is looked up: natively, as CSS or XPath."""
    if selector is None:
        return None
    text = selector.strip()
    for prefix in _XPATH_PREFIXES:
        if text.startswith(prefix):
            return {"xpath": True, "text": text[len(prefix) :], "written": selector}
    if text.startswith(("//", "./", "..", "(//", "(.//")):
        return {"xpath": True, "text": text, "written": selector}
    for prefix in _CSS_PREFIXES:
        text = text.removeprefix(prefix)
    if text.startswith((">", "+", "~")):
        text = f":scope {text}"
    return {"xpath": False, "text": text, "written": selector}


def _compile(spec: FieldSpec, path: str) -> dict[str, Any]:
    return {
        "path": path,
        "kind": _kind(spec),
        "selector": target_of(spec.selector),
        "name": spec.attribute or spec.prop,
        "all": spec.all,
        "list": target_of(spec.list),
        "limit": spec.limit or UNLIMITED,
        "fields": None if spec.fields is None else compile_fields(spec.fields, f"{path}."),
    }


def _kind(spec: FieldSpec) -> str:
    for name in ("value", "fields", "attribute", "prop"):
        if getattr(spec, name) is not None:
            return name
    if spec.html is not None:
        return spec.html
    if spec.exists:
        return "exists"
    return "count" if spec.count else "text"


def _convert(raw: object, spec: FieldSpec) -> object:
    """Return the field's value, or `_MISSING`."""
    match raw:
        case None:
            return _MISSING
        case bool() | int() | float():
            keep = spec.regex is None and (spec.prop is not None or spec.type != "text")
            return to_json_value(raw) if keep else _typed(as_text(raw), spec)
        case str():
            return _typed(raw, spec)
        case _:
            raise tampered()


def _typed(raw: str, spec: FieldSpec) -> object:
    text = _worded(raw, spec)
    if spec.regex is not None:
        found = _search(spec.regex, text)
        if found is None:
            return _MISSING
        text = found
    match spec.type:
        case "text":
            return to_json_value(text)
        case "number":
            number = parse_number(text, spec.decimal)
            return _MISSING if number is None else number
        case "json":
            return _parse_json(text)


def _search(pattern: str, text: str) -> str | None:
    """Return the first group, or the match where there is none.

    By an engine with a clock: a pattern can take for ever on a text that the page chose.
    """
    try:
        found = regex.search(pattern, text, timeout=REGEX_S)
    except TimeoutError:
        raise StepFailed(
            Reason.VALUE_INVALID, clean(f"the regex {pattern!r} took more than {REGEX_S:g} s")
        ) from None
    if found is None:
        return None
    return found[1] if found.re.groups else found[0]


def _worded(text: str, spec: FieldSpec) -> str:
    """Collapse white space, but not in what is no prose: attributes, properties, markup, JSON."""
    if _kind(spec) != "text" or spec.type == "json":
        return text
    return " ".join(text.split())


def _parse_json(text: str) -> object:
    try:
        return to_json_value(json.loads(text, parse_constant=_not_json))
    except (ValueError, RecursionError):
        return _MISSING


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
