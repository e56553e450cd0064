"""`farm verify` against a farm that runs."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.cli.exits import ExitCode
from farm.cli.verify import code_of
from farm.protocol.resources import PointOutcome, PointView, VerifyEnd
from tests.e2e.processes import ended, process
from tests.verify.broken import LendsTwice
from tests.verify.farm import Served, serving
from tests.verify.test_verify import ENDLESS, only


async def verify(farm: Served, *options: str, token: str = "") -> tuple[int | None, str, str]:
    """Run the command in a process of its own; return its code, stdout and stderr."""
    command = ("farm.cli", "verify", "--url", farm.url, "--token", token or farm.admin, *options)
    async with process(*command, cwd=Path.cwd()) as command_line:
        return await ended(command_line, 60)


async def test_a_farm_that_keeps_its_promises_ends_with_0_and_shows_what_was_seen(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as farm:
        code, out, talk = await verify(farm)
    assert code == ExitCode.SUCCEEDED, talk
    lines = out.splitlines()
    assert [line.split()[:2] for line in lines if line[:1].isdigit()] == [
        [str(number), "pass"] for number in range(1, 10)
    ]
    assert any(
        line.rstrip().endswith(
            "9 creations of another were refused, not_provisioning_owner;"
            " nothing was reserved, nothing sent"
        )
        for line in lines
    )
    assert "point 1: pass" in talk


async def test_a_refuted_point_ends_with_1_and_says_why(tmp_path: Path) -> None:
    points = (*only(2), *only(3), *ENDLESS)
    async with serving(tmp_path, registry=LendsTwice(), points=points, proof_s=2) as farm:
        code, out, _ = await verify(farm, "--json")
    assert code == ExitCode.FAILED
    told = json.loads(out)
    assert [(p["number"], p["outcome"]) for p in told["points"]] == [
        (1, "not_proven"),
        (2, "pass"),
        (3, "fail"),
    ]
    assert "callers at once hold" in told["points"][2]["reason"]
    assert told["left_behind"] == []


async def test_what_could_not_be_proven_ends_with_a_code_of_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path, points=(*only(3), *ENDLESS), proof_s=2) as farm:
        code, out, _ = await verify(farm)
    assert code == ExitCode.NOT_PROVEN
    assert "not proven" in out
    assert "because: it was not settled within 2 s" in out


async def test_an_agents_token_does_not_verify(tmp_path: Path) -> None:
    async with serving(tmp_path) as farm:
        code, out, _ = await verify(farm, token=farm.agent)
        assert await farm.left() == []
    assert (code, out) == (ExitCode.NO_FARM, "")


def told(outcome: PointOutcome) -> PointView:
    return PointView(number=1, claim="c", outcome=outcome, evidence=(), seconds=0.0)


@pytest.mark.parametrize(
    ("outcomes", "left", "code"),
    [
        (("pass", "pass"), (), ExitCode.SUCCEEDED),
        (("pass", "not_proven"), (), ExitCode.NOT_PROVEN),
        (("not_proven", "fail"), (), ExitCode.FAILED),
        (("pass",), ("job 1, running",), ExitCode.FAILED),
        ((), (), ExitCode.NOT_PROVEN),
    ],
)
def test_the_code_is_that_of_the_worst(
    outcomes: Sequence[PointOutcome], left: tuple[str, ...], code: ExitCode
) -> None:
    end = VerifyEnd(left_behind=left, seconds=1.0)
    assert code_of([told(outcome) for outcome in outcomes], end) is code
