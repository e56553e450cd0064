"""What the command line ends with, so that scripts can tell outcomes apart."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from farm.sdk.errors import FarmApiError


class ExitCode(IntEnum):
    """The exit codes of `farm`; never renumbered."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    CANCELLED = 3
    TIMED_OUT = 4
    UNCERTAIN = 5
    NO_FARM = 6
    NOT_PROVEN = 7
    INTERRUPTED = 130


MEANINGS: Mapping[ExitCode, str] = MappingProxyType(
    {
        ExitCode.SUCCEEDED: "what was asked for is done; the job succeeded",
        ExitCode.FAILED: "the job failed, or the farm refused",
        ExitCode.USAGE: "a wrong command line, job file or output folder; nothing was started",
        ExitCode.CANCELLED: "the job was cancelled",
        ExitCode.TIMED_OUT: "the job ran out of time",
        ExitCode.UNCERTAIN: "an effect of the job was begun and nobody knows whether it happened",
        ExitCode.NO_FARM: "no farm was found, it did not answer, or it did not accept the token",
        ExitCode.NOT_PROVEN: "`farm verify` refuted nothing, and could not prove every point",
        ExitCode.INTERRUPTED: "Ctrl-C; what had been extracted is kept",
    }
)
"""What each code tells; `docs/cli.md` has the same table."""

_STATES = MappingProxyType(
    {
        "succeeded": ExitCode.SUCCEEDED,
        "failed": ExitCode.FAILED,
        "cancelled": ExitCode.CANCELLED,
        "timed_out": ExitCode.TIMED_OUT,
        "uncertain": ExitCode.UNCERTAIN,
    }
)


def of_state(state: str) -> ExitCode:
    """Return the code for a job that came to rest in `state`."""
    return _STATES[state]


def of_refusal(error: FarmApiError) -> ExitCode:
    """Return the code for a call that the farm refused."""
    match error.status:
        case 401 | 403:
            return ExitCode.NO_FARM
        case 400 | 413 | 415 | 422:
            return ExitCode.USAGE
        case _:
            return ExitCode.FAILED


def table() -> str:
    """Render the codes as a Markdown table."""
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "| ---: | --- |", *rows])
