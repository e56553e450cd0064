"""The real agent with a simulated browser: machine, runner and link are those of `farm-agent`.

`python -m tests.simulated.agent JSON` runs one as a process; JSON is a `Sim`.
"""

import asyncio
import contextlib
import itertools
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import aiohttp
import structlog
from pydantic import TypeAdapter

from agent.clock import monotonic, wall_clock
from agent.link import FarmLink, HttpUploads
from agent.loans import HttpLoans
from agent.machine import Machine, Profile
from agent.machine.events import Exit, StopRequested
from agent.ports import Channel, ChannelClosed
from agent.runner import Runner
from farm.protocol import messages as wire
from tests.simulated.browser import SimulatedBrowser
from tests.simulated.pages import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Sim:
    """One simulated agent."""

    client_id: str
    urls: tuple[str, ...]
    """The farms it may go to."""
    token: str
    slots: int = 1
    namespaces: tuple[str, ...] = ("default",)
    site: str | None = None
    """Where its pages do what they do outside."""
    seed: int = 0
    pace: Pace = field(default_factory=Pace)


SIM = TypeAdapter(Sim)


class _NoChannels:
    def dial(self, channel_id: str) -> AbstractAsyncContextManager[Channel]:
        raise ChannelClosed("there is nothing to be seen")


async def live(sim: Sim, stop: asyncio.Event | None = None) -> Exit:
    """Live until it is told to leave, or `stop` is set."""
    life = f"{sim.client_id}-{wall_clock()}"
    epochs = itertools.count(1)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    headers = {"Authorization": f"Bearer {sim.token}"}
    async with (
        aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
        aiohttp.ClientSession(timeout=timeout) as pages,
    ):
        machine = Machine(
            Profile(hello=_hello(sim, life), identity_idle_s=300.0),
            new_epoch=lambda: f"{life}-{next(epochs)}",
        )
        link = FarmLink(session, *sim.urls)
        runner = Runner(
            machine,
            browser=SimulatedBrowser(
                session=pages,
                site=sim.site,
                seed=sim.seed,
                pace=sim.pace,
                may_act=lambda: machine.may_act(monotonic()),
            ),
            link=link,
            uploads=HttpUploads(session, lambda: link.url),
            loans=HttpLoans(session, lambda: link.url),
            channels=_NoChannels(),
            monotonic=monotonic,
            wall_clock=wall_clock,
        )
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_stop(runner, stop or asyncio.Event()), name="stop")
            ended = await runner.run()
            waiting.cancel()
            return ended


async def _stop(runner: Runner, stop: asyncio.Event) -> None:
    await stop.wait()
    runner.post(StopRequested(0.0))


def _hello(sim: Sim, life: str) -> wire.Hello:
    return wire.Hello(
        client_id=sim.client_id,
        instance=life,
        epoch="",
        namespaces=sim.namespaces,
        capacity=wire.Capacity(max_concurrency=sim.slots, max_windows=2 * sim.slots),
    )


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with contextlib.suppress(KeyboardInterrupt):
        print(asyncio.run(live(SIM.validate_json(sys.argv[1]))), file=sys.stderr)
