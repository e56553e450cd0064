"""The machine itself; see the package's docstring."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.machine import events as ev
from agent.machine.answers import done, failed, intervened
from agent.machine.browser import BrowserLives
from agent.machine.commands import Commands
from agent.machine.events import Event, Instruction, Outcome
from agent.machine.known import Known
from agent.machine.link import LinkState
from agent.machine.recycling import FOR_EVER, Limits, Recycling
from agent.machine.runs import Runs
from agent.machine.stock import Stock
from agent.machine.surroundings import Looks
from agent.machine.tabs import Tabs
from farm.protocol import messages as wire
from farm.protocol.plan import BrowserOptions

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
        known = self._known = Known(
            link=LinkState(profile.hello),
            tabs=Tabs(identity_idle_s=profile.identity_idle_s),
            runs=Runs(),
            stock=Stock(profile.prepared_windows, profile.prepared_options),
            recycling=Recycling(profile.limits),
            looks=Looks(profile.look_s),
        )
        self._link, self._tabs, self._runs = known.link, known.tabs, known.runs
        self._stock, self._recycling, self._looks = known.stock, known.recycling, known.looks
        self._lives = BrowserLives(known, new_epoch)
        self._commands = Commands(known, profile.hello)
        self._capacity = profile.hello.capacity
        """As negotiated; until then, as offered."""
        self._quiet_since = 0.0
        """When a stopping agent was asked to stop, or its last run ended since."""
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
        """Tell whether the agent is to leave, and takes nothing new."""
        return self._known.draining

    def may_act(self, now: float) -> bool:
        """Tell whether the farm can't have taken us for gone yet."""
        return self._link.may_act(now)

    def begin(self) -> list[Instruction]:
        """Return what to do first."""
        return self._lives.begin()

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """Take in one event; return what to do about it, in order."""
        instructions = self._react(event, now)
        # What nobody waits for comes with what is urgent, or with the next tick.
        due = self._tabs.urgent or (self._tabs.changed and isinstance(event, ev.Tick))
        if due and self._link.reporting:
            instructions.append(self._known.report())
        return [*instructions, *self._maybe_leave(now)]

    def _react(self, event: Event, now: float) -> list[Instruction]:  # noqa: C901 - a flat table
        match event:
            case ev.BrowserStarted():
                return self._lives.started(event, now)
            case ev.BrowserFailed(detail):
                return self._lives.failed_to_start(detail)
            case ev.BrowserLost():
                return self._lives.lost(now)
            case ev.TabGone(context_id):
                self._tabs.tab_gone(context_id)
            case ev.TabCrashed(context_id):
                return self._tabs.tab_crashed(context_id)
            case ev.WindowGone(window_id):
                self._tabs.window_gone(window_id)
            case ev.Stirred():
                self._looks.stir(now)
            case ev.Seen(epoch, windows):
                if self._looks.looked() and epoch == self._known.epoch:
                    self._tabs.see(windows)
            case ev.Opened(command_id):
                return self._known.opened(command_id, now)
            case ev.OpenFailed(command_id, detail):
                self._tabs.open_failed(command_id)
                return [failed(command_id, detail)]
            case ev.Prepared(context_id):
                claimed_by = self._tabs.prepared(context_id, now)
                return [] if claimed_by is None else self._known.opened(claimed_by, now)
            case ev.PrepareFailed(context_id, detail):
                return self._prepare_failed(context_id, detail, now)
            case ev.Weighed(epoch=epoch):
                if epoch == self._known.epoch:
                    self._recycling.weighed(event)
            case ev.Reset(context_id, clean):
                return self._tabs.reset(context_id, clean=clean, now=now)
            case ev.Noted():
                return self._runs.noted(event, now, self._link.welcomed)
            case ev.RunEnded(command_id, outcome):
                return self._run_ended(command_id, outcome, now)
            case ev.Probed(command_id, failure):
                return [failed(command_id, failure) if failure else done(command_id)]
            case ev.Intervened(intervention_id, outcome, detail):
                return [intervened(intervention_id, outcome, detail)]
            case ev.LinkUp():
                return self._lives.hello(now)
            case ev.LinkDown():
                self._link.down()
            case ev.Heard(message):
                return self._heard(message, now)
            case ev.Tick():
                return self._tick(now)
            case ev.DiskChanged(short):
                self._known.short = short
                self._tabs.touch()
            case ev.StopRequested(deadline_s):
                return self._stop(deadline_s, now)
        return []

    # Windows that are prepared

    def _prepare_failed(self, context_id: str, detail: str, now: float) -> list[Instruction]:
        self._stock.failed(now)
        claimed_by = self._tabs.prepare_failed(context_id)
        return [] if claimed_by is None else [failed(claimed_by, detail)]

    def _refill(self, now: float) -> list[Instruction]:
        """Bring the windows that are prepared to what they should be, by one."""
        room = self._tabs.room()
        if worn := self._tabs.close_worn(self._recycling, now):
            return worn
        if self._stock.too_many(room, self._capacity):
            return self._tabs.close_prepared(self._stock, most=1)
        kind = self._stock.missing(room, self._capacity, now)
        if kind is None or self._known.takes_nothing or not self._link.reporting:
            return []
        tab = self._tabs.prepare(kind, now)
        return [ev.PrepareWindow(tab.window_id, tab.context_id, kind.options, kind.resets)]

    # The farm

    def _heard(self, message: wire.ToAgent, now: float) -> list[Instruction]:  # noqa: C901 - a flat table
        match message:
            case wire.Welcome():
                self._link.welcome(message, now)
                self._lives.user_windows_lost = 0
                self._capacity = message.capacity
                self._tabs.touch()
                return self._runs.flush_all()
            case wire.Refused(reason=reason, detail=detail, retry=retry):
                return [] if retry else [ev.Exit(1, f"the farm refused: {reason}: {detail}")]
            case wire.Command():
                return self._commands.command(message, now)
            case wire.Cancel(command_id=command_id, reason=reason):
                return self._commands.cancel(command_id, reason)
            case wire.Intervene():
                return self._commands.intervene(message)
            case wire.Stored():
                return self._runs.stored(message)
            case wire.Drain(deadline_s=deadline_s):
                return self._stop(deadline_s, now)
            case wire.OpenChannel():
                return [self._commands.open_channel(message)]
            case wire.Ping(nonce=nonce):
                self._link.answered(nonce)
                return [ev.Send(wire.Pong(nonce=nonce))]

    def _run_ended(self, command_id: str, outcome: Outcome, now: float) -> list[Instruction]:
        run = self._runs.get(command_id)
        if run is None or not run.running:
            return []
        self._quiet_since = now
        then: list[Instruction] = []
        if run.epoch == self._known.epoch:
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
        if self._known.epoch is not None and self._looks.is_due(now):
            instructions.append(ev.Look(self._known.epoch))
        instructions += self._refill(now)
        instructions += self._lives.start_when_due(now)
        instructions += self._lives.weigh(now)
        instructions += self._lives.recycle(now)
        if self._known.deadline is not None and now >= self._known.deadline:
            instructions += self._runs.cancel_all("drained")
        return instructions

    def _stop(self, deadline_s: float, now: float) -> list[Instruction]:
        self._tabs.touch()
        if self._known.deadline is not None:
            self._known.deadline = min(self._known.deadline, now + deadline_s)
            return []
        self._known.deadline, self._quiet_since = now + deadline_s, now
        return [ev.ShowDraining(), *self._tabs.close_prepared(self._stock)]

    def _maybe_leave(self, now: float) -> list[Instruction]:
        if self._known.deadline is None or self._said_bye or self._runs.any_running():
            return []
        waited_since = self._known.deadline if self._link.welcomed else self._quiet_since
        if self._runs.all() and now < waited_since + _CONFIRM_S:
            return []
        self._said_bye = True
        lost = self._lives.user_windows_lost + self._tabs.user_windows
        bye = wire.Bye(reason="drained", user_windows_lost=lost)
        return [ev.KillBrowser(), ev.Send(bye), ev.Exit(0)]
