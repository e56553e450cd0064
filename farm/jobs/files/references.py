"""`${params.x}` is filled in when a job is submitted; `${vars.x}` and `${page.x}` when it runs.

In a step, `$${` stands for a plain `${` and is left for the agent to unescape; the values of
params are data, so what they bring along is escaped for it. The envelope is read only here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.jobs.files.document import MAX_CHARACTERS, children
from farm.jobs.files.problems import InvalidFileError, Path, Problem, shown
from farm.jobs.files.yaml_values import core_scalar, read_yaml
from farm.protocol.nearest import nearest

_REFERENCE = re.compile(r"(?P<escape>\$?)\$\{(?P<inner>[^{}]*)(?P<end>\}?)")
_PARAM = re.compile(r"params\.(?P<name>[\w-]+(\.[\w-]+)*)")
_RUN_TIME = re.compile(r"vars\.[A-Za-z_]\w{0,63}(\.[\w-]+)*|page\.(url|title)")
_NAME = re.compile(r"[A-Za-z_][\w-]{0,63}")
_ROOTS = ("params.", "vars.", "page.url", "page.title")
_SCRIPT_KEYS = frozenset({"script", "eval", "evaluate", "executeJavascript", "execute_javascript"})
_MISSING = object()


def effective_params(
    declared: object, given: Mapping[str, object]
) -> tuple[dict[str, object], list[Problem]]:
    """Return the file's params with what was given on submit in their place, and what is wrong.

    A text given for a param that is not declared as a text is read as YAML would read it, because
    a command line knows only texts; it has to be of the kind that is declared. Null takes any.
    """
    if declared is None:
        declared = {}
    if not isinstance(declared, dict):
        return {}, [Problem(path=("params",), detail="should be a mapping of names to values")]
    problems = [problem for name in declared if (problem := _misnamed(name, declared[name]))]
    params = dict(declared)
    for name, value in given.items():
        if name not in declared:
            detail = f"the param {shown(name)} was given, but the file does not declare it"
            near = nearest(name, declared)
            problems.append(Problem(path=("params",), detail=detail, nearest=near))
        else:
            params[name], problem = _read_as(declared[name], name, value)
            problems.extend([problem] if problem else [])
    return params, problems


def _read_as(declared: object, name: str, given: object) -> tuple[object, Problem | None]:
    """Return what a given value means for a param, and what is wrong with a text for it."""
    if not isinstance(given, str) or isinstance(declared, str):
        return given, None
    kind = _kind(declared)
    value: object
    if kind in ("a mapping", "a list"):
        try:
            value = read_yaml(given).value
        except InvalidFileError:
            value = given
    else:
        value = core_scalar(given)
    if kind is None or _kind(value) == kind:
        return value, None
    detail = f"the file declares {shown(name)} as {kind}; {shown(given)} is not one"
    return declared, Problem(path=("params", name), detail=detail)


def _kind(value: object) -> str | None:
    """Return what a param is, where a text for it has to be the same; None where any will do."""
    match value:
        case bool():
            return "a truth value (true or false)"
        case int() | float():
            return "a number"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return None


def _misnamed(name: str, value: object) -> Problem | None:
    if not _NAME.fullmatch(name):
        detail = "the name of a param is a letter, then letters, digits, _ and -"
        return Problem(path=("params", name), detail=detail)
    if isinstance(value, str) and "${params." in value:
        detail = "the value of a param is taken as it is; it may not refer to another one"
        return Problem(path=("params", name), detail=detail)
    return None


class _Place:
    """Where a text stands, and what that means for its references."""

    __slots__ = ("in_script", "in_step", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.in_step = path[0] in ("steps", "extract", "url")
        self.in_script = self.in_step and path[-1] in _SCRIPT_KEYS


@dataclass(slots=True)
class Substitution:
    """Fills params into a document; what is wrong gathers in `problems`."""

    params: Mapping[str, object]
    problems: list[Problem] = field(default_factory=list)
    typed: set[Path] = field(default_factory=set)
    """Where a reference stood alone and its value is not a text."""
    _inserted: int = 0

    def fill(self, node: object, path: Path) -> object:
        """Return `node` with every `${params.x}` replaced.

        Raises:
            InvalidFileError: If the values filled in come to more than 4,000,000 characters.
        """
        if isinstance(node, str):
            return self._text(node, path)
        filled = [(key, self.fill(child, (*path, key))) for key, child in children(node)]
        match node:
            case dict():
                return dict(filled)
            case list():
                return [child for _, child in filled]
            case _:
                return node

    def _text(self, text: str, path: Path) -> object:
        if "${" not in text:
            return text
        place = _Place(path)
        whole = _REFERENCE.fullmatch(text)
        if whole and not whole["escape"] and (name := self._param(whole, place)):
            value = self._value(name)
            self._count(value, path)
            if not isinstance(value, str):
                self.typed.add(path)
            return _escaped(value) if place.in_step else value
        return _REFERENCE.sub(lambda found: self._part(found, place), text)

    def _part(self, found: re.Match[str], place: _Place) -> str:
        if found["escape"]:
            return found[0] if place.in_step else found[0].removeprefix("$")
        name = self._param(found, place)
        if name is None:
            self._check_run_time(found, place)
            return found[0]
        value = self._value(name)
        if isinstance(value, dict | list) or value is None:
            self._say(place, f"${{params.{name}}} is no text or number, so it must stand alone")
            return found[0]
        text = as_text(value)
        self._count(text, place.path)
        return str(_escaped(text)) if place.in_step else text

    def _param(self, found: re.Match[str], place: _Place) -> str | None:
        match = _PARAM.fullmatch(found["inner"].strip())
        if match is None or not found["end"]:
            return None
        if self._value(match["name"]) is not _MISSING:
            return match["name"]
        return None

    def _value(self, name: str) -> object:
        value: object = self.params
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return _MISSING
            value = value[part]
        return value

    def _check_run_time(self, found: re.Match[str], place: _Place) -> None:
        inner = found["inner"].strip()
        param = _PARAM.fullmatch(inner)
        if param and found["end"]:
            near = nearest(param["name"], self.params)
            self._say(place, f"there is no param {shown(param['name'])}", near)
        elif place.in_script:
            return  # JavaScript has a ${...} of its own
        elif not found["end"]:
            self._say(place, f"{shown(found[0])} has no closing brace; write $${{ for a plain ${{")
        elif not _RUN_TIME.fullmatch(inner):
            detail = (
                f"{shown(found[0])} is neither a param, a variable (vars.name) nor page.url or "
                "page.title; write $${ for a plain ${"
            )
            self._say(place, detail, nearest(inner, _ROOTS))
        elif not place.in_step:
            detail = f"{shown(found[0])} is known only while the job runs, so only in its steps"
            self._say(place, detail)

    def _say(self, place: _Place, detail: str, near: str | None = None) -> None:
        self.problems.append(Problem(path=place.path, detail=detail, nearest=near))

    def _count(self, value: object, path: Path) -> None:
        self._inserted += _weight(value)
        if self._inserted > MAX_CHARACTERS:
            detail = f"params come to more than {MAX_CHARACTERS} characters when filled in"
            raise InvalidFileError(Problem(path=path, detail=detail))


def as_text(value: object) -> str:
    """Return a value as it reads inside a text: `true`, `2`, `2.5`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _weight(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return 1 + sum(len(str(key)) + _weight(child) for key, child in children(value))


def _escaped(value: object) -> object:
    match value:
        case str():
            return value.replace("${", "$${")
        case dict():
            return {key: _escaped(child) for key, child in value.items()}
        case list():
            return [_escaped(child) for child in value]
        case _:
            return value
