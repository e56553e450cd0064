import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.cli.exits import ExitCode
from farm.clock import system_clock
from farm.core.job_states import AttemptState, JobState
from farm.core.model import ClientId, Instant
from farm.core.pools import Exclusion
from farm.protocol import messages as wire
from farm.stores.records import Evidence, Expected, RecordingEnd
from tests.api.stack import AGENT, Stack, running
from tests.api.test_delivery import send
from tests.api.test_pool import connect
from tests.cli.uploading import upload

ROOT = Path(__file__).parents[2]
EVIL = "[red]\x1b[31mhi\u202e"


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as stack:
        yield stack


@dataclass(frozen=True)
class Ended:
    exit_code: int | None
    stdout: str
    stderr: str


async def farm(stack: Stack, *arguments: str, token: str | None = None) -> Ended:
    """Run the command as a process: logging is set up once a process, and the farm is in ours."""
    command = ("-m", "farm.cli", *arguments, "--url", stack.url, "--token", token or stack.admin)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=ROOT, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()
    return Ended(process.returncode, out.decode(), err.decode())


async def finished(stack: Stack, *items: dict[str, object]) -> str:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    if items:
        await stack.add_items(attempt, *items)
    await stack.finish(attempt)
    return job_id


async def test_submitting_writes_the_id_and_params_reach_the_job(
    stack: Stack, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("{name: n, params: {q: a}, steps: [{goto: 'https://x.example/${params.q}'}]}")
    result = await farm(stack, "jobs", "submit", str(file), "--param", "q=b")
    assert result.exit_code == ExitCode.SUCCEEDED, result.stderr
    shown = await farm(stack, "jobs", "show", result.stdout.strip(), "--json")
    assert json.loads(shown.stdout)["state"] == "queued"


async def test_a_refused_job_file_names_the_place_and_the_nearest_word(
    stack: Stack, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: n\nsteps:\n  - gotoo: https://x.example/\n")
    result = await farm(stack, "jobs", "submit", str(file))
    assert result.exit_code == ExitCode.USAGE
    assert "/steps/0" in result.stderr
    assert "goto" in result.stderr


async def test_jobs_are_listed_and_counted_page_by_page(stack: Stack) -> None:
    submitted = [await stack.submit() for _ in range(3)]
    everything = await farm(stack, "jobs", "list", "--json")
    assert [job["id"] for job in json.loads(everything.stdout)] == submitted[::-1]
    two = await farm(stack, "jobs", "list", "--json", "--limit", "2")
    assert len(json.loads(two.stdout)) == 2
    table = await farm(stack, "jobs", "list", "--state", "queued")
    assert all(job_id in table.stdout for job_id in submitted)


async def test_an_unknown_job_is_a_failure_said_on_stderr(stack: Stack) -> None:
    result = await farm(stack, "jobs", "show", "nothing")
    assert result.exit_code == ExitCode.FAILED
    assert result.stdout == ""
    assert "Not found" in result.stderr or "not" in result.stderr.lower()


async def test_a_wrong_token_has_its_own_code(stack: Stack) -> None:
    result = await farm(stack, "agents", token="wrong")
    assert result.exit_code == ExitCode.NO_FARM


async def test_records_come_as_a_table_as_json_lines_and_as_csv(
    stack: Stack, tmp_path: Path
) -> None:
    job_id = await finished(stack, {"title": EVIL, "n": 1}, {"title": "two", "n": 2})
    table = await farm(stack, "jobs", "items", job_id)
    assert "[red][31mhi" in table.stdout
    assert "\x1b" not in table.stdout
    lines = await farm(stack, "jobs", "items", job_id, "--json")
    assert [json.loads(line) for line in lines.stdout.splitlines()] == [
        {"title": EVIL, "n": 1},
        {"title": "two", "n": 2},
    ]
    assert "\x1b" not in lines.stdout
    path = tmp_path / "items.csv"
    await farm(stack, "jobs", "items", job_id, "-o", str(path))
    assert path.read_text().splitlines()[0].lstrip("\ufeff").startswith("title")
    csv = await farm(stack, "jobs", "items", job_id, "--csv")
    assert csv.stdout.splitlines()[0].lstrip("\ufeff").startswith("title")


@pytest.mark.parametrize(
    ("attempt_state", "state", "code"),
    [
        (AttemptState.SUCCEEDED, JobState.SUCCEEDED, ExitCode.SUCCEEDED),
        (AttemptState.FAILED, JobState.FAILED, ExitCode.FAILED),
        (AttemptState.CANCELLED, JobState.CANCELLED, ExitCode.CANCELLED),
        (AttemptState.TIMED_OUT, JobState.TIMED_OUT, ExitCode.TIMED_OUT),
        (AttemptState.LOST, JobState.UNCERTAIN, ExitCode.UNCERTAIN),
    ],
)
async def test_watching_a_job_ends_with_the_code_of_its_state(
    stack: Stack, attempt_state: AttemptState, state: JobState, code: ExitCode
) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(farm(stack, "jobs", "watch", job_id))
        await stack.add_items(attempt, {"n": 1})
        await stack.finish(attempt, attempt_state=attempt_state, job_state=state)
    result = watching.result()
    assert result.exit_code == code, result.stderr
    assert result.stdout.strip() == job_id
    assert state.replace("_", " ") in result.stderr


async def test_a_queued_job_is_cancelled(stack: Stack) -> None:
    job_id = await stack.submit()
    result = await farm(stack, "jobs", "cancel", job_id)
    assert result.stdout.strip() == f"{job_id} cancelled"


async def test_a_job_is_paused_and_resumed_and_who_did_it_is_shown(stack: Stack) -> None:
    job_id = await stack.submit()
    result = await farm(stack, "jobs", "pause", job_id, "--by", "anna")
    assert result.stdout.strip() == f"{job_id} queued, paused by anna"
    listed = await farm(stack, "jobs", "list")
    assert "queued, paused" in listed.stdout
    shown = await farm(stack, "jobs", "show", job_id)
    assert "queued, paused by anna" in shown.stdout
    result = await farm(stack, "jobs", "resume", job_id)
    assert result.stdout.strip() == f"{job_id} queued"


async def test_what_can_not_be_done_to_a_job_is_said(stack: Stack) -> None:
    job_id = await stack.submit()
    await stack.start(job_id)
    for what in ("pause", "resume", "take-over", "hand-back"):
        result = await farm(stack, "jobs", what, job_id)
        assert result.exit_code == ExitCode.FAILED
        assert "stale target: no attempt of the job is running" in result.stderr
    result = await farm(stack, "jobs", "message", job_id, "hello")
    assert result.exit_code == ExitCode.FAILED


async def test_an_uncertain_job_is_resolved_and_a_certain_one_is_not(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.finish(attempt, attempt_state=AttemptState.LOST, job_state=JobState.UNCERTAIN)
    result = await farm(stack, "jobs", "resolve", job_id, "--as", "succeeded")
    assert result.stdout.strip() == f"{job_id} succeeded"
    again = await farm(stack, "jobs", "resolve", job_id, "--as", "failed")
    assert again.exit_code == ExitCode.FAILED


async def test_a_job_that_was_cancelled_is_run_again_and_one_that_succeeded_is_not(
    stack: Stack,
) -> None:
    job_id = await stack.submit()
    await farm(stack, "jobs", "cancel", job_id)
    result = await farm(stack, "jobs", "retry", job_id, "--by", "anna")
    assert result.stdout.strip() == f"{job_id} queued"
    await stack.finish(await stack.start(job_id))
    again = await farm(stack, "jobs", "retry", job_id)
    assert again.exit_code == ExitCode.FAILED
    assert "succeeded" in again.stderr


async def test_a_job_that_has_ended_is_deleted(stack: Stack) -> None:
    job_id = await stack.submit()
    refused = await farm(stack, "jobs", "delete", job_id)
    assert (refused.exit_code, "queued" in refused.stderr) == (ExitCode.FAILED, True)
    await farm(stack, "jobs", "cancel", job_id)
    result = await farm(stack, "jobs", "delete", job_id, "--json")
    assert json.loads(result.stdout) == {"id": job_id, "deleted": True}
    assert json.loads((await farm(stack, "jobs", "list", "--json")).stdout) == []


async def test_a_recording_that_is_not_there_is_listed_with_the_reason_and_not_downloaded(
    stack: Stack, tmp_path: Path
) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(
        job_id, recordings=(Expected("trace", "trace.zip", "application/zip"),)
    )
    await upload(stack, attempt, "page.html", b"<p>hello")
    assert "pending" in (await farm(stack, "jobs", "artifacts", job_id)).stdout
    end = RecordingEnd(recording="trace", state="failed", detail="the disk is full")
    said = Evidence(seq=1, event_type="recorded", at=Instant(1.0), recording_end=end)
    await stack.ledger.record(attempt.attempt_id, attempt.token, [said], now=Instant(1.0))
    every = await farm(stack, "jobs", "artifacts", job_id, "-o", str(tmp_path / "f"))
    assert every.exit_code == ExitCode.SUCCEEDED
    assert "trace.zip is failed: the disk is full" in every.stderr
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["page.html"]
    one = await farm(stack, "jobs", "artifacts", job_id, "trace.zip", "-o", str(tmp_path / "g"))
    assert one.exit_code == ExitCode.FAILED
    assert "trace.zip is failed: the disk is full" in one.stderr


async def test_a_file_that_can_t_be_read_is_no_failure_of_the_connection(stack: Stack) -> None:
    result = await farm(stack, "files", "put", "nowhere.csv")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == "error: nowhere.csv can't be read: No such file or directory\n"


async def test_files_are_listed_and_downloaded(stack: Stack, tmp_path: Path) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await upload(stack, attempt, "page.html", b"<p>hello")
    listed = await farm(stack, "jobs", "artifacts", job_id)
    assert "page.html" in listed.stdout
    result = await farm(stack, "jobs", "artifacts", job_id, "page.html", "-o", str(tmp_path / "f"))
    assert result.exit_code == ExitCode.SUCCEEDED, result.stderr
    assert (tmp_path / "f" / "page.html").read_bytes() == b"<p>hello"
    missing = await farm(stack, "jobs", "artifacts", job_id, "other.html")
    assert missing.exit_code == ExitCode.FAILED


async def test_a_token_is_written_to_stdout_alone(stack: Stack) -> None:
    result = await farm(stack, "token", "create", "--scope", "agent", "--name", "one")
    assert len(result.stdout.split()) == 1
    assert result.stderr == ""


@pytest.mark.parametrize("what", ["agents", "workers", "windows"])
async def test_the_fleet_is_listed_even_where_there_is_none(stack: Stack, what: str) -> None:
    assert json.loads((await farm(stack, what, "--json")).stdout) == []
    assert (await farm(stack, what)).exit_code == ExitCode.SUCCEEDED


async def test_why_an_agent_drains_is_shown(stack: Stack) -> None:
    await connect(stack)
    await stack.registry.set_draining(ClientId(AGENT), because="recycling: browser_uses: 2000")
    assert "draining (recycling: browser_uses: 2000)" in (await farm(stack, "agents")).stdout
    (agent,) = json.loads((await farm(stack, "agents", "--json")).stdout)
    assert agent["draining_because"] == "recycling: browser_uses: 2000"


async def test_an_agent_that_does_not_answer_is_shown_as_such(stack: Stack) -> None:
    await connect(stack)
    lost = {ClientId(AGENT): Exclusion.REACHABILITY_LOST}
    await stack.registry.publish_exclusions("one", lost, now=system_clock(), lease_s=60)
    assert "reachability lost" in (await farm(stack, "agents")).stdout
    (agent,) = json.loads((await farm(stack, "agents", "--json")).stdout)
    assert (agent["present"], agent["excluded"]) == (True, "reachability_lost")


async def test_what_is_known_of_a_command_and_of_delivery_is_shown(stack: Stack) -> None:
    await connect(stack)
    await send(stack, "c")
    result = wire.Result(command_id="c", outcome="succeeded", value={"n": 1})
    await stack.node.answered(AGENT, result)
    shown = await farm(stack, "command", "c")
    assert shown.exit_code == ExitCode.SUCCEEDED, shown.stderr
    said = [line.split(":", 1) for line in shown.stdout.splitlines()]
    assert {name: value.strip() for name, value in said} == {
        "kind": "probe",
        "agent": AGENT,
        "state": "result",
        "sent": "yes",
        "acknowledged": "yes",
        "result kept": "yes",
        "effect can be established": "unknown",
        "repeat is safe": "unknown",
    }
    assert json.loads((await farm(stack, "command", "c", "--json")).stdout)["command_id"] == "c"
    assert (await farm(stack, "command", "d")).exit_code == ExitCode.FAILED
    counted = json.loads((await farm(stack, "delivery", "--json")).stdout)
    assert [one["client_id"] for one in counted["items"]] == [AGENT]
    assert (await farm(stack, "delivery")).stdout.split()[-1] == "-"


async def test_revoking_says_which_token_opens_nothing_and_refuses_a_wrong_id(stack: Stack) -> None:
    made = json.loads((await farm(stack, "token", "create", "--scope", "agent", "--json")).stdout)
    revoked = await farm(stack, "token", "revoke", made["id"], "--json")
    assert json.loads(revoked.stdout) == {"id": made["id"], "revoked": True}
    wrong = await farm(stack, "token", "revoke", "tok_wrong")
    assert wrong.exit_code == ExitCode.FAILED
    assert "no token tok_wrong" in wrong.stderr


async def test_notices_are_shown_and_said_at_the_end_once_a_kind(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.note(attempt, 1, "notice", code="popup_closed", detail=f"a {EVIL}", index=0)
    await stack.note(attempt, 2, "notice", code="popup_closed", detail="b", index=0)
    await stack.note(attempt, 3, "notice", code="text_cut", detail=f"c {EVIL}", index=1)
    await stack.finish(attempt)
    shown = await farm(stack, "jobs", "show", job_id)
    assert "NOTICE" in shown.stdout
    assert "popup_closed" in shown.stdout
    watched = await farm(stack, "jobs", "watch", job_id)
    warnings = [line.strip() for line in watched.stderr.splitlines() if "warning" in line]
    assert len(warnings) == 2
    assert warnings[0].startswith("warning: text_cut: c [red]")
    assert warnings[1] == "warning: popup_closed (2 times): b"
    assert "\x1b" not in shown.stdout + watched.stderr


async def test_one_record_is_not_called_records(stack: Stack, tmp_path: Path) -> None:
    job_id = await finished(stack, {"a": 1})
    saved = await farm(stack, "jobs", "items", job_id, "-o", str(tmp_path / "items.jsonl"))
    assert saved.stderr.strip().endswith(": 1 record")
