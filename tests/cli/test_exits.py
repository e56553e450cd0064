import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from farm.cli import exits
from farm.cli.exits import ExitCode
from farm.core.job_states import AT_REST
from farm.protocol.problems import Problem
from farm.protocol.resources import JobState
from farm.sdk import FarmApiError

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_documented_table_is_the_one_in_the_code() -> None:
    assert exits.table() in DOCS.read_text()


_INTERRUPTED_WHILE_LOADING = """
import sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "farm.cli.jobs":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from farm.__main__ import main
main()
"""


def test_ctrl_c_before_the_command_has_begun_is_one_like_any_other() -> None:
    command = (sys.executable, "-c", _INTERRUPTED_WHILE_LOADING)
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (ExitCode.INTERRUPTED, b"")


def test_every_code_has_a_meaning() -> None:
    assert set(exits.MEANINGS) == set(ExitCode)


def test_every_state_in_which_a_job_rests_has_a_code_of_its_own() -> None:
    resting = [state for state in get_args(JobState) if state in AT_REST]
    assert len({exits.of_state(state) for state in resting}) == len(AT_REST)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ExitCode.NO_FARM),
        (403, ExitCode.NO_FARM),
        (404, ExitCode.FAILED),
        (409, ExitCode.FAILED),
        (413, ExitCode.USAGE),
        (422, ExitCode.USAGE),
        (500, ExitCode.FAILED),
    ],
)
def test_what_the_farm_refuses_has_the_code_of_its_reason(status: int, code: ExitCode) -> None:
    problem = Problem(type="/problems/x", title="X", status=status, detail="x")
    assert exits.of_refusal(FarmApiError(status, problem)) is code
