from pathlib import Path

from farm.cli.exits import ExitCode
from tests.e2e.processes import ended, process

JOB = "{name: job, steps: [{goto: 'https://shop.example/'}]}"


async def test_a_browser_that_is_not_there_is_named_once_and_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    # Where a farm keeps its files is nothing to a run, which keeps its own and deletes them.
    environment = {
        "AGENT_BROWSER": "/nonexistent/chromium",
        "FARM_ARTIFACTS__URL": "s3://none",
        "AWS_ENDPOINT_URL": "https://127.0.0.1:1",
    }
    async with process("farm.cli", "run", "job.yaml", cwd=tmp_path, env=environment) as run:
        code, said, talk = await ended(run, 60)
    assert code == ExitCode.FAILED
    assert said == ""
    assert talk.count("/nonexistent/chromium") == 1
    assert "s3://none" not in talk
