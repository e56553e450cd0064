"""An agent without a browser: it speaks the wire as agents do, and its runs are the test's."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from agent.link import FarmLink
from agent.machine.events import Heard, LinkDown, LinkUp
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from tests.e2e.faults.house import AGENT_TOKEN
from tests.e2e.processes import eventually

_BEAT_S = 0.5


@dataclass(eq=False)
class Puppet:
    """One agent. `automatic` ones succeed with every run at once."""

    client_id: str
    automatic: bool = True
    slots: int = 4
    deaf: bool = False
    """It answers no ping."""
    silent: bool = False
    """It says nothing at all once it is let in; its socket is open, and answers by itself."""
    draining: bool = False
    runs: dict[str, wire.Command] = field(default_factory=dict)
    """Those of which the farm has not the end."""
    ends: dict[str, wire.Result] = field(default_factory=dict)
    begun: list[wire.Command] = field(default_factory=list)
    refusals: list[wire.Refused] = field(default_factory=list)
    capabilities: tuple[str, ...] = ()
    interventions: list[wire.Intervene] = field(default_factory=list)
    cancelled: list[wire.Cancel] = field(default_factory=list)
    welcomes: int = 0
    tabs: dict[str, wire.Token | None] = field(default_factory=dict)
    _names: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _number: int = 0
    _epoch: int = 0
    _link: FarmLink | None = None

    @property
    def connected(self) -> bool:
        return self._epoch > 0

    @asynccontextmanager
    async def at(self, url: str) -> AsyncIterator[None]:
        """Dial a farm for as long as the block lasts."""
        headers = {"Authorization": f"Bearer {AGENT_TOKEN}"}
        told: asyncio.Queue[LinkUp | LinkDown | Heard] = asyncio.Queue()
        async with aiohttp.ClientSession(headers=headers) as session, asyncio.TaskGroup() as group:
            self._link = FarmLink(session, url)
            loops = [
                group.create_task(self._link.run(told.put_nowait)),
                group.create_task(self._listen(told)),
                group.create_task(self._beat()),
            ]
            yield
            for loop in loops:
                loop.cancel()
        self._epoch = 0

    async def is_let_in(self) -> None:
        await eventually(lambda: self.connected, 30)

    async def is_running(self, count: int = 1) -> None:
        await eventually(lambda: len(self.runs) - len(self.ends) >= count, 30)

    async def finish(self) -> None:
        """Succeed with everything that runs."""
        for run in [run for run in self.runs.values() if run.command_id not in self.ends]:
            await self._end(run, "succeeded")

    async def stop(self) -> None:
        """Stop what is to be cancelled."""
        for order in self.cancelled:
            await self._end(self.runs[order.command_id], "cancelled")

    async def give_up(self) -> None:
        """Stop everything, as an agent does that has lost its farm for too long."""
        for run in [run for run in self.runs.values() if run.command_id not in self.ends]:
            self.tabs.pop(str(run.context_id), None)
            await self._end(run, "failed")

    async def drain(self, draining: bool = True) -> None:
        """Take nothing new, or again what there is."""
        self.draining = draining
        await self._report()

    # The wire

    async def _send(self, message: wire.FromAgent) -> None:
        assert self._link is not None
        if not self.silent or isinstance(message, wire.Hello):
            await self._link.send(message)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            if self.connected:
                await self._send(wire.Heartbeat(epoch_number=self._epoch, nonce="n"))

    async def _listen(self, told: "asyncio.Queue[LinkUp | LinkDown | Heard]") -> None:
        while True:
            match await told.get():
                case LinkUp():
                    await self._send(self._hello())
                case LinkDown():
                    self._epoch = 0
                case Heard(message=message):
                    await self._hear(message)

    def _hello(self) -> wire.Hello:
        return wire.Hello(
            client_id=self.client_id,
            instance=self.client_id,
            epoch=f"browser of {self.client_id}",
            capabilities=self.capabilities,
            capacity=wire.Capacity(max_concurrency=self.slots, max_windows=9),
            running=tuple(
                wire.Running(
                    command_id=run.command_id,
                    attempt_id=attempt_of(run),
                    context_id=str(run.context_id),
                    token=token_of(run),
                    epoch=f"browser of {self.client_id}",
                )
                for run in self.runs.values()
            ),
        )

    async def _hear(self, message: wire.ToAgent) -> None:
        match message:
            case wire.Welcome(epoch_number=number):
                self._epoch, self._number = number, 0
                self.welcomes += 1
                await self._report()
                for run in list(self.runs.values()):
                    await self._tell(run)
            case wire.Refused():
                self.refusals.append(message)
            case wire.Stored(command_id=command_id) if message.done or message.refused:
                self.runs.pop(command_id, None)
                self.ends.pop(command_id, None)
            case wire.Command():
                await self._obey(message)
            case wire.Ping(nonce=nonce) if not self.deaf:
                await self._send(wire.Pong(nonce=nonce))
            case _:
                await self._wanted(message)

    async def _wanted(self, message: wire.ToAgent) -> None:
        match message:
            case wire.Intervene():
                self.interventions.append(message)
                await self._send(
                    wire.Intervened(intervention_id=message.intervention_id, outcome="applied")
                )
            case wire.Cancel():
                self.cancelled.append(message)
            case _:
                pass

    async def _obey(self, order: wire.Command) -> None:
        match order.body:
            case wire.OpenWindow():
                tab = f"{self.client_id}-T{next(self._names)}"
                self.tabs[tab] = None
                await self._report()
                await self._succeed(order, context_id=tab, window_id=tab)
            case wire.Probe():
                await self._succeed(order)
            case wire.RunPlan():
                self.tabs[str(order.context_id)] = token_of(order)
                self.runs[order.command_id] = order
                self.begun.append(order)
                await self._send(wire.Ack(command_id=order.command_id))
                await self._tell(order)
                if self.automatic:
                    await self._end(order, "succeeded")
            case wire.Release():
                if self.tabs.get(str(order.context_id)) == order.token:
                    del self.tabs[str(order.context_id)]
                await self._report()
            case _:
                raise AssertionError(order)

    async def _succeed(self, order: wire.Command, **value: str) -> None:
        await self._send(wire.Result(command_id=order.command_id, outcome="succeeded", value=value))

    async def _report(self) -> None:
        self._number += 1
        await self._send(
            wire.Report(
                epoch_number=self._epoch,
                number=self._number,
                draining=self.draining,
                windows=tuple(wire.WindowReport(window_id=tab) for tab in self.tabs),
                contexts=tuple(
                    wire.ContextReport(
                        context_id=tab, window_id=tab, clean=token is None, token=token
                    )
                    for tab, token in self.tabs.items()
                ),
            )
        )

    async def _tell(self, run: wire.Command) -> None:
        """Say again all there is of a run; what has been stored is passed over."""
        told = (
            wire.Started(context_id=str(run.context_id)),
            wire.StepStarted(index=0, verb="goto", label="goto"),
            wire.Items(dataset="items", first=0, items=({"by": self.client_id},)),
        )
        await self._send(
            wire.Events(
                command_id=run.command_id,
                attempt_id=attempt_of(run),
                token=token_of(run),
                entries=tuple(
                    wire.Entry(seq=seq, at=1.0, event=event) for seq, event in enumerate(told, 1)
                ),
            )
        )
        if run.command_id in self.ends:
            await self._send(self.ends[run.command_id])

    async def _end(self, run: wire.Command, outcome: str) -> None:
        lost = Failure(reason=Reason.AGENT_LOST, detail="given up")
        self.ends[run.command_id] = wire.Result.model_validate(
            {
                "command_id": run.command_id,
                "attempt_id": attempt_of(run),
                "token": run.token,
                "seq": 3,
                "outcome": outcome,
                "failure": None if outcome == "succeeded" else lost,
            }
        )
        if self.connected:
            await self._send(self.ends[run.command_id])


def attempt_of(run: wire.Command) -> str:
    assert isinstance(run.body, wire.RunPlan)
    return run.body.plan.attempt_id


def token_of(order: wire.Command) -> wire.Token:
    assert order.token is not None
    return order.token
