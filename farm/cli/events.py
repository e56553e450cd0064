"""`farm events`: what happens in the farm, as it happens."""

from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.protocol.resources import ClusterEventView, ClusterGap, ClusterSnapshot
from farm.sdk import FarmClient
from farm.sdk.fleet import Told


@farm_command
async def events(
    client: FarmClient,
    *,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Go on, until interrupted.")
    ] = True,
    after: Annotated[
        int | None, typer.Option("--after", help="Go on after the event of this number.")
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Follow what happens in the farm: who comes and goes, and what waits for whom."""
    async for told in client.cluster_events(after=after, follow=follow):
        if as_json:
            output.write(told.model_dump_json())
        else:
            output.write(output.plain(_in_words(told), limit=500))
    return ExitCode.SUCCEEDED


def _in_words(told: Told) -> str:
    match told:
        case ClusterSnapshot():
            return f"{told.as_of}  {output.counted(len(told.agents), 'agent')}"
        case ClusterGap():
            return f"{told.after}  some events are missing"
        case ClusterEventView():
            said = " ".join(f"{key}={value}" for key, value in told.data.items())
            return f"{told.seq}  {told.at:%H:%M:%S}  {told.kind}  {said}"
