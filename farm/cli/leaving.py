"""`farm drain`: agents that are to leave."""

from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.protocol.resources import LeftView
from farm.sdk import FarmClient


@farm_command
async def drain(
    client: FarmClient,
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="The agent; else say which ones.")
    ] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="All agents.")] = False,
    deployment: Annotated[
        str | None, typer.Option("--deployment", help="Those that were rolled out as this.")
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Those of this node.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Those of this task queue.")] = None,
    deadline: Annotated[
        float | None,
        typer.Option("--deadline", metavar="SECONDS", help="Stop what still runs after so long."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when they have left.")] = False,
    as_json: AsJson = False,
) -> ExitCode:
    """Let agents finish what they run and leave; they are given nothing new from now on."""
    several = all_ or (deployment, node, queue) != (None, None, None)
    if several == (agent is not None):
        raise CommandError("name one agent, or say --all or which ones", ExitCode.USAGE)
    before = {one.client_id: one.instance for one in await client.agents()}
    if agent is not None:
        left: tuple[LeftView, ...] = (await client.drain_agent(agent, deadline_s=deadline),)
    else:
        left = await client.drain_agents(
            all=all_, deployment=deployment, node=node, queue=queue, deadline_s=deadline
        )
    if not left:
        output.say("No agent is like that, so none was told to leave.")
    if wait:
        await _until_gone(client, {one.client_id: before.get(one.client_id, "") for one in left})
    _write(left, as_json=as_json)
    return ExitCode.SUCCEEDED


async def _until_gone(client: FarmClient, leaving: dict[str, str]) -> None:
    """Wait until none of these lives of agents is there."""
    if not leaving:
        return
    # The first that is told is what there is; whatever changes it later is told after it.
    async for _ in client.cluster_events():
        there = {one.client_id: one.instance for one in await client.agents() if one.present}
        if not any(there.get(name) == instance for name, instance in leaving.items()):
            return


def _write(left: tuple[LeftView, ...], *, as_json: bool) -> None:
    output.write_models(
        left, ("AGENT", "OUTCOME"), ((one.client_id, one.outcome) for one in left), as_json=as_json
    )
