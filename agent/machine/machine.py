"""The machine itself; see the package's docstring."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.machine import events as ev
from agent.machine.events import Event, Instruction, Outcome
from agent.machine.link import LinkState
from agent.machine.recycling import FOR_EVER, Limits, Recycling
from agent.machine.restarts import Restarts
from agent.machine.runs import Runs
from agent.machine.state import Run
from agent.machine.stock import Stock
from agent.machine.surroundings import Looks
from agent.machine.tabs import Tabs, kind_of
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from farm.protocol.plan import BrowserOptions

_RESTARTS = 3
"""So many times in a row the browser may fail to start before the agent gives up."""
CHANNELS = frozenset({"live"})
"""The kinds of data channel there are."""
_WEIGH_S = 30.0
"""How often a browser is weighed."""
_CONFIRM_S = 3.0
"""How long a stopping agent waits for its last results to be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Who the agent is: its `hello` but for what changes."""

    hello: wire.Hello
    identity_idle_s: float
    """A named identity's window is closed after so long without use."""
    look_s: float | None = None
    """Where there are windows, it looks so often which tab is in front and where they are."""
    limits: Limits = FOR_EVER
    """How long windows and browsers serve."""
    prepared_windows: int = 0
    """So many windows are kept open ahead, of each kind."""
    prepared_options: tuple[BrowserOptions, ...] = ()
    """The kinds beside the plain one and the one asked for last."""


