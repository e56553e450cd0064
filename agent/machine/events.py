"""What goes into the machine and what comes out of it."""

from dataclasses import dataclass

from farm.protocol import messages as wire
from farm.protocol.failures import Failure
from farm.protocol.plan import BrowserOptions, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended.

    `page_gone`: the tab it ran on is closed, with its window if that was the window's only tab.
    """

    outcome: str
    """`succeeded`, `failed`, `cancelled` or `timed_out`."""
    failure: Failure | None = None
    page_gone: bool = False


# Events


@dataclass(frozen=True, slots=True)
class BrowserStarted:
    """A new life of the browser has begun, under this name."""

    epoch: str
    product: str


@dataclass(frozen=True, slots=True)
class BrowserFailed:
    """The browser could not be started."""

    detail: str


@dataclass(frozen=True, slots=True)
class BrowserLost:
    """The browser or its driver ended; nothing of this epoch is left."""

    detail: str


@dataclass(frozen=True, slots=True)
class TabGone:
    """A tab closed, whoever closed it."""

    context_id: str


@dataclass(frozen=True, slots=True)
class TabCrashed:
    """A tab's renderer died; the page is dead for ever."""

    context_id: str


@dataclass(frozen=True, slots=True)
class WindowGone:
    """A window closed, with all its tabs."""

    window_id: str


@dataclass(frozen=True, slots=True)
class Stirred:
    """Windows or tabs have come or gone of which nothing else is told: look at them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTab:
    """One tab, as the browser has it. Nothing is known of what is in it."""

    key: str
    """The browser's own name of it."""
    context_id: str | None = None
    """What it is called, if the farm has asked for it."""
    opener: str | None = None
    """The tab whose task it belongs to."""
    front: bool = False
    """It is the one its window shows."""
    crashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWindow:
    """One window, as people see it."""

    key: str
    window_id: str | None
    """The worker's window it is, or is a popup of; None is a person's."""
    bounds: wire.Bounds | None = None
    tabs: tuple[SeenTab, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """Every window and tab there is in the life of the browser that has this name."""

    epoch: str
    windows: tuple[SeenWindow, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A window or tab that a command asked for is there."""

    command_id: str


@dataclass(frozen=True, slots=True)
class OpenFailed:
    """A window or tab that a command asked for could not be opened."""

    command_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A window that was to be prepared is there, with this tab."""

    context_id: str


@dataclass(frozen=True, slots=True)
class PrepareFailed:
    """A window that was to be prepared could not be opened."""

    context_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class Weighed:
    """How much memory a browser life has: all of it, and its heaviest renderer."""

    epoch: str
    browser_mb: float
    renderer_mb: float


@dataclass(frozen=True, slots=True)
class Reset:
    """A tab is as new, or can't be made so."""

    context_id: str
    clean: bool


@dataclass(frozen=True, slots=True)
class Noted:
    """A run has something to tell; `urgent` where it waits until the farm has it."""

    command_id: str
    event: wire.AttemptEvent
    at: float
    """The wall clock's time."""
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over."""

    command_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Probed:
    """The self-test is over; `failure` is empty where it went well."""

    command_id: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Intervened:
    """What became of an intervention."""

    intervention_id: str
    outcome: wire.InterventionOutcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LinkUp:
    """There is a connection to the farm; say hello."""


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The connection is gone."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The farm said something."""

    message: wire.ToAgent


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; comes several times a second."""


@dataclass(frozen=True, slots=True)
class DiskChanged:
    """There is too little room for anything new, and what is short; or there is enough again."""

    short: str | None


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Somebody wants this process to end; a second time: now."""

    deadline_s: float


Event = (
    BrowserStarted
    | BrowserFailed
    | BrowserLost
    | TabGone
    | TabCrashed
    | WindowGone
    | Stirred
    | Seen
    | Opened
    | OpenFailed
    | Prepared
    | PrepareFailed
    | Reset
    | Weighed
    | Noted
    | RunEnded
    | Probed
    | Intervened
    | LinkUp
    | LinkDown
    | Heard
    | Tick
    | DiskChanged
    | StopRequested
)

# Instructions


@dataclass(frozen=True, slots=True)
class StartBrowser:
    """Start the browser; answer with `BrowserStarted` or `BrowserFailed`."""

    epoch: str


@dataclass(frozen=True, slots=True)
class KillBrowser:
    """End the browser with all it has."""


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """Open a window with one tab; answer with `Opened` or `OpenFailed`."""

    command_id: str
    window_id: str
    context_id: str
    options: BrowserOptions
    resets: bool = False
    """It may be cleaned and lent again."""


@dataclass(frozen=True, slots=True)
class PrepareWindow:
    """Open a window nobody has asked for yet; answer with `Prepared` or `PrepareFailed`."""

    window_id: str
    context_id: str
    options: BrowserOptions
    resets: bool = False
    """It may be cleaned and lent again."""


@dataclass(frozen=True, slots=True)
class OpenTab:
    """Open a tab in a window; answer with `Opened` or `OpenFailed`."""

    command_id: str
    window_id: str
    context_id: str


@dataclass(frozen=True, slots=True)
class Look:
    """See which windows and tabs there are; answer with `Seen` of this epoch."""

    epoch: str


@dataclass(frozen=True, slots=True)
class Weigh:
    """See how much memory this browser life has; `Weighed` follows, if it lasts until then."""

    epoch: str


@dataclass(frozen=True, slots=True)
class Recycle:
    """Show people that the browser will be replaced, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class ResetTab:
    """Make a tab as a new one; answer with `Reset`."""

    context_id: str


@dataclass(frozen=True, slots=True)
class CloseTab:
    """Close a tab; `TabGone` follows."""

    context_id: str


@dataclass(frozen=True, slots=True)
class CloseWindow:
    """Close a window; `WindowGone` follows."""

    window_id: str


@dataclass(frozen=True, slots=True)
class StartRun:
    """Run a plan on a tab or flow; answer with `RunEnded`."""

    command_id: str
    context_id: str
    window_id: str | None
    """None is a flow, which has none."""
    token: wire.Token
    plan: Plan


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Stop a run; `RunEnded` follows."""

    command_id: str


@dataclass(frozen=True, slots=True)
class Intervene:
    """Do to the run on a tab what a person wants; answer with `Intervened`."""

    context_id: str
    wanted: wire.Intervene


@dataclass(frozen=True, slots=True)
class Settled:
    """Everything a run has told up to `seq` is durable; who waits for it may go on."""

    command_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Disown:
    """The farm waits for nothing more of a run; who waits for `Settled` must give up."""

    command_id: str


@dataclass(frozen=True, slots=True)
class RunProbe:
    """Do the self-test; answer with `Probed`."""

    command_id: str


@dataclass(frozen=True, slots=True)
class OpenChannel:
    """Dial a data channel, and serve it until it ends; nothing answers."""

    asked: wire.OpenChannel


@dataclass(frozen=True, slots=True)
class ShowDraining:
    """Show people that nothing new will be taken."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message on the current link."""

    message: wire.FromAgent


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process; everything is done, or hopeless."""

    code: int
    detail: str = ""


Instruction = (
    StartBrowser
    | KillBrowser
    | OpenWindow
    | PrepareWindow
    | OpenTab
    | ResetTab
    | Weigh
    | Recycle
    | Look
    | CloseTab
    | CloseWindow
    | StartRun
    | CancelRun
    | Intervene
    | Settled
    | Disown
    | RunProbe
    | OpenChannel
    | ShowDraining
    | Send
    | Exit
)
