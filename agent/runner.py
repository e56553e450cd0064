"""Feeds the machine, and carries out what it asks for, in one task group."""

import asyncio
from collections.abc import Callable, Coroutine

import structlog

from agent.evidence import RunEvidence
from agent.machine import Event, Instruction, Machine
from agent.machine import events as ev
from agent.machine.control import OutOfPlaceError
from agent.ports import (
    Browser,
    BrowserUnavailable,
    ChannelClosed,
    Channels,
    Host,
    Link,
    Loans,
    Uploads,
)
from farm.protocol import messages as wire

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_TICK_S = 0.1
_DISK_S = 2.0
_GOODBYE_S = 5.0
"""How long the last messages and the end of the browser may take."""


class Runner:
    """The shell around `Machine`: all tasks it starts end before `run` returns."""

    def __init__(
        self,
        machine: Machine,
        *,
        browser: Browser | None = None,
        flows: Host | None = None,
        link: Link,
        uploads: Uploads,
        loans: Loans,
        channels: Channels,
        monotonic: Callable[[], float],
        wall_clock: Callable[[], float],
        short: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Take all that is needed.

        Args:
            machine: What decides.
            browser: What plans run in, where that has windows to be opened.
            flows: What they run in, where it has none; one of the two is given.
            link: The connection to the farm.
            uploads: Where files go.
            loans: Where attempts borrow.
            channels: What the big and fast things travel on.
            monotonic: A clock that never jumps.
            wall_clock: The time of day.
            short: Says what the disk has too little of; asked again and again, in a thread.
        """
        self._short = short
        self._machine = machine
        host = browser or flows
        if host is None:
            raise ValueError("plans need a browser, or a host of flows, to run in")
        self._host = host
        self._windowed = browser
        self._link = link
        self._uploads = uploads
        self._loans = loans
        self._channels = channels
        self._monotonic = monotonic
        self._wall_clock = wall_clock
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._runs: dict[str, tuple[RunEvidence, asyncio.Task[ev.Outcome]]] = {}
        self._open_channels: set[asyncio.Task[None]] = set()

    @property
    def _browser(self) -> Browser:
        """What has windows; the machine of a host of flows asks for none."""
        assert self._windowed is not None  # noqa: S101
        return self._windowed

    def post(self, event: Event) -> None:
        """Hand in an event from outside."""
        self._events.put_nowait(event)

    async def run(self) -> ev.Exit:
        """Run until the machine wants to end; the browser is gone when this returns.

        Raises:
            LinkRefused: If the farm does not let this agent in.
        """
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [
                    group.create_task(self._link.run(self.post), name="link"),
                    group.create_task(self._tick(), name="tick"),
                    group.create_task(self._watch_disk(), name="disk"),
                ]
                done = await self._serve(group)
                runs = (task for _, task in self._runs.values())
                for task in [*helpers, *runs, *self._open_channels]:
                    task.cancel()
                return done
        finally:
            async with asyncio.timeout(_GOODBYE_S):
                await self._host.kill()

    async def _serve(self, group: asyncio.TaskGroup) -> ev.Exit:
        instructions = self._machine.begin()
        while True:
            for instruction in instructions:
                if isinstance(instruction, ev.Exit):
                    return instruction
                await self._carry_out(instruction, group)
            event = await self._events.get()
            instructions = self._machine.handle(event, self._monotonic())

    async def _watch_disk(self) -> None:
        before: str | None = None
        while True:
            short = await asyncio.to_thread(self._short)
            if (short is None) != (before is None):
                log.warning("disk.low" if short else "disk.has_room", short=short)
                self.post(ev.DiskChanged(short))
                before = short
            await asyncio.sleep(_DISK_S)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.post(ev.Tick())

    async def _carry_out(self, instruction: Instruction, group: asyncio.TaskGroup) -> None:
        match instruction:
            case ev.Send(message):
                await self._link.send(message)
            case ev.KillBrowser():
                await self._host.kill()
            case ev.StartRun():
                self._start_run(instruction, group)
            case ev.CancelRun() | ev.Settled() | ev.Disown():
                self._tell_run(instruction)
            case ev.OpenChannel(asked):
                task = group.create_task(
                    self._serve_channel(asked), name=f"live {asked.context_id}"
                )
                self._open_channels.add(task)
                task.add_done_callback(self._open_channels.discard)
            case _:
                group.create_task(self._work(instruction), name=repr(instruction)[:80])

    def _tell_run(self, instruction: ev.CancelRun | ev.Settled | ev.Disown) -> None:
        if instruction.command_id not in self._runs:
            return  # it has ended meanwhile
        evidence, task = self._runs[instruction.command_id]
        match instruction:
            case ev.CancelRun():
                task.cancel()
            case ev.Settled(seq=seq):
                evidence.stored(seq)
            case ev.Disown():
                evidence.disown()

    async def _serve_channel(self, asked: wire.OpenChannel) -> None:
        try:
            async with self._channels.dial(asked.channel_id) as channel:
                await self._browser.watch(asked.context_id, channel)
        except ChannelClosed as error:
            log.warning("channel.failed", kind=asked.kind, reason=str(error))

    def _start_run(self, start: ev.StartRun, group: asyncio.TaskGroup) -> None:
        evidence = RunEvidence(
            start, post=self.post, uploads=self._uploads, wall_clock=self._wall_clock
        )
        task = group.create_task(self._run(start, evidence), name=f"run {start.command_id}")
        self._runs[start.command_id] = (evidence, task)
        task.add_done_callback(lambda task: self._run_done(start, task))

    async def _run(self, start: ev.StartRun, evidence: RunEvidence) -> ev.Outcome:
        evidence.begin()
        lender = self._loans.of(start.plan.attempt_id, start.token)
        return await self._host.run(start.context_id, start.plan, evidence, lender)

    def _run_done(self, start: ev.StartRun, task: asyncio.Task[ev.Outcome]) -> None:
        # Told by a callback, because a task that is cancelled before its first step runs no line.
        evidence, _ = self._runs.pop(start.command_id)
        outcome = ev.Outcome(outcome="cancelled", page_gone=evidence.begun)
        if not task.cancelled() and task.exception() is None:
            outcome = task.result()
        self.post(ev.RunEnded(start.command_id, outcome))

    async def _work(self, instruction: Instruction) -> None:  # noqa: C901 - a flat table
        match instruction:
            case ev.StartBrowser(epoch):
                await self._start_browser(epoch)
            case ev.OpenWindow(command_id, window_id, context_id, options, resets):
                opening = self._browser.open_window(window_id, context_id, options, resets=resets)
                await self._open(command_id, opening)
            case ev.PrepareWindow():
                await self._prepare(instruction)
            case ev.OpenTab(command_id, window_id, context_id):
                await self._open(command_id, self._browser.open_tab(window_id, context_id))
            case ev.ResetTab(context_id):
                self.post(ev.Reset(context_id, await self._browser.reset(context_id)))
            case ev.Look(epoch):
                self.post(ev.Seen(epoch, await self._browser.look()))
            case ev.CloseTab(context_id):
                await self._browser.close_tab(context_id)
                self.post(ev.TabGone(context_id))
            case ev.CloseWindow(window_id):
                await self._browser.close_window(window_id)
                self.post(ev.WindowGone(window_id))
            case _:
                await self._more_work(instruction)

    async def _more_work(self, instruction: Instruction) -> None:
        match instruction:
            case ev.RunProbe(command_id):
                await self._probe(command_id)
            case ev.Intervene(context_id, wanted):
                await self._intervene(context_id, wanted)
            case ev.ShowDraining():
                await self._host.drain()
            case ev.Recycle(reason):
                log.info("browser.recycling", reason=reason)
                await self._host.drain()
            case ev.Weigh(epoch):
                weight = await self._browser.weigh()
                self.post(ev.Weighed(epoch, *weight))
            case _:
                raise AssertionError(instruction)

    async def _start_browser(self, epoch: str) -> None:
        try:
            info = await self._host.start(self.post)
        except BrowserUnavailable as error:
            self.post(ev.BrowserFailed(str(error)))
            return
        log.info("browser.started", product=info.product, executable=info.executable, pid=info.pid)
        self.post(ev.BrowserStarted(epoch, info.product))

    async def _intervene(self, context_id: str, wanted: wire.Intervene) -> None:
        outcome: wire.InterventionOutcome = "applied"
        detail = ""
        try:
            await self._browser.intervene(context_id, wanted)
        except OutOfPlaceError as error:
            outcome, detail = "out_of_place", str(error)
        except KeyError:
            outcome, detail = "stale_target", "no run is on the tab any more"
        self.post(ev.Intervened(wanted.intervention_id, outcome, detail))

    async def _open(self, command_id: str, opening: Coroutine[object, object, None]) -> None:
        try:
            await opening
        except (BrowserUnavailable, KeyError) as error:
            self.post(ev.OpenFailed(command_id, str(error)))
            return
        self.post(ev.Opened(command_id))

    async def _prepare(self, order: ev.PrepareWindow) -> None:
        context_id = order.context_id
        try:
            await self._browser.open_window(
                order.window_id, context_id, order.options, resets=order.resets
            )
        except (BrowserUnavailable, KeyError) as error:
            self.post(ev.PrepareFailed(context_id, str(error)))
            return
        self.post(ev.Prepared(context_id))

    async def _probe(self, command_id: str) -> None:
        try:
            await self._host.probe()
        except (BrowserUnavailable, RuntimeError, TimeoutError) as error:
            self.post(ev.Probed(command_id, str(error) or type(error).__name__))
            return
        self.post(ev.Probed(command_id))
