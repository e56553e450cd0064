"""`farm verify`: has a farm that runs prove what its pool promises."""

from collections.abc import Iterator, Sequence

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.protocol.resources import PointView, VerifyEnd
from farm.sdk import FarmClient

_WORDS = {"pass": "pass", "fail": "FAIL", "not_proven": "not proven"}


@farm_command
async def verify(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """Prove the nine points of a useful deployment verification against a running farm.

    It takes less than a minute, works in a namespace of its own with agents of its own, and leaves
    nothing behind.
    """
    points: list[PointView] = []
    end = VerifyEnd(left_behind=(), seconds=0.0)
    async for told in client.verify():
        match told:
            case PointView():
                points.append(told)
                output.say(f"point {told.number}: {_WORDS[told.outcome]}")
            case VerifyEnd():
                end = told
    points.sort(key=lambda point: point.number)
    if as_json:
        said = {"left_behind": end.left_behind, "seconds": end.seconds}
        output.write_json({"points": output.of_models(points), **said})
    else:
        rows = (row for point in points for row in _rows(point))
        output.write_table(("POINT", "OUTCOME", "CLAIM, AND WHAT WAS SEEN"), rows, limit=None)
    for left in end.left_behind:
        output.complain(f"left behind: {left}")
    return code_of(points, end)


def _rows(point: PointView) -> Iterator[tuple[object, ...]]:
    yield point.number, _WORDS[point.outcome], point.claim
    if point.reason is not None:
        yield "", "", f"  because: {point.reason}"
    for line in point.evidence:
        yield "", "", f"  {line}"


def code_of(points: Sequence[PointView], end: VerifyEnd) -> ExitCode:
    """Return the code for what became of the points, and of what was made for them."""
    outcomes = {point.outcome for point in points}
    if "fail" in outcomes or end.left_behind:
        return ExitCode.FAILED
    return ExitCode.SUCCEEDED if outcomes == {"pass"} else ExitCode.NOT_PROVEN
