"""The lives of the browser: started, weighed, recycled, lost and started again."""

from collections.abc import Callable

from agent.machine import events as ev
from agent.machine.answers import failed
from agent.machine.events import Instruction
from agent.machine.known import Known
from agent.machine.restarts import Restarts

_RESTARTS = 3
"""So many times in a row the browser may fail to start before the agent gives up."""
_WEIGH_S = 30.0
"""How often a browser is weighed."""


class BrowserLives:
    """Decides when a browser is started, weighed and replaced."""

    def __init__(self, known: Known, new_epoch: Callable[[], str]) -> None:
        self._known = known
        self._link, self._tabs, self._runs = known.link, known.tabs, known.runs
        self._recycling = known.recycling
        self._new_epoch = new_epoch
        self._restarts = Restarts()
        self._start_at: float | None = None
        """When the next browser is to be started, where that is not at once."""
        self._weigh_at = 0.0
        self._failed_starts = 0
        self._started_once = False
        self.user_windows_lost = 0
        """Windows of people's that went with the last browser; told by the next `hello`."""

    def begin(self) -> list[Instruction]:
        """Start the first one."""
        return [ev.StartBrowser(self._new_epoch())]

    def started(self, event: ev.BrowserStarted, now: float) -> list[Instruction]:
        """A life has begun: the farm is told."""
        self._recycling.begin(now)
        self._restarts.began(now)
        self._weigh_at = now + _WEIGH_S
        self._failed_starts = 0
        self._started_once = True
        self._known.epoch = event.epoch
        self._link.browser = event.product
        return self.hello(now) if self._link.connected else []

    def failed_to_start(self, detail: str) -> list[Instruction]:
        """Try again, unless it has never gone well or has failed too often."""
        self._failed_starts += 1
        if not self._started_once or self._failed_starts >= _RESTARTS:
            return [ev.Exit(1, detail)]
        return [ev.StartBrowser(self._new_epoch())]

    def recycle(self, now: float) -> list[Instruction]:
        """Replace a browser that has served long enough, when nothing is in its way."""
        if self._known.epoch is None or self._known.draining:
            return []
        if self._recycling.starts_to_drain(now, kept=self._tabs.keeps_something()):
            self._tabs.touch()
            reason = self._recycling.reason or ""
            return [ev.Recycle(reason), *self._tabs.close_prepared(self._known.stock)]
        if self._runs.any_running() or not self._recycling.is_over(now, held=self._tabs.held()):
            return []
        return [ev.KillBrowser(), *self._end(None)]

    def lost(self, now: float) -> list[Instruction]:
        """The browser has ended by itself."""
        return self._end(self._restarts.lost(now))

    def weigh(self, now: float) -> list[Instruction]:
        """Have it weighed when that is due, where its memory decides how long it serves."""
        if self._known.epoch is None or not self._recycling.wants_weighing():
            return []
        if now < self._weigh_at:
            return []
        self._weigh_at = now + _WEIGH_S
        return [ev.Weigh(self._known.epoch)]

    def _end(self, start_at: float | None) -> list[Instruction]:
        """Nothing of the epoch is left; begin the next one, at once or by the clock."""
        self.user_windows_lost += self._tabs.user_windows
        last = self._last_report()
        unopened: list[Instruction] = [
            failed(command_id, "the browser ended") for command_id in self._tabs.lost()
        ]
        self._known.epoch = None
        self._known.looks.clear()
        self._link.forget_epoch()
        if self._known.draining:
            return [*last, *unopened]
        if start_at is None:
            return [*last, *unopened, ev.StartBrowser(self._new_epoch())]
        self._start_at = start_at
        return [*last, *unopened]

    def _last_report(self) -> list[Instruction]:
        """Tell the farm of no window that it could still lend; what is held ends by its result."""
        self._tabs.forget_free()
        return [self._known.report()] if self._link.reporting else []

    def start_when_due(self, now: float) -> list[Instruction]:
        """Start the next one, where its predecessor has not lasted and it had to wait."""
        if self._start_at is None or self._known.draining or now < self._start_at:
            return []
        self._start_at = None
        return [ev.StartBrowser(self._new_epoch())]

    def hello(self, now: float) -> list[Instruction]:
        """Say hello for the life there is; without one, when it begins."""
        if self._known.epoch is None:
            self._link.connected = True
            return []
        self._runs.resend_all()
        running = tuple(run.listing() for run in self._runs.all())
        hello = self._link.hello(self._known.epoch, running, now, self.user_windows_lost)
        return [ev.Send(hello)]
