"""`farm agents`, `farm workers` and `farm windows`: what there is to work with."""

from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.protocol.resources import AgentView, AssignmentView, BoundsView
from farm.sdk import FarmClient


@farm_command
async def agents(
    client: FarmClient,
    *,
    deployment: Annotated[
        str | None, typer.Option("--deployment", help="Only those that were rolled out as this.")
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """List the agents."""
    found = await client.agents()
    if deployment is not None:
        found = tuple(agent for agent in found if agent.deployment == deployment)
    output.write_models(
        found,
        (
            "AGENT",
            "TYPE",
            "QUEUE",
            "NODE",
            "STATE",
            "SLOTS",
            "WINDOWS",
            "TABS/FLOWS",
            "RUNS",
            "METADATA",
            "SEEN",
        ),
        (
            (
                agent.client_id,
                agent.client_type,
                agent.task_queue,
                agent.node,
                _state(agent),
                f"{agent.used_slots}/{agent.capacity.max_concurrency or '-'}",
                _windows(agent.windows, agent.prepared),
                agent.contexts,
                agent.browser,
                agent.metadata or None,
                f"{agent.seen_at:%Y-%m-%d %H:%M:%S}",
            )
            for agent in found
        ),
        as_json=as_json,
    )
    return ExitCode.SUCCEEDED


def _state(agent: AgentView) -> str:
    if not agent.present:
        return "absent"
    if agent.excluded is not None:
        return agent.excluded.replace("_", " ")
    if not agent.draining:
        return "present"
    asked = None if agent.drain is None else f"asked by {agent.drain.by}"
    because = agent.draining_because or asked
    return f"draining ({because})" if because else "draining"


def _windows(number: int, prepared: int) -> str:
    return f"{number} ({prepared} prepared)" if prepared else str(number)


@farm_command
async def workers(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """List the tabs work can run in, and what they are lent to."""
    found = await client.workers()
    output.write_models(
        found,
        (
            "WORKER",
            "AGENT",
            "QUEUE",
            "NODE",
            "OWNER",
            "STATE",
            "CLEAN",
            "OPENER",
            "JOB",
            "STEP",
            "LIVE",
        ),
        (
            (
                worker.label,
                worker.client_id,
                worker.task_queue,
                worker.node,
                worker.owner,
                worker.state,
                worker.clean,
                worker.opener,
                *_lent_to(worker.assignment),
                worker.live if worker.assignment else None,
            )
            for worker in found
        ),
        whole={"LIVE"},
        as_json=as_json,
    )
    return ExitCode.SUCCEEDED


def _lent_to(assignment: AssignmentView | None) -> tuple[str | None, str | None]:
    if assignment is None:
        return None, None
    return (
        assignment.job or assignment.task_id,
        assignment.progress.step if assignment.progress else None,
    )


@farm_command
async def windows(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """List the browser windows."""
    found = await client.windows()
    output.write_models(
        found,
        ("WINDOW", "AGENT", "IDENTITY", "OWNER", "TABS", "PREPARED", "BOUNDS"),
        (
            (
                w.window_id,
                w.client_id,
                None if w.owner == "user" else w.identity or "anonymous",
                w.owner,
                len(w.contexts),
                w.prepared,
                None if w.bounds is None else _geometry(w.bounds),
            )
            for w in found
        ),
        as_json=as_json,
    )
    return ExitCode.SUCCEEDED


def _geometry(bounds: BoundsView) -> str:
    """Return bounds as X says them, such as `1280x800+10+27`."""
    return f"{bounds.width}x{bounds.height}{bounds.left:+}{bounds.top:+}"
