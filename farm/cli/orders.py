"""What people do to jobs: cancel, run again, delete, pause, take over, decide."""

from enum import StrEnum
from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.show import in_words
from farm.protocol.resources import JobView
from farm.sdk import FarmClient

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who it is; by default the token's name.")
]


class Decision(StrEnum):
    """What an uncertain job can be decided to be."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRY = "retry"


@farm_command
async def cancel(
    client: FarmClient, job_id: JobId, by: By = None, as_json: AsJson = False
) -> ExitCode:
    """Stop a job; one that runs is `cancelling` until it has stopped."""
    return _changed(await client.cancel(job_id, by=by), as_json)


@farm_command
async def retry(
    client: FarmClient, job_id: JobId, by: By = None, as_json: AsJson = False
) -> ExitCode:
    """Run a job again that has failed, timed out or been cancelled."""
    return _changed(await client.retry(job_id, by=by), as_json)


@farm_command
async def delete(client: FarmClient, job_id: JobId, as_json: AsJson = False) -> ExitCode:
    """Delete a job that has ended, with its records, history and files."""
    await client.delete(job_id)
    if as_json:
        output.write_json({"id": job_id, "deleted": True})
    return ExitCode.SUCCEEDED


@farm_command
async def pause(
    client: FarmClient, job_id: JobId, by: By = None, as_json: AsJson = False
) -> ExitCode:
    """Let a job wait before its next step; one in the queue waits there."""
    return _changed((await client.pause(job_id, by=by)).job, as_json)


@farm_command
async def resume(
    client: FarmClient, job_id: JobId, by: By = None, as_json: AsJson = False
) -> ExitCode:
    """Let a paused job go on."""
    return _changed((await client.resume(job_id, by=by)).job, as_json)


@farm_command
async def take_over(
    client: FarmClient, job_id: JobId, by: By = None, as_json: AsJson = False
) -> ExitCode:
    """Let a person work in a job's tab, once its step in progress is over."""
    return _changed((await client.take_over(job_id, by=by)).job, as_json)


@farm_command
async def hand_back(
    client: FarmClient, job_id: JobId, by: By = None, as_json: AsJson = False
) -> ExitCode:
    """Let a job go on where a person has left its tab."""
    return _changed((await client.hand_back(job_id, by=by)).job, as_json)


@farm_command
async def message(
    client: FarmClient,
    job_id: JobId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What they are to read.")],
    by: By = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Show a text to the people at a job's browser."""
    return _changed((await client.message(job_id, text, by=by)).job, as_json)


@farm_command
async def resolve(
    client: FarmClient,
    job_id: JobId,
    decision: Annotated[Decision, typer.Option("--as", help="What it is to be.")],
    by: By = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Decide an uncertain job: it has succeeded, it has failed, or it is to be tried again."""
    return _changed(await client.resolve(job_id, decision.value, by=by), as_json)


def _changed(job: JobView, as_json: bool) -> ExitCode:
    if as_json:
        output.write_json(output.of_models(job))
    else:
        output.write(f"{output.plain(job.id)} {output.plain(in_words(job))}")
    return ExitCode.SUCCEEDED
