"""Following a job until it is at rest, and saying so on stderr."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from farm.cli import output
from farm.cli.show import in_words
from farm.protocol.resources import JobDetail
from farm.sdk import FarmClient

_COALESCE_S = 0.15
# Why a queued job waits can change without an event of the job.
_LOOK_AGAIN_S = 5.0

Seen = Callable[[JobDetail], Awaitable[None]]


async def follow(client: FarmClient, job_id: str, seen: Seen) -> JobDetail:
    """Call `seen` with the job now and after every change; return it when it is at rest.

    Changes that come close together are seen as one.
    """
    changed = asyncio.Event()

    async def listen() -> None:
        async for _ in client.events(job_id):
            changed.set()
        changed.set()

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(listen(), name=f"events of {job_id}")
        while True:
            changed.clear()
            job = await client.job(job_id)
            await seen(job)
            if job.at_rest:
                listening.cancel()
                return job
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _LOOK_AGAIN_S)
            await asyncio.sleep(_COALESCE_S)


def describe(job: JobDetail) -> str:
    """Return one line about where a job is, safe to print."""
    parts = [job.name, in_words(job).replace("_", " ")]
    if job.control is not None and job.control.asked:
        parts.append(job.control.asked)
    if job.state == "queued" and job.waiting is not None:
        parts.append(f"waits: {job.waiting.reason}")
        parts.extend(filter(None, [job.waiting.remedy]))
    if job.progress is not None and not job.at_rest:
        of = f"/{job.progress.steps}" if job.progress.steps else ""
        parts.append(f"step {job.progress.step_index + 1}{of} {job.progress.step}")
    if len(job.history) > 1:
        parts.append(f"attempt {len(job.history)}")
    parts.append(output.counted(job.item_count, "item"))
    if job.artifact_count:
        parts.append(output.counted(job.artifact_count, "file"))
    return output.plain(" · ".join(parts), limit=200)


@contextmanager
def display() -> Iterator[Callable[[JobDetail], None]]:
    """Show jobs on stderr while inside: live on a terminal, else a line for every change."""
    console = output.talk()
    if not console.is_terminal:
        yield _Lines()
        return
    spinner = Spinner("dots")
    with Live(spinner, console=console, transient=True, refresh_per_second=10):
        yield lambda job: spinner.update(text=Text(describe(job)))


class _Lines:
    """Prints a job whenever its line differs from the last one."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, job: JobDetail) -> None:
        line = describe(job)
        # How it ended is for `conclude` to say.
        if line != self._last and not job.at_rest:
            self._last = line
            output.say(line)


def conclude(job: JobDetail) -> None:
    """Say how a job ended, where it did not go well why, and what else is worth knowing."""
    styles = {"succeeded": "green", "failed": "red", "timed_out": "red", "uncertain": "yellow"}
    output.say(describe(job), style=styles.get(job.state))
    if job.failure is not None:
        step = (
            f" in step {job.failure.step_index + 1}" if job.failure.step_index is not None else ""
        )
        name = f" ({job.failure.step})" if job.failure.step else ""
        output.say(f"  {job.failure.reason}{step}{name}: {job.failure.detail}")
    if job.failure is not None and job.failure.reason == "egress_denied":
        output.say("  private addresses are opened by --allow or FARM_EGRESS_ALLOW of the farm")
    if job.state == "uncertain":
        output.say(f"  decide with: farm jobs resolve {job.id} --as succeeded|failed|retry")
    for notice in job.notices:
        times = f" ({notice.count} times)" if notice.count > 1 else ""
        line = output.plain(f"{notice.code}{times}: {notice.detail}", limit=300)
        output.say(f"  warning: {line}", style="yellow")
