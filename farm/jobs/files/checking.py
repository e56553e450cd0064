"""From the canonical form to a `JobSpec`, or to problems in plain words."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from farm.jobs.files.document import children
from farm.jobs.files.normalise import Canonical
from farm.jobs.files.places import misplaced
from farm.jobs.files.problems import Path, Problem, shown
from farm.jobs.files.references import as_text
from farm.jobs.files.selectors import selector_problem
from farm.jobs.files.sentences import follows, nearest_word, sentence
from farm.jobs.files.spec import JobSpec
from farm.jobs.files.words import known_keys, snake
from farm.protocol.extraction import FieldSpec
from farm.protocol.nearest import nearest


def check(job: Canonical, typed: set[Path]) -> tuple[JobSpec | None, list[Problem]]:
    """Check a job against its models and its selectors against their forms.

    Args:
        job: The canonical form.
        typed: Places in the file where a param stood alone and is not a text: where a text is
            wanted, it becomes one.

    Returns:
        The checked job, or None with every problem found.
    """
    problems = list(_selector_problems(job))
    try:
        spec = JobSpec.model_validate(job.value)
        problems += [Problem(path=job.written(p), detail=why) for p, why in misplaced(spec)]
        return spec, problems
    except ValidationError as error:
        found = [one for one in error.errors(include_url=False) if not follows(one)]
    if _as_texts(job, found, typed):
        return check(job, set())
    told = {problem.path for problem in problems}
    for path, errors in _by_place(job, found).items():
        fresh = (problem for problem in _problems(job, path, errors) if problem.path not in told)
        problems.extend(fresh)
    return None, problems


def _as_texts(job: Canonical, found: list[ErrorDetails], typed: set[Path]) -> bool:
    changed = False
    for error in found:
        path = _place(job, error)
        if error["type"] == "string_type" and job.written(path) in typed:
            around: Any = job.value
            for part in path[:-1]:
                around = around[part]
            if not isinstance(around[path[-1]], dict | list | None):
                around[path[-1]] = as_text(around[path[-1]])
                changed = True
    return changed


def _by_place(job: Canonical, found: list[ErrorDetails]) -> dict[Path, list[ErrorDetails]]:
    places: dict[Path, list[ErrorDetails]] = {}
    for error in found:
        places.setdefault(_place(job, error), []).append(error)
    return places


def _place(job: Canonical, error: ErrorDetails) -> Path:
    """Return where in the canonical form an error is, without pydantic's names of union members."""
    path: list[str | int] = []
    node: Any = job.value
    for at, part in enumerate(error["loc"]):
        if at == 2 and path[0] == "steps":
            continue  # the verb, by which pydantic tells the steps apart
        if isinstance(node, dict) and (part in node or error["type"] == "missing"):
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            continue
        path.append(part)
    return tuple(path)


def _problems(job: Canonical, path: Path, errors: list[ErrorDetails]) -> Iterator[Problem]:
    match errors[0]["type"]:
        case "missing":
            yield _missing(job, path)
        case "extra_forbidden":
            keys = known_keys(path[:-1], job.value)
            word = str(path[-1])
            yield Problem(
                path=job.written(path),
                detail=f"unknown key {shown(word)}",
                nearest=nearest(snake(word), keys),
            )
        case _:
            details = dict.fromkeys(sentence(error) for error in errors)
            near = next((near for error in errors if (near := nearest_word(error))), None)
            detail = " or ".join(details)
            yield Problem(path=job.written(path), detail=detail, nearest=near)


def _missing(job: Canonical, path: Path) -> Problem:
    # What is missing has no place but what surrounds it.
    return Problem(path=job.written(path[:-1]), detail=f"{path[-1]} is missing")


_SELECTORS = {
    "extract": ("list", "within"),
    "scroll": ("to",),
    "drag": ("selector", "to"),
}
"""The keys that hold selectors, of verbs that have others than `selector`."""


def _selector_problems(job: Canonical) -> Iterator[Problem]:
    steps = job.value.get("steps")
    for at, step in enumerate(steps if isinstance(steps, list) else ()):
        for path, text in _selectors(step, ("steps", at)):
            if found := selector_problem(text):
                yield Problem(path=job.written(path), detail=found[0], nearest=found[1])


def _selectors(step: dict[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the selectors of a canonical step with their places."""
    keys = _SELECTORS.get(step["type"], ("selector",))
    for key in keys:
        if isinstance(text := step.get(key), str):
            yield (*path, key), text
    if step["type"] != "extract":
        return
    if isinstance(pages := step.get("paginate"), dict) and isinstance(pages.get("next"), str):
        yield (*path, "paginate", "next"), pages["next"]
    yield from _field_selectors(step.get("fields"), (*path, "fields"))


def _field_selectors(fields: object, path: Path) -> Iterator[tuple[Path, str]]:
    for name, one in children(fields) if isinstance(fields, dict) else ():
        if isinstance(one, str):
            if (text := _of_shorthand(one)) is not None:
                yield (*path, name), text
        elif isinstance(one, dict):
            for key in ("selector", "list"):
                if isinstance(text := one.get(key), str):
                    yield (*path, name, key), text
            yield from _field_selectors(one.get("fields"), (*path, name, "fields"))


def _of_shorthand(text: str) -> str | None:
    """Return the selector in `selector@attribute`; None where the model has its own complaint."""
    try:
        return FieldSpec.model_validate(text).selector
    except ValidationError:
        return None
