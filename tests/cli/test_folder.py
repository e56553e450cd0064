import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.cli import folder
from farm.cli.exits import ExitCode
from farm.cli.folder import ResultFolder
from farm.cli.follow import follow
from farm.cli.running import CommandError
from farm.core.job_states import AttemptState, JobState
from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient
from tests.api.stack import Stack, running
from tests.cli.uploading import upload
from tests.patience import PATIENCE_S


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    (tmp_path / "farm").mkdir()
    async with running(tmp_path / "farm") as stack:
        yield stack


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[FarmClient]:
    async with FarmClient(stack.url, stack.admin) as client:
        yield client


def lines(out: Path) -> list[object]:
    return [json.loads(line) for line in (out / "items.jsonl").read_text().splitlines()]


async def test_records_and_files_are_there_while_the_job_still_runs(
    stack: Stack, client: FarmClient, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kept = ResultFolder(out, client)
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.add_items(attempt, {"n": 1}, {"n": 2})
    await upload(stack, attempt, "page.png", b"png")
    await kept.update(await client.job(job_id))
    assert lines(out) == [{"n": 1}, {"n": 2}]
    assert (out / "artifacts" / "page.png").read_bytes() == b"png"
    assert json.loads((out / "job.json").read_text())["state"] == "running"


async def test_a_failed_job_leaves_everything_it_had_and_why_it_failed(
    stack: Stack, client: FarmClient, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.add_items(attempt, {"n": 1})
    failure = {"reason": "page_crashed", "detail": "gone", "step_index": 0, "step": "goto"}
    await stack.finish(
        attempt, attempt_state=AttemptState.FAILED, job_state=JobState.FAILED, failure=failure
    )
    await ResultFolder(out, client).complete(await client.job(job_id))
    assert lines(out) == [{"n": 1}]
    assert (out / "items.csv").read_text().lstrip("\ufeff").splitlines() == ["n", "1"]
    job = json.loads((out / "job.json").read_text())
    assert job["failure"]["reason"] == "page_crashed"
    assert len(job["history"]) == 1
    assert sorted(path.name for path in out.iterdir()) == ["items.csv", "items.jsonl", "job.json"]


async def test_following_sees_the_job_from_now_to_its_end(stack: Stack, client: FarmClient) -> None:
    job_id = await stack.submit()
    states: list[str] = []
    running_now = asyncio.Event()

    async def seen(job: JobDetail) -> None:
        states.append(job.state)
        if job.state == "running":
            running_now.set()

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        following = group.create_task(follow(client, job_id, seen))
        attempt = await stack.start(job_id)
        await running_now.wait()
        await stack.finish(attempt)
    assert following.result().state == "succeeded"
    assert states[-1] == "succeeded"


def test_force_replaces_what_an_earlier_run_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    for name in ("job.json", "items.jsonl", "notes.txt", "artifacts/old.png"):
        (tmp_path / name).write_text("x")
    with pytest.raises(CommandError) as refused:
        folder.check(tmp_path, force=False)
    assert refused.value.code is ExitCode.USAGE
    folder.check(tmp_path, force=True)
    folder.prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_force_takes_no_stranger_s_artifacts_for_ours(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "mine.png").write_text("x")
    folder.check(tmp_path, force=True)
    folder.prepare(tmp_path)
    assert (tmp_path / "artifacts" / "mine.png").exists()


def test_a_folder_that_can_t_be_made_is_a_wrong_command_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CommandError) as refused:
        folder.check(tmp_path / "file" / "out", force=False)
    assert refused.value.code is ExitCode.USAGE
    assert "file/out" in str(refused.value)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "..", ".", "", "x\0y"])
async def test_a_name_that_leads_out_of_the_folder_is_not_written(
    client: FarmClient, tmp_path: Path, name: str
) -> None:
    with pytest.raises(CommandError):
        await folder.fetch(client, "job", name, tmp_path)
