"""What is wrong with a body, place by place, in the words that job files are told in."""

import typing
from collections.abc import Iterator

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from farm.errors import InvalidInputError
from farm.jobs.files.problems import Path, ProblemBody, pointer, shown
from farm.jobs.files.sentences import follows, nearest_word, sentence
from farm.protocol.nearest import nearest


def invalid(
    error: ValidationError, model: type[BaseModel], what: str = "the body"
) -> InvalidInputError:
    """Turn a failed check of a small body into an error that points at the places."""
    places = [_problem(one, model) for one in error.errors(include_url=False) if not follows(one)]
    return InvalidInputError(f"{what} cannot be accepted", problems=places)


def _problem(error: ErrorDetails, model: type[BaseModel]) -> ProblemBody:
    path = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            word = str(path[-1])
            near = nearest(word, _keys(model, path[:-1]))
            return _body(path, f"unknown key {shown(word)}", near)
        case "missing":
            return _body(path, "is missing", None)
        case _:
            return _body(path, sentence(error), nearest_word(error))


def _body(path: Path, detail: str, near: str | None) -> ProblemBody:
    return ProblemBody(pointer=pointer(path), line=None, detail=detail, nearest=near)


def _keys(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """Return the keys that a mapping within a body may have, as far as its model says so."""
    for part in path:
        field = model.model_fields.get(str(part))
        if field is None or (inner := next(_models(field.annotation), None)) is None:
            return ()
        model = inner
    return tuple(model.model_fields)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in a type such as `Model | None`."""
    for one in (annotation, *typing.get_args(annotation)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            yield one
