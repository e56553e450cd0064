"""`farm pools` and `farm jobs why`: what there is to be served by, and why something waits."""

from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.protocol.resources import PoolView, UnservedView, VerdictView, WhyView
from farm.sdk import FarmClient

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]


@farm_command
async def pools(
    client: FarmClient,
    unserved: Annotated[
        bool, typer.Option("--unserved", help="Only what waits that nobody can take, and why.")
    ] = False,
    as_json: AsJson = False,
) -> ExitCode:
    """List the pools, and what a job would be told there now."""
    if unserved:
        _write_unserved(await client.unserved(), as_json)
    else:
        _write_pools(await client.pools(), as_json)
    return ExitCode.SUCCEEDED


def _write_pools(found: tuple[PoolView, ...], as_json: bool) -> None:
    output.write_models(
        found,
        ("QUEUE", "AGENTS", "DRAINING", "SLOTS", "FREE", "QUEUED", "VERDICT", "NODES", "WORK"),
        (
            (
                pool.task_queue,
                pool.agents,
                pool.draining,
                f"{pool.slots_used}/{pool.slots}",
                pool.slots_free,
                pool.queued,
                pool.verdict and pool.verdict.verdict,
                pool.nodes or None,
                pool.activity_types or None,
            )
            for pool in found
        ),
        as_json=as_json,
    )


def _write_unserved(found: tuple[UnservedView, ...], as_json: bool) -> None:
    output.write_models(
        found,
        ("QUEUE", "NODE", "JOBS", "OLDEST", "AGE", "VERDICT", "REASON", "DETAIL", "REMEDY"),
        (
            (
                one.address and one.address.task_queue,
                one.address and one.address.node,
                one.count,
                one.jobs[0].id if one.jobs else None,
                f"{one.age_s:.0f} s",
                one.verdict,
                one.reason,
                one.detail,
                one.remedy,
            )
            for one in found
        ),
        whole={"OLDEST"},
        as_json=as_json,
    )


@farm_command
async def why(client: FarmClient, job_id: JobId, as_json: AsJson = False) -> ExitCode:
    """Say why a job has not begun: its place, what is the matter, and each agent's reason."""
    found = await client.why(job_id)
    if as_json:
        output.write_json(output.of_models(found))
    else:
        _write_why(found)
    return ExitCode.SUCCEEDED


def _write_why(why: WhyView) -> None:
    verdict: VerdictView | None = why.verdict
    within_s = why.begins_within_s
    lines = [
        ("job", why.id),
        ("state", why.state),
        ("why", why.detail),
        ("position", why.position),
        ("verdict", verdict and verdict.verdict),
        ("reason", verdict and verdict.reason),
        ("remedy", verdict and verdict.remedy),
        ("begins", None if within_s is None else f"within about {within_s:.0f} s"),
    ]
    for name, value in lines:
        if value is not None:
            output.write(f"{name + ':':10} {output.plain(value)}")
    if why.agents:
        output.write_table(
            ("AGENT", "REASON", "DETAIL"),
            ((agent.client_id, agent.reason, agent.detail) for agent in why.agents),
        )
