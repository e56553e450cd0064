"""`farm up` and `farm serve`: a coordinator until a signal, with agents of its own or without."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm import config
from farm.cli import destinations, output, running
from farm.cli.children import AgentOptions, Children, Staff
from farm.cli.connect import DataDir
from farm.cli.exits import ExitCode
from farm.cli.interrupts import Interrupts, interrupts

if TYPE_CHECKING:
    from farm.main import Coordinator

# Together they stay under the ten seconds in which a Ctrl-C has to be over.
_DRAIN_S = 5.0
_GRACE_S = 3.0

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65_535, help="Port to listen on; 0 takes a free one."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="HOST[:PORT]",
        help="A private or loopback destination that pages may reach; may be repeated.",
    ),
]


def up(
    *,
    agents: Annotated[
        int, typer.Option("--agents", min=0, max=64, help="How many agents with a browser.")
    ] = 1,
    console: Annotated[
        int, typer.Option("--console", min=0, max=64, help="How many agents of flows, without one.")
    ] = 0,
    headed: Annotated[bool, typer.Option("--headed", help="Show the browsers.")] = False,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = Path(".farm"),
    allow: Allow = None,
) -> None:
    """Start a coordinator and agents on this machine, until Ctrl-C."""
    settings = config.open_by_default(_settings(host, port, data_dir, allow))
    staff = Staff(browsers=agents, consoles=console)
    if not staff.named():
        raise typer.BadParameter("no agents at all: farm serve starts a coordinator alone")
    if headed:
        say_who_sees_it()
    options = AgentOptions(headed=headed, slots=fair_share(max(1, agents)))
    running.run(serve_until_told(settings, staff, options))


def serve(
    *, host: Host = None, port: Port = None, data_dir: DataDir = Path(".farm"), allow: Allow = None
) -> None:
    """Start a coordinator alone, until Ctrl-C; agents dial in with tokens of their own."""
    running.run(serve_until_told(_settings(host, port, data_dir, allow), Staff(), AgentOptions()))


def fair_share(agents: int) -> int:
    """Return how many jobs each of so many agents runs at once: two a core between them."""
    return max(1, 2 * (os.cpu_count() or 1) // agents)


def say_who_sees_it() -> None:
    """Say it where a browser that is to be shown has no screen to be shown on."""
    if not os.environ.get("DISPLAY"):  # noqa: TID251 - X11's, not a setting of ours
        output.say("DISPLAY is not set: the browser gets a display that nobody sees.")


def _settings(
    host: str | None, port: int | None, data_dir: Path, allow: list[str] | None
) -> config.Settings:
    def load() -> config.Settings:
        settings = config.load(host=host, port=port, data_dir=data_dir)
        allowed = destinations.checked((*settings.egress_allow, *(allow or ())))
        return settings.model_copy(update={"egress_allow": allowed})

    return running.checked(load)


async def serve_until_told(
    settings: config.Settings, staff: Staff, options: AgentOptions
) -> ExitCode:
    """Run a coordinator and these agents until the first signal, then end them in order."""
    from farm.main import coordinator  # takes long to import, and only this command needs it

    async with coordinator(settings) as farm:
        _announce(farm, settings.data_dir)
        if farm.name is not None:
            options = replace(options, prefix=f"{farm.name}-")
        children = Children(farm, options)
        with interrupts(children.kill) as asked:
            async with asyncio.TaskGroup() as group:
                group.create_task(children.run(staff), name="agents")
                await _end_in_order(farm, children, asked)
    return ExitCode.SUCCEEDED


async def _end_in_order(farm: "Coordinator", children: Children, asked: Interrupts) -> None:
    await asked.first.wait()
    output.say("Stopping: running jobs get a few seconds. Ctrl-C again stops at once.")
    await farm.drain(_DRAIN_S)
    await children.stop(_GRACE_S)


def _announce(farm: "Coordinator", data_dir: Path) -> None:
    if farm.first_start:
        output.say(f"First start. The admin token, which is also in {data_dir / 'admin.token'}:")
        output.say(f"  {farm.admin_token}", style="bold")
    output.say(f"The farm is at {farm.url}; Ctrl-C ends it.", style="green")
