"""From the many ways a step may be written to the one in which it is checked.

The result remembers where each part stood in the file, so that a problem found afterwards points
at what the person wrote: `/steps/2/click/selecter`, not `/steps/2/selecter`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from farm.jobs.files.problems import Path, Problem, shown
from farm.jobs.files.words import (
    COMMON_KEYS,
    ENVELOPE_MAPPINGS,
    known_keys,
    snake,
    verb_of,
    verb_words,
)
from farm.protocol.extraction import Paginate
from farm.protocol.nearest import nearest
from farm.protocol.steps import VERBS

_NOTHING = {"type": "wait", "ms": 0}
"""Stands in for a step that has a problem already, so that the others keep their numbers."""

_WORDS = {"browser": "use", "identity": "name", "proxy": "server"}
"""Mappings that may be one word, and the key it stands for."""


@dataclass(slots=True)
class Canonical:
    """A job in the form in which it is checked, and where its parts come from."""

    value: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Path] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def written(self, path: Path) -> Path:
        """Return the place in the file that a place in `value` comes from."""
        for length in range(len(path), -1, -1):
            if (origin := self.origins.get(path[:length])) is not None:
                return origin + path[length:]
        return path

    def say(self, path: Path, detail: str, near: str | None = None) -> None:
        """Note a problem; `path` is a place in the file."""
        self.problems.append(Problem(path=path, detail=detail, nearest=near))


def normalise(written: dict[str, Any]) -> Canonical:
    """Bring a job, its params filled in, into the form of `JobSpec`."""
    job = Canonical()
    job.value = _snaked(job, written, (), (*known_keys((), {}), "url", "extract"))
    if not isinstance(job.value.get("timeout", {}), dict):
        job.origins["timeout", "job"] = job.written(("timeout",))
        job.value["timeout"] = {"job": job.value["timeout"]}
    _recordings(job)
    for key, inner in _WORDS.items():
        if isinstance(job.value.get(key), str):
            job.origins[key, inner] = job.written((key,))
            job.value[key] = {inner: job.value[key]}
    for path in ENVELOPE_MAPPINGS:
        if path:
            _snake_inside(job, path)
    _one_liner(job)
    steps = job.value.get("steps")
    if isinstance(steps, list) and ("steps", 0) not in job.origins:
        job.value["steps"] = [_step(job, step, ("steps", at)) for at, step in enumerate(steps)]
    return job


def _recordings(job: Canonical) -> None:
    """Turn `record: trace` and `record: [trace]` into the mapping they stand for."""
    kinds, written = job.value.get("record"), job.written(("record",))
    if isinstance(kinds, list | str):
        job.origins["record", "kinds"] = written
        job.value["record"] = {"kinds": kinds}
    if isinstance(kinds, str):
        job.origins["record", "kinds", 0] = written
        job.value["record"] = {"kinds": [kinds]}


def _snaked(
    job: Canonical, value: dict[str, Any], path: Path, known: Iterable[str], origin: Path = ()
) -> dict[str, Any]:
    """Return a mapping with its known keys in snake case; `path` is its canonical place."""
    keys = frozenset(known)
    result: dict[str, Any] = {}
    for key, child in value.items():
        plain = key if key in keys or snake(key) not in keys else snake(key)
        if plain in result:
            job.say((*origin, key), f"{plain} is said twice")
            continue
        if plain != key:
            job.origins[*path, plain] = (*origin, key)
        result[plain] = child
    return result


def _snake_inside(job: Canonical, path: Path) -> None:
    around: Any = job.value
    for part in path[:-1]:
        around = around.get(part) if isinstance(around, dict) else None
    if isinstance(around, dict) and isinstance(inner := around.get(path[-1]), dict):
        keys = known_keys(path, {})
        around[path[-1]] = _snaked(job, inner, path, keys, job.written(path))


def _one_liner(job: Canonical) -> None:
    """Turn `url` and `extract` beside the envelope into two steps."""
    said = [key for key in ("url", "extract") if key in job.value]
    if "steps" in job.value:
        for key in said:
            job.say(job.written((key,)), f"a job has steps, or url and extract: not {key} too")
            job.value.pop(key)
        return
    if len(said) < 2:
        missing = "steps (or url and extract)" if not said else ({"url", "extract"} - {*said}).pop()
        job.say((), f"{missing} is missing")
        job.value.pop("url", None)
        job.value.pop("extract", None)
        job.value["steps"] = [_NOTHING]
        job.value.setdefault("name", "unnamed")
        return
    url, extract = job.value.pop("url"), job.value.pop("extract")
    job.value.setdefault("name", _host(url))
    job.origins["steps", 0] = ()
    step = _merged(job, "extract", extract, {}, (("steps", 1), ("extract",)))
    job.value["steps"] = [{"type": "goto", "url": url}, step]


def _host(url: object) -> str:
    try:
        return (urlsplit(str(url)).hostname or "extract")[:200]
    except ValueError:
        return "extract"


def _step(job: Canonical, step: object, path: Path) -> dict[str, Any]:
    match step:
        case str():
            return _bare(job, step, path)
        case dict() if isinstance(step.get("type"), str):
            return _explicit(job, step, path)
        case dict():
            return _keyed(job, step, path)
        case _:
            job.say(path, "a step is a verb, or a mapping with a verb as its key")
            return _NOTHING


def _bare(job: Canonical, word: str, path: Path) -> dict[str, Any]:
    verb = verb_of(word)
    if verb is None:
        _unknown_verb(job, word, path)
        return _NOTHING
    return {"type": verb}


def _explicit(job: Canonical, written: dict[str, Any], path: Path) -> dict[str, Any]:
    word = written["type"]
    verb = verb_of(word)
    if verb is None:
        _unknown_verb(job, word, (*path, "type"))
        return _NOTHING
    step = _snaked(job, written, path, VERBS[verb].model_fields, path)
    return {**_with_pages(job, step, path), "type": verb}


def _keyed(job: Canonical, step: dict[str, Any], path: Path) -> dict[str, Any]:
    words = [key for key in step if verb_of(key) is not None]
    match words:
        case [word]:
            verb = verb_of(word) or word
            beside = {key: value for key, value in step.items() if key != word}
            return _merged(job, verb, step[word], beside, (path, (*path, word)))
        case []:
            others = [key for key in step if snake(key) not in COMMON_KEYS]
            if others:
                _unknown_verb(job, others[0], (*path, others[0]))
            else:
                job.say(path, "a step needs a verb, such as goto or click")
        case _:
            job.say(path, f"one step is one verb; found {' and '.join(map(shown, words[:3]))}")
    return _NOTHING


def _merged(
    job: Canonical, verb: str, value: object, beside: dict[str, Any], places: tuple[Path, Path]
) -> dict[str, Any]:
    """Return a step written as `verb: value`; `places` are the step's own and that of the value."""
    path, origin = places
    keys = VERBS[verb].model_fields
    outer = _snaked(job, beside, path, keys, path)
    for key in outer:
        job.origins.setdefault((*path, key), (*path, key))
    job.origins[path] = origin
    inner = _inner(job, verb, value, places)
    if inner is None:
        return _NOTHING
    for key in outer.keys() & inner.keys():
        job.say(job.written((*path, key)), f"{key} is said twice")
    return {**_with_pages(job, inner | outer, path), "type": verb}


def _inner(
    job: Canonical, verb: str, value: object, places: tuple[Path, Path]
) -> dict[str, Any] | None:
    path, origin = places
    shorthand = VERBS[verb].shorthand
    if isinstance(value, dict):
        return _snaked(job, value, path, VERBS[verb].model_fields, origin)
    if value is None:
        return {}
    if shorthand is None:
        keys = [name for name, at in VERBS[verb].model_fields.items() if at.is_required()]
        takes = f"a mapping with {', '.join(keys)}" if keys else "no value"
        job.say(origin, f"{verb} takes {takes}")
        return None
    job.origins[*path, shorthand] = origin
    return {shorthand: value}


def _with_pages(job: Canonical, step: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the step with the keys of its `paginate` in snake case."""
    pages = step.get("paginate")
    if not isinstance(pages, dict):
        return step
    inside = (*path, "paginate")
    keys = Paginate.model_fields
    return {**step, "paginate": _snaked(job, pages, inside, keys, job.written(inside))}


def _unknown_verb(job: Canonical, word: str, path: Path) -> None:
    words = verb_words()
    near = nearest(snake(word), words)
    job.say(path, f"unknown verb {shown(word)}", words[near] if near else None)
