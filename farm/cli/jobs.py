"""`farm jobs …`: what is done with the jobs of a farm that runs."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli import exits, job_source, orders, output, records, running
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.folder import fetch, missing_because
from farm.cli.follow import conclude, display, follow
from farm.cli.job_source import Params
from farm.cli.orders import JobId
from farm.cli.show import in_words, show_job
from farm.protocol.resources import JobDetail, JobView
from farm.sdk import FarmClient

app = typer.Typer(no_args_is_help=True, help="Submit jobs, watch them, and get what they found.")


@app.command()
@farm_command
async def submit(
    client: FarmClient,
    file: job_source.File,
    params: Params = None,
    watch: Annotated[bool, typer.Option("--watch", help="Wait until it is at rest.")] = False,
    key: Annotated[
        str | None,
        typer.Option("--idempotency-key", help="Submitting again under one key is one job."),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Submit a job file; with --watch the exit code is the job's."""
    source = job_source.read(file)
    accepted = await client.submit(
        source.text,
        content_type=source.content_type,
        params=job_source.parse_params(params),
        idempotency_key=key,
    )
    if accepted.duplicate:
        output.say(f"{accepted.id} was there already, under the same key")
    if watch:
        return await _watch(client, accepted.id, as_json)
    if as_json:
        output.write_json(output.of_models(accepted))
    else:
        output.write(output.plain(accepted.id))
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def watch(client: FarmClient, job_id: JobId, as_json: AsJson = False) -> ExitCode:
    """Wait until a job is at rest; the exit code is the job's. Ctrl-C leaves the job alone."""
    return await _watch(client, job_id, as_json)


async def _watch(client: FarmClient, job_id: str, as_json: bool) -> ExitCode:
    with display() as shown:

        async def seen(job: JobDetail) -> None:
            shown(job)

        job = await follow(client, job_id, seen)
    conclude(job)
    if as_json:
        output.write_json(output.of_models(job))
    else:
        output.write(output.plain(job.id))
    return exits.of_state(job.state)


@app.command("list")
@farm_command
async def list_jobs(
    client: FarmClient,
    state: Annotated[str | None, typer.Option("--state", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 50,
    as_json: AsJson = False,
) -> ExitCode:
    """List jobs, newest first."""
    found: list[JobView] = []
    cursor: str | None = None
    while len(found) < limit:
        page = await client.jobs(state, limit=min(limit - len(found), 100), cursor=cursor)
        found.extend(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    output.write_models(
        found,
        ("ID", "NAME", "STATE", "ATTEMPTS", "ITEMS", "FILES", "CREATED", "NOTE"),
        (
            (
                job.id,
                output.plain(job.name, limit=60),
                in_words(job, short=True),
                f"{job.attempts}/{job.max_attempts}",
                job.item_count,
                job.artifact_count,
                f"{job.created_at:%Y-%m-%d %H:%M:%S}",
                _note(job),
            )
            for job in found
        ),
        whole={"ID", "STATE"},
        as_json=as_json,
    )
    return ExitCode.SUCCEEDED


def _note(job: JobView) -> str:
    if job.failure is not None:
        return str(job.failure.reason)
    if job.waiting is not None:
        return job.waiting.reason
    return ""


@app.command()
@farm_command
async def show(client: FarmClient, job_id: JobId, as_json: AsJson = False) -> ExitCode:
    """Show one job with its attempts and effects."""
    job = await client.job(job_id)
    if as_json:
        output.write_json(output.of_models(job))
    else:
        show_job(job)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def items(
    client: FarmClient,
    job_id: JobId,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines.")] = False,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file; .csv means CSV.")
    ] = None,
    attempt: Annotated[
        str | None, typer.Option("--attempt", metavar="N|all", help="Those of one attempt, or all.")
    ] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only this data set.")] = None,
) -> ExitCode:
    """Get a job's records: a table for people, JSON lines or CSV for programs."""
    if as_csv and as_json:
        raise running.CommandError("--csv and --json exclude each other", ExitCode.USAGE)
    query = records.Query(job_id=job_id, attempt=records.attempt(attempt), dataset=dataset)
    if to is not None:
        await records.save(
            client, query, to, as_csv=as_csv or (to.suffix == ".csv" and not as_json)
        )
    elif as_csv:
        await records.write_csv(client, query)
    elif as_json:
        await records.write_lines(client, query)
    else:
        await records.write_table(client, query)
    return ExitCode.SUCCEEDED


@app.command()
@farm_command
async def artifacts(
    client: FarmClient,
    job_id: JobId,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this file.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="Download into this folder.")
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """List a job's files, or download them with -o."""
    found = [a for a in await client.artifacts(job_id) if name in (None, a.name)]
    if name is not None and not found:
        raise running.CommandError(f"the job has no file {name}")
    if folder is not None:
        for artifact in found:
            if artifact.state != "ready":
                if name is not None:
                    raise running.CommandError(missing_because(artifact))
                output.say(missing_because(artifact))
                continue
            path = await fetch(client, job_id, artifact.name, folder)
            output.say(f"{path} ({output.counted(artifact.size, 'byte')})")
    if as_json:
        output.write_json(output.of_models(found))
    elif folder is None:
        output.write_table(
            ("NAME", "STATE", "SIZE", "TYPE", "SHA-256", "DETAIL"),
            ((a.name, a.state, a.size, a.media_type, a.sha256, a.detail) for a in found),
        )
    return ExitCode.SUCCEEDED


for order in (
    orders.cancel,
    orders.retry,
    orders.delete,
    orders.pause,
    orders.resume,
    orders.take_over,
    orders.hand_back,
    orders.message,
    orders.resolve,
):
    app.command()(order)
