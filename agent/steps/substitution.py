"""`${vars.x}`, `${params.x}`, `${page.url}` and `${page.title}` in the texts of a step.

`$${` stands for `${` itself. A text that is nothing but one reference keeps the type of the value
where the key takes any value (`set`, `args`, `equals`, `default`); elsewhere it becomes text. A
script may contain `${…}` of its own: in it only the four known forms are replaced.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agent.steps.failed import StepFailed, clean
from agent.steps.values import as_text
from farm.protocol.extraction import FieldSpec
from farm.protocol.failures import Reason
from farm.protocol.nearest import nearest
from farm.protocol.steps import Eval, StepBase

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_KNOWN = re.compile(r"\$\$\{|\$\{((?:vars|params)\.[\w.-]+|page\.url|page\.title)\}")
_STEP = TypeVar("_STEP", bound=StepBase)
Names = Mapping[str, Mapping[str, Any]]
"""What may be referred to: `vars`, `params` and `page`, each with its names."""


def has_references(value: object) -> bool:
    """Tell whether a step, or any value in it, contains something to substitute."""
    return any(True for _ in _texts(value))


def mentions(value: object, reference: str) -> bool:
    """Tell whether a step, or any value in it, contains `${reference}`."""
    return any("${" + reference + "}" in text for text in _texts(value))


def substitute_step(step: _STEP, names: Names) -> _STEP:
    """Return the step with every reference replaced, checked again.

    The `value` of an extraction's field stays as it is: it is replaced for each page of results.

    Raises:
        StepFailed: `value_invalid`, if a name is not known or a key does not take the value.
    """
    changed: dict[str, Any] = {}
    for name in step.model_fields_set:
        before = getattr(step, name)
        free = type(step).model_fields[name].annotation is Any
        after = _replace(before, names, typed=free, script=isinstance(step, Eval) and not free)
        if after is not before:
            changed[name] = after
    if not changed:
        return step
    given = {name: getattr(step, name) for name in step.model_fields_set}
    try:
        return type(step).model_validate({**given, **changed})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StepFailed(
            Reason.VALUE_INVALID, clean(f"{where}: {first['msg']}, after substitution")
        ) from None


def substitute(text: str, names: Names, *, typed: bool = True, script: bool = False) -> object:
    """Return a text with its references replaced.

    Args:
        text: What was written.
        names: What may be referred to.
        typed: A text that is exactly one reference gives the value itself, whatever its type.
        script: Leave alone every `${…}` that is not of a known form.

    Raises:
        StepFailed: `value_invalid`, if a name is not known; says which is nearest.
    """
    if "${" not in text:
        return text
    pattern = _KNOWN if script else _REFERENCE
    if typed:
        whole = pattern.fullmatch(text)
        if whole is not None and whole[1] is not None:
            return _lookup(whole[1], names)
    return pattern.sub(
        lambda found: "${" if found[1] is None else as_text(_lookup(found[1], names)), text
    )


def unknown_name(reference: str, names: Names) -> StepFailed:
    """Return the failure of a reference to something that is not there."""
    known = [f"{scope}.{name}" for scope, inner in names.items() for name in inner]
    near = nearest(reference, known, alike=0.5)
    hint = f"; did you mean ${{{near}}}?" if near else f"; known are {', '.join(known)}"
    return StepFailed(Reason.VALUE_INVALID, clean(f"${{{reference}}} is not known{hint}"))


def _lookup(reference: str, names: Names) -> object:
    value: object = names
    for part in reference.strip().split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, (list, tuple)) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise unknown_name(reference, names)
    return value


def _replace(value: object, names: Names, *, typed: bool, script: bool = False) -> object:
    """Return the value with its texts replaced; the very same object where nothing changed."""
    match value:
        case str():
            return substitute(value, names, typed=typed, script=script)
        case list() | tuple():
            items = [_replace(item, names, typed=typed) for item in value]
            return value if _same(items, value) else type(value)(items)
        case dict():
            pairs = {key: _replace(item, names, typed=typed) for key, item in value.items()}
            return value if _same(pairs.values(), value.values()) else pairs
        case BaseModel():
            return _replace_in_model(value, names)
        case _:
            return value


def _replace_in_model(model: BaseModel, names: Names) -> BaseModel:
    changed = {}
    for name in model.model_fields_set - _kept(model):
        before = getattr(model, name)
        free = type(model).model_fields[name].annotation is Any
        after = _replace(before, names, typed=free)
        if after is not before:
            changed[name] = after
    return model.model_copy(update=changed) if changed else model


def _same(new: Iterable[object], old: Iterable[object]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def _kept(model: BaseModel) -> set[str]:
    return {"value"} if isinstance(model, FieldSpec) else set()


def _texts(value: object) -> Iterator[str]:
    """Yield every text inside a value that has a reference in it."""
    if isinstance(value, str):
        if "${" in value:
            yield value
        return
    for inner in _inside(value):
        yield from _texts(inner)


def _inside(value: object) -> Iterable[object]:
    match value:
        case list() | tuple():
            return value
        case dict():
            return value.values()
        case BaseModel():
            return [getattr(value, name) for name in value.model_fields_set - _kept(value)]
        case _:
            return ()