class Machine:
    """All an agent knows. Change it through `handle` only."""

    def __init__(self, profile: Profile, *, new_epoch: Callable[[], str]) -> None:
        self._new_epoch = new_epoch
        self._link = LinkState(profile.hello)
        self._flows_only = profile.hello.client_type == "console"
        self._most_flows = profile.hello.capacity.max_flows
        self._tabs = Tabs(identity_idle_s=profile.identity_idle_s)
        self._runs = Runs()
        self._can = frozenset(profile.hello.capabilities)
        self._looks = Looks(profile.look_s)
        self._user_windows_lost = 0
        """Windows of people's that went with the last browser; told by the next `hello`."""
        self._recycling = Recycling(profile.limits)
        self._weigh_at = 0.0
        self._restarts = Restarts()
        self._start_at: float | None = None
        """When the next browser is to be started, where that is not at once."""
        self._stock = Stock(profile.prepared_windows, profile.prepared_options)
        self._capacity = profile.hello.capacity
        """As negotiated; until then, as offered."""
        self._epoch: str | None = None
        self._failed_starts = 0
        self._started_once = False
        self._quiet_since = 0.0
        """When a stopping agent was asked to stop, or its last run ended since."""
        self._deadline: float | None = None
        """When a stopping agent stops waiting."""
        self._short: str | None = None
        """What there is too little of on the disk."""
        self._said_bye = False

    @property
    def tabs(self) -> Tabs:
        """The tabs and windows there are."""
        return self._tabs

    @property
    def runs(self) -> Runs:
        """The runs there are."""
        return self._runs

    @property
    def draining(self) -> bool:
        """Tell whether it takes nothing new."""
        return self._deadline is not None

    @property
    def takes_nothing(self) -> bool:
        """Tell whether nothing new is begun: it drains, as its browser may, or the disk is full."""
        return self.draining or self._short is not None or self._recycling.draining

    def _why_nothing(self) -> str:
        if not self.draining and self._short is not None:
            return f"low_disk: {self._short}"
        if not self.draining and self._recycling.draining:
            return f"recycling: {self._recycling.reason}"
        return ""

    def _report(self) -> wire.Report:
        because = "low_disk" if self._short is not None else ""
        if not because and self._recycling.draining:
            because = f"recycling: {self._recycling.reason}"
        return self._link.report(self._tabs, draining=self.takes_nothing, because=because)

    def may_act(self, now: float) -> bool:
        """Tell whether the farm can't have taken us for gone yet."""
        return self._link.may_act(now)

    def begin(self) -> list[Instruction]:
        """Return what to do first."""
        return [ev.StartBrowser(self._new_epoch())]

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """Take in one event; return what to do about it, in order."""
        instructions = self._react(event, now)
        # What nobody waits for comes with what is urgent, or with the next tick.
        due = self._tabs.urgent or (self._tabs.changed and isinstance(event, ev.Tick))
        if due and self._link.reporting:
            instructions.append(ev.Send(self._report()))
        return [*instructions, *self._maybe_leave(now)]

    def _react(self, event: Event, now: float) -> list[Instruction]:  # noqa: C901 - a flat table
        match event:
            case ev.BrowserStarted():
                return self._browser_started(event, now)
            case ev.BrowserFailed(detail):
                return self._browser_failed(detail)
            case ev.BrowserLost():
                return self._browser_lost(self._restarts.lost(now))
            case ev.TabGone(context_id):
                self._tabs.tab_gone(context_id)
            case ev.TabCrashed(context_id):
                return self._tabs.tab_crashed(context_id)
            case ev.WindowGone(window_id):
                self._tabs.window_gone(window_id)
            case ev.Stirred():
                self._looks.stir(now)
            case ev.Seen(epoch, windows):
                if self._looks.looked() and epoch == self._epoch:
                    self._tabs.see(windows)
            case ev.Opened(command_id):
                return self._opened(command_id, now)
            case ev.OpenFailed(command_id, detail):
                self._tabs.open_failed(command_id)
                return [_failed(command_id, detail)]
            case ev.Prepared(context_id):
                claimed_by = self._tabs.prepared(context_id, now)
                return [] if claimed_by is None else self._opened(claimed_by, now)
            case ev.PrepareFailed(context_id, detail):
                return self._prepare_failed(context_id, detail, now)
            case ev.Weighed(epoch=epoch):
                if epoch == self._epoch:
                    self._recycling.weighed(event)
            case ev.Reset(context_id, clean):
                return self._tabs.reset(context_id, clean=clean, now=now)
            case ev.Noted():
                return self._runs.noted(event, now, self._link.welcomed)
            case ev.RunEnded(command_id, outcome):
                return self._run_ended(command_id, outcome, now)
            case ev.Probed(command_id, failure):
                return [_failed(command_id, failure) if failure else _done(command_id)]
            case ev.Intervened(intervention_id, outcome, detail):
                return [_intervened(intervention_id, outcome, detail)]
            case ev.LinkUp():
                return self._hello(now)
            case ev.LinkDown():
                self._link.down()
            case ev.Heard(message):
                return self._heard(message, now)
            case ev.Tick():
                return self._tick(now)
            case ev.DiskChanged(short):
                self._short = short
                self._tabs.touch()
            case ev.StopRequested(deadline_s):
                return self._stop(deadline_s, now)
        return []

    # The browser

    def _browser_started(self, event: ev.BrowserStarted, now: float) -> list[Instruction]:
        self._recycling.begin(now)
        self._restarts.began(now)
        self._weigh_at = now + _WEIGH_S
        self._failed_starts = 0
        self._started_once = True
        self._epoch = event.epoch
        self._link.browser = event.product
        return self._hello(now) if self._link.connected else []

    def _browser_failed(self, detail: str) -> list[Instruction]:
        self._failed_starts += 1
        if not self._started_once or self._failed_starts >= _RESTARTS:
            return [ev.Exit(1, detail)]
        return [ev.StartBrowser(self._new_epoch())]

    def _recycle(self, now: float) -> list[Instruction]:
        """Replace a browser that has served long enough, when nothing is in its way."""
        if self._epoch is None or self.draining:
            return []
        if self._recycling.starts_to_drain(now, kept=self._tabs.keeps_something()):
            self._tabs.touch()
            reason = self._recycling.reason or ""
            return [ev.Recycle(reason), *self._tabs.close_prepared(self._stock)]
        if self._runs.any_running() or not self._recycling.is_over(now, held=self._tabs.held()):
            return []
        return [ev.KillBrowser(), *self._browser_lost(None)]

    def _weigh(self, now: float) -> list[Instruction]:
        if self._epoch is None or not self._recycling.wants_weighing() or now < self._weigh_at:
            return []
        self._weigh_at = now + _WEIGH_S
        return [ev.Weigh(self._epoch)]

    def _browser_lost(self, start_at: float | None) -> list[Instruction]:
        """Nothing of the epoch is left; begin the next one, at once or by the clock."""
        self._user_windows_lost += self._tabs.user_windows
        last = self._last_report()
        failed: list[Instruction] = [
            _failed(command_id, "the browser ended") for command_id in self._tabs.lost()
        ]
        self._epoch = None
        self._looks.clear()
        self._link.forget_epoch()
        if self.draining:
            return [*last, *failed]
        if start_at is None:
            return [*last, *failed, ev.StartBrowser(self._new_epoch())]
        self._start_at = start_at
        return [*last, *failed]

    def _last_report(self) -> list[Instruction]:
        """Tell the farm of no window that it could still lend; what is held ends by its result."""
        self._tabs.forget_free()
        return [ev.Send(self._report())] if self._link.reporting else []

    def _start_when_due(self, now: float) -> list[Instruction]:
        if self._start_at is None or self.draining or now < self._start_at:
            return []
        self._start_at = None
        return [ev.StartBrowser(self._new_epoch())]

    def _opened(self, command_id: str, now: float) -> list[Instruction]:
        tab = self._tabs.opened(command_id, now)
        if tab is None:
            return [_failed(command_id, "it closed while it was being opened")]
        # The report goes first, so that the farm finds the context when it reads the result.
        report: list[Instruction] = []
        if self._link.reporting:
            report.append(ev.Send(self._report()))
        value = {"context_id": tab.context_id}
        if (window_id := self._tabs.window_of(tab.context_id)) is not None:
            value["window_id"] = window_id
        return [*report, _done(command_id, value)]

    def _prepare_failed(self, context_id: str, detail: str, now: float) -> list[Instruction]:
        self._stock.failed(now)
        claimed_by = self._tabs.prepare_failed(context_id)
        return [] if claimed_by is None else [_failed(claimed_by, detail)]

    def _refill(self, now: float) -> list[Instruction]:
        """Bring the windows that are prepared to what they should be, by one."""
        room = self._tabs.room()
        if worn := self._tabs.close_worn(self._recycling, now):
            return worn
        if self._stock.too_many(room, self._capacity):
            return self._tabs.close_prepared(self._stock, most=1)
        kind = self._stock.missing(room, self._capacity, now)
        if kind is None or self.takes_nothing or not self._link.reporting:
            return []
        tab = self._tabs.prepare(kind, now)
        return [ev.PrepareWindow(tab.window_id, tab.context_id, kind.options, kind.resets)]

    # The farm

    def _hello(self, now: float) -> list[Instruction]:
        if self._epoch is None:
            self._link.connected = True
            return []
        self._runs.resend_all()
        running = tuple(run.listing() for run in self._runs.all())
        hello = self._link.hello(self._epoch, running, now, self._user_windows_lost)
        return [ev.Send(hello)]

    def _heard(self, message: wire.ToAgent, now: float) -> list[Instruction]:  # noqa: C901 - a flat table
        match message:
            case wire.Welcome():
                self._link.welcome(message, now)
                self._user_windows_lost = 0
                self._capacity = message.capacity
                self._tabs.touch()
                return self._runs.flush_all()
            case wire.Refused(reason=reason, detail=detail, retry=retry):
                return [] if retry else [ev.Exit(1, f"the farm refused: {reason}: {detail}")]
            case wire.Command():
                return self._command(message, now)
            case wire.Cancel(command_id=command_id, reason=reason):
                return self._cancel(command_id, reason)
            case wire.Intervene():
                return self._intervene(message)
            case wire.Stored():
                return self._runs.stored(message)
            case wire.Drain(deadline_s=deadline_s):
                return self._stop(deadline_s, now)
            case wire.OpenChannel():
                return [self._open_channel(message)]
            case wire.Ping(nonce=nonce):
                self._link.answered(nonce)
                return [ev.Send(wire.Pong(nonce=nonce))]

    def _command(self, command: wire.Command, now: float) -> list[Instruction]:
        match command.body:
            case wire.Release():
                return self._release(command, now)
            case wire.Probe():
                return self._probe(command)
            case _ if self.takes_nothing:
                return [_refusal(command, "draining", self._why_nothing())]
            case _ if not self._link.reporting:
                return [_refusal(command, "busy", "the browser is starting")]
            case wire.OpenWindow() | wire.OpenTab() | wire.CreateFlow():
                return self._open(command, command.body, now)
            case wire.RunPlan():
                return self._run(command, command.body, now)

    def _open(
        self,
        command: wire.Command,
        body: wire.OpenWindow | wire.OpenTab | wire.CreateFlow,
        now: float,
    ) -> list[Instruction]:
        if self._flows_only is not isinstance(body, wire.CreateFlow):
            has, lacks = ("flows", "windows") if self._flows_only else ("windows", "flows")
            return [_refusal(command, "not_understood", f"this agent has {has}, not {lacks}")]
        match body:
            case wire.OpenWindow():
                return self._open_window(command.command_id, body, now)
            case wire.OpenTab(window_id=window_id):
                return self._open_tab(command, window_id)
            case wire.CreateFlow():
                return self._open_flow(command, now)

    def _open_flow(self, command: wire.Command, now: float) -> list[Instruction]:
        if self._tabs.flows >= self._most_flows:
            return [_refusal(command, "busy", f"{self._most_flows} flows are there already")]
        self._tabs.open_flow(command.command_id, now)
        return self._opened(command.command_id, now)

    def _open_window(self, command_id: str, body: wire.OpenWindow, now: float) -> list[Instruction]:
        if body.identity is None:
            self._stock.asked(kind_of(body))
        if self._tabs.claim(command_id, body) is not None:
            return []  # what was to be prepared is what is asked for
        tab = self._tabs.open_window(command_id, body, now)
        resets = body.resets and body.identity is None
        return [ev.OpenWindow(command_id, tab.window_id, tab.context_id, body.options, resets)]

    def _open_tab(self, command: wire.Command, window_id: str) -> list[Instruction]:
        tab = self._tabs.open_tab(command.command_id, window_id)
        if tab is None:
            return [_refusal(command, "unknown_context", f"no window {window_id}")]
        return [ev.OpenTab(command.command_id, window_id, tab.context_id)]

    def _run(self, command: wire.Command, body: wire.RunPlan, now: float) -> list[Instruction]:
        context_id, token = command.context_id, command.token
        if context_id is None or token is None or self._epoch is None:
            return [_refusal(command, "not_understood", "a run needs a context and a token")]
        if self._runs.get(command.command_id) is not None:
            return [ev.Send(wire.Ack(command_id=command.command_id))]  # said twice
        refused = self._tabs.hold(context_id, token, command.command_id, now)
        if refused is not None:
            return [_refusal(command, refused)]
        self._link.highest(token)
        run = Run(
            command_id=command.command_id,
            attempt_id=body.plan.attempt_id,
            context_id=context_id,
            token=token,
            epoch=self._epoch,
            last=body.last,
        )
        self._runs.start(run)
        self._recycling.used()
        window_id = self._tabs.window_of(context_id)
        start = ev.StartRun(run.command_id, context_id, window_id, token, body.plan)
        return [ev.Send(wire.Ack(command_id=command.command_id)), start]

    def _probe(self, command: wire.Command) -> list[Instruction]:
        if command.context_id is not None and command.token is not None:
            refused = self._tabs.deny(command.context_id, command.token)
            if refused is not None:
                return [_refusal(command, refused)]
        return [ev.RunProbe(command.command_id)]

    def _open_channel(self, asked: wire.OpenChannel) -> Instruction:
        if asked.kind not in CHANNELS or self._flows_only:  # a flow shows nothing
            return _no_channel(asked, "not_understood", f"no channels of kind {asked.kind!r}")
        if not self._link.reporting:
            return _no_channel(asked, "unavailable", "the browser is starting")
        if not self._link.is_of(asked.epoch_number):
            return _no_channel(asked, "stale_epoch", "that life of the browser is over")
        if not self._tabs.there(asked.context_id):
            return _no_channel(asked, "unknown_context", f"there is no tab {asked.context_id}")
        return ev.OpenChannel(asked)

    def _cancel(self, command_id: str, reason: str) -> list[Instruction]:
        if self._runs.get(command_id) is None:
            # It never came here, or is long over; whoever still waits for it must not for ever.
            refusal = wire.Ack(
                command_id=command_id, refused="unknown_context", detail="no such run"
            )
            return [ev.Send(refusal)]
        return self._runs.cancel(command_id, reason)

    def _intervene(self, wanted: wire.Intervene) -> list[Instruction]:
        run = self._runs.get(wanted.command_id)
        if wanted.kind not in self._can:
            return [_intervened(wanted.intervention_id, "capability_not_supported")]
        if run is None or not run.running or run.token != wanted.token:
            return [_intervened(wanted.intervention_id, "stale_target", "no such run any more")]
        return [ev.Intervene(run.context_id, wanted)]

    def _release(self, command: wire.Command, now: float) -> list[Instruction]:
        if command.context_id is None:
            return []
        run = self._runs.on(command.context_id)
        if run is not None and run.running:
            if command.token == run.token:
                return self._runs.cancel(run.command_id, "superseded")
            return []
        return self._tabs.release(command.context_id, command.token, now)

    def _run_ended(self, command_id: str, outcome: Outcome, now: float) -> list[Instruction]:
        run = self._runs.get(command_id)
        if run is None:
            return []
        if not run.running:
            return []
        self._quiet_since = now
        then: list[Instruction] = []
        if run.epoch == self._epoch:
            self._tabs.run_ended(run.context_id, page_gone=outcome.page_gone)
            if run.cancel_reason == "superseded":
                # The farm has ended the assignment already; nobody will release it again.
                then = self._tabs.release(run.context_id, run.token, now)
            elif run.last:
                then = self._tabs.retire(run.context_id, self._recycling, now)
        # What follows an attempt comes after its result, and so does what the next one may want.
        return [*self._runs.ended(run, outcome, self._link.welcomed), *then, *self._refill(now)]

    # Time

    def _tick(self, now: float) -> list[Instruction]:
        instructions: list[Instruction] = [*self._runs.flush_due(now, self._link.welcomed)]
        if beat := self._link.heartbeat_due(now):
            instructions.append(ev.Send(beat))
        if self._link.must_give_up(now):
            instructions += self._runs.cancel_all("lost_farm")
            instructions += self._tabs.give_up()
        instructions += self._tabs.close_idle(now)
        if self._epoch is not None and self._looks.is_due(now):
            instructions.append(ev.Look(self._epoch))
        instructions += self._refill(now)
        instructions += self._start_when_due(now)
        instructions += self._weigh(now)
        instructions += self._recycle(now)
        if self._deadline is not None and now >= self._deadline:
            instructions += self._runs.cancel_all("drained")
        return instructions

    def _stop(self, deadline_s: float, now: float) -> list[Instruction]:
        self._tabs.touch()
        if self._deadline is not None:
            self._deadline = min(self._deadline, now + deadline_s)
            return []
        self._deadline, self._quiet_since = now + deadline_s, now
        return [ev.ShowDraining(), *self._tabs.close_prepared(self._stock)]

    def _maybe_leave(self, now: float) -> list[Instruction]:
        if self._deadline is None or self._said_bye or self._runs.any_running():
            return []
        waited_since = self._deadline if self._link.welcomed else self._quiet_since
        if self._runs.all() and now < waited_since + _CONFIRM_S:
            return []
        self._said_bye = True
        lost = self._user_windows_lost + self._tabs.user_windows
        bye = wire.Bye(reason="drained", user_windows_lost=lost)
        return [ev.KillBrowser(), ev.Send(bye), ev.Exit(0)]


def _refusal(command: wire.Command, reason: str, detail: str = "") -> ev.Send:
    ack = {"command_id": command.command_id, "refused": reason, "detail": detail}
    return ev.Send(wire.Ack.model_validate(ack))


def _no_channel(message: wire.OpenChannel, reason: str, detail: str) -> ev.Send:
    refused = {"channel_id": message.channel_id, "reason": reason, "detail": detail}
    return ev.Send(wire.ChannelRefused.model_validate(refused))


def _failed(command_id: str, detail: str) -> ev.Send:
    failure = Failure(reason=Reason.INTERNAL, detail=detail[:2000])
    return ev.Send(wire.Result(command_id=command_id, outcome="failed", failure=failure))


def _intervened(
    intervention_id: str, outcome: wire.InterventionOutcome, detail: str = ""
) -> ev.Send:
    return ev.Send(
        wire.Intervened(intervention_id=intervention_id, outcome=outcome, detail=detail[:500])
    )


def _done(command_id: str, value: dict[str, str] | None = None) -> ev.Send:
    return ev.Send(wire.Result(command_id=command_id, outcome="succeeded", value=value or {}))
