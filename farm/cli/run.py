"""`farm run`: one job from file to records, with a farm that lives as long as the job."""

import asyncio
import contextlib
import sys
import tempfile
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import typer

from farm import config
from farm.cli import destinations, exits, folder, job_source, output, running
from farm.cli.children import AgentOptions, Children, Staff
from farm.cli.exits import ExitCode
from farm.cli.folder import ResultFolder
from farm.cli.follow import conclude, display, follow
from farm.cli.interrupts import Interrupts, interrupts
from farm.cli.job_source import JobSource, Params
from farm.cli.up import Allow, say_who_sees_it
from farm.protocol.resources import JobDetail
from farm.sdk import FarmApiError, FarmClient

# Together they stay under the ten seconds in which a Ctrl-C has to be over.
_CANCEL_S = 4.0
_GRACE_S = 3.0
# An agent that can't start its browser ends at once, and would only say so again and again.
_AGENT_STARTS = 2
_NOT_YET = frozenset({"no_agent", "other_client_type"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be run, and where the results go."""

    source: JobSource
    params: dict[str, str]
    allow: tuple[str, ...]
    folder: Path | None
    """None writes the records to stdout."""
    as_json: bool
    agent: AgentOptions
    browser: bool
    """It runs in a tab, or may have to."""
    flow: bool
    """It runs in a flow, or first in one."""


def run(
    *,
    file: job_source.File,
    to: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Keep records and files here."),
    ] = None,
    headed: Annotated[bool, typer.Option("--headed", help="Show the browser.")] = False,
    slow_mo: Annotated[
        int, typer.Option("--slow-mo", metavar="MS", min=0, help="Wait so long between actions.")
    ] = 0,
    keep_open: Annotated[
        bool, typer.Option("--keep-open", help="Keep the browser open until Enter or Ctrl-C.")
    ] = False,
    params: Params = None,
    allow: Allow = None,
    force: Annotated[bool, typer.Option("--force", help="Write over what is in DIR.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the job as one JSON value.")
    ] = False,
) -> None:
    """Run a job file here and now; the exit code is the job's.

    Records go to DIR/items.jsonl and .csv, files to DIR/artifacts, the
    job's history to DIR/job.json; without -o the records go to stdout
    as JSON lines.
    """
    order = running.checked(
        lambda: _order(file, to, headed, slow_mo, keep_open, params, allow, force, as_json)
    )
    if headed:
        say_who_sees_it()
    running.run(_run(order))


def _order(
    file: Path,
    to: Path | None,
    headed: bool,
    slow_mo: int,
    keep_open: bool,
    params: list[str] | None,
    allow: list[str] | None,
    force: bool,
    as_json: bool,
) -> Order:
    """Check everything that can be wrong before anything is started."""
    source = job_source.read(file)
    given = job_source.parse_params(params)
    checked = job_source.check(source, given)
    if to is not None:
        folder.check(to, force=force)
    return Order(
        source=source,
        params=given,
        allow=(*checked.private_hosts, *destinations.checked(allow or ())),
        folder=to,
        as_json=as_json,
        agent=AgentOptions(
            headed=headed, slow_mo_ms=slow_mo, keep_open=keep_open, give_up_after=_AGENT_STARTS
        ),
        browser=checked.browser,
        flow=checked.flow,
    )


async def _run(order: Order) -> ExitCode:
    from farm.main import coordinator  # takes long to import, and few commands need it

    with tempfile.TemporaryDirectory(prefix="farm-run-") as data:
        settings = config.open_by_default(
            config.load(host="127.0.0.1", port=0, data_dir=Path(data), log_level="error")
        )
        allowed = (*settings.egress_allow, *order.allow)
        # It ends with its job, so it shares nothing.
        alone = {
            "egress_allow": allowed,
            "redis": config.RedisSettings(),
            "artifacts": settings.artifacts.model_copy(update={"url": None}),
        }
        settings = settings.model_copy(update=alone)
        options = replace(order.agent, log_dir=Path(data) / "agents")
        async with coordinator(settings) as farm:
            children, browser = Children(farm, options), asyncio.Event()
            with interrupts(children.kill) as asked:
                async with asyncio.TaskGroup() as group:
                    agents = group.create_task(_keep(children, order, browser), name="agents")
                    async with FarmClient(farm.url, farm.admin_token) as client:
                        code = await _work(client, order, asked, browser)
                    await children.stop(_GRACE_S)
                    agents.cancel()
    return code


async def _keep(children: Children, order: Order, browser: asyncio.Event) -> None:
    """Keep the agents the job needs; after a flow, a browser only once it is wanted."""
    if not order.flow:
        await children.run(Staff(browsers=1))
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(children.run(Staff(consoles=1)), name="flows")
        await browser.wait()
        group.create_task(children.run(Staff(browsers=1)), name="browser")


async def _work(
    client: FarmClient, order: Order, asked: Interrupts, browser: asyncio.Event
) -> ExitCode:
    """Submit the job, follow it, and hand over what it produced, however it ends."""
    source = order.source
    accepted = await client.submit(
        source.text, content_type=source.content_type, params=order.params
    )
    kept: ResultFolder | None = None
    if order.folder is not None:
        folder.prepare(order.folder)
        kept = ResultFolder(order.folder, client)
    job = await _until_rest(client, accepted.id, kept, asked, browser)
    conclude(job)
    await _hand_over(client, order, job, kept)
    interrupted = asked.first.is_set()
    if order.agent.keep_open and not interrupted:
        await _wait_for_person(asked)
    return ExitCode.INTERRUPTED if interrupted else exits.of_state(job.state)


async def _until_rest(
    client: FarmClient,
    job_id: str,
    kept: ResultFolder | None,
    asked: Interrupts,
    browser: asyncio.Event,
) -> JobDetail:
    """Follow the job to its end; the first signal cancels it and shortens the wait."""
    with display() as shown:

        async def seen(job: JobDetail) -> None:
            # That there is no agent yet is our own doing, and nothing to advise anybody about.
            early = job.waiting is not None and job.waiting.reason in _NOT_YET
            if job.waiting is not None and job.waiting.reason == "other_client_type":
                browser.set()
            shown(job.model_copy(update={"waiting": None}) if early else job)
            if kept is not None:
                await kept.update(job)

        async with asyncio.TaskGroup() as group:
            following = group.create_task(follow(client, job_id, seen), name="follow")
            signalled = group.create_task(asked.first.wait(), name="signal")
            await asyncio.wait({following, signalled}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                await _cancel(client, job_id)
                await asyncio.wait({following}, timeout=_CANCEL_S)
                following.cancel()
            signalled.cancel()
    return await client.job(job_id)


async def _cancel(client: FarmClient, job_id: str) -> None:
    try:
        await client.cancel(job_id)
    except FarmApiError as error:
        if error.status != HTTPStatus.CONFLICT:  # it ended by itself in the meantime
            raise


async def _hand_over(
    client: FarmClient, order: Order, job: JobDetail, kept: ResultFolder | None
) -> None:
    """Complete the folder, or write the records to stdout."""
    value = output.of_models(job)
    if kept is not None:
        await kept.complete(job)
        output.say(f"Results are in {order.folder}")
        value["output"] = str(order.folder)
    elif order.as_json:
        value["items"] = [item async for item in client.items(job.id)]
    else:
        async for item in client.items(job.id):
            output.write(output.to_json(item))
    if order.as_json:
        output.write_json(value)
    output.flush()


async def _wait_for_person(asked: Interrupts) -> None:
    """Wait for Enter, where there is somebody to press it, or for Ctrl-C."""
    output.say("The browser stays open: Enter or Ctrl-C ends it.")
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, ValueError):
        if sys.stdin.isatty():
            loop.add_reader(sys.stdin.fileno(), asked.first.set)
    await asked.first.wait()
    with contextlib.suppress(OSError, ValueError):
        loop.remove_reader(sys.stdin.fileno())
