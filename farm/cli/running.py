"""From a command's coroutine to an exit code."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, Never, TypeVar

import typer
from pydantic import ValidationError

from farm import config
from farm.cli import exits, output
from farm.cli.exits import ExitCode
from farm.errors import FarmError, InvalidInputError, TooLargeError
from farm.jobs.files.sentences import sentence
from farm.protocol.problems import Problem
from farm.protocol.variables import UnknownVariableError
from farm.sdk import FarmApiError, FarmUnreachableError

T = TypeVar("T")
_STDOUT = 1


class CommandError(Exception):
    """A command that can't be carried out; the text is for the person."""

    def __init__(self, detail: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(detail)
        self.code = code


_KNOWN = (
    ExceptionGroup,
    CommandError,
    FarmApiError,
    FarmUnreachableError,
    FarmError,
    ValidationError,
    UnknownVariableError,
    OSError,
)


def run(command: Coroutine[Any, Any, ExitCode]) -> Never:
    """Run a command to its end and exit with its code; every known error becomes one line."""
    try:
        code = asyncio.run(command)
        output.flush()
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = ExitCode.INTERRUPTED
    except _KNOWN as error:
        code = _explain(error)
    raise typer.Exit(code)


def checked(make: Callable[[], T]) -> T:
    """Return what `make` makes of what the person said; where it can't, exit with a line."""
    try:
        return make()
    except _KNOWN as error:
        raise typer.Exit(_explain(error)) from None


def _explain(error: Exception) -> ExitCode:
    """Say what went wrong and return the code; what nobody expected is raised again."""
    match error:
        case ExceptionGroup():
            codes = [_explain(inner) for inner in error.exceptions]
            return codes[0]
        case CommandError():
            output.complain(str(error))
            return error.code
        case FarmApiError():
            _show_problem(error.problem)
            return exits.of_refusal(error)
        case FarmUnreachableError():
            output.complain(str(error))
            return ExitCode.NO_FARM
        case BrokenPipeError():
            return _stop_writing()
        case FarmError() | ValidationError() | UnknownVariableError():
            return _explain_refusal(error)
        case OSError():
            output.complain(_of_the_system(error))
            return ExitCode.FAILED
        case _:
            raise error


def _place_of(error: ValidationError, path: tuple[int | str, ...]) -> str:
    """Return what a person calls the wrong value: a setting is a variable of the environment."""
    parts = [str(part) for part in path]
    if error.title == config.Settings.__name__:
        return f"FARM_{'__'.join(parts).upper()}"
    return ".".join(parts)


def _of_the_system(error: OSError) -> str:
    """Return what the system said, without its numbers, and about which file."""
    said = (error.strerror or str(error)).removeprefix("error while ")
    return said if error.filename is None else f"{error.filename}: {said}"


def _stop_writing() -> ExitCode:
    """Whoever read our data has seen enough; what is left in buffers goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
    return ExitCode.SUCCEEDED


def _explain_refusal(error: FarmError | ValidationError | UnknownVariableError) -> ExitCode:
    """Say which of our own checks failed, place by place."""
    match error:
        case ValidationError():
            for wrong in error.errors():
                output.complain(f"{_place_of(error, wrong['loc'])}: {sentence(wrong)}")
            return ExitCode.USAGE
        case UnknownVariableError():
            output.complain(str(error))
            return ExitCode.USAGE
        case InvalidInputError():
            problems = error.context.get("problems")
            places = problems if isinstance(problems, list) else []
            output.complain("the job file is not accepted" if places else error.detail)
            for p in places:
                _show_place(p["pointer"], p["line"], p["detail"], p["nearest"])
            return ExitCode.USAGE
        case _:
            output.complain(error.detail)
            return ExitCode.USAGE if isinstance(error, TooLargeError) else ExitCode.FAILED


def _show_problem(problem: Problem) -> None:
    # The detail would only say the first place twice.
    output.complain(
        "the farm does not accept this" if problem.errors else f"{problem.title}: {problem.detail}"
    )
    for place in problem.errors or ():
        _show_place(place.pointer, place.line, place.detail, place.suggestion)


def _show_place(pointer: str, line: int | None, detail: str, nearest: str | None) -> None:
    where = ", ".join(filter(None, ["" if line is None else f"line {line}", pointer]))
    hint = f" (did you mean {nearest}?)" if nearest else ""
    output.say(f"  {where}{': ' if where else ''}{detail}{hint}")
