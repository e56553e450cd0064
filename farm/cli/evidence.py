"""`farm command` and `farm delivery`: what is known of what was sent to agents."""

from typing import Annotated

import typer

from farm.cli import output
from farm.cli.connect import AsJson, farm_command
from farm.cli.exits import ExitCode
from farm.sdk import FarmClient


@farm_command
async def command(
    client: FarmClient,
    command_id: Annotated[str, typer.Argument(metavar="ID", help="The command's id.")],
    as_json: AsJson = False,
) -> ExitCode:
    """Show what is known of one command: five questions to ask before work is repeated."""
    found = await client.command(command_id)
    if as_json:
        output.write_json(output.of_models(found))
        return ExitCode.SUCCEEDED
    lines: list[tuple[str, object]] = [
        ("sent", found.send_attempted),
        ("acknowledged", found.acknowledged),
        ("result kept", found.result_retained),
        ("effect can be established", found.effect_can_be_established),
        ("repeat is safe", found.repeat_is_safe),
    ]
    if (known := found.command) is not None:
        lines = [
            ("kind", known.kind),
            ("agent", known.client_id),
            ("context", known.context_id),
            ("state", known.state),
            ("reason", known.reason),
            *lines,
        ]
    for name, value in lines:
        if value is not None:
            output.write(f"{name + ':':26} {output.plain(value)}")
    return ExitCode.SUCCEEDED


@farm_command
async def delivery(client: FarmClient, as_json: AsJson = False) -> ExitCode:
    """List how the delivery of commands fares, by agent."""
    found = await client.delivery()
    output.write_models(
        found,
        ("AGENT", "LINKED", "ADMITTED", "IN FLIGHT", "UNACKNOWLEDGED", "OLDEST", "FAILURES"),
        (
            (
                one.client_id,
                one.linked,
                one.admitted,
                one.in_flight,
                one.unacknowledged,
                one.oldest_at and f"{one.oldest_at:%Y-%m-%d %H:%M:%S}",
                one.failures or None,
            )
            for one in found.items
        ),
        as_json=as_json,
    )
    return ExitCode.SUCCEEDED
