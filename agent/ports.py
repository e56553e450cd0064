"""What the runner needs from the world, and what the steps need from the runner."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agent.machine.events import (
    BrowserLost,
    Heard,
    LinkDown,
    LinkUp,
    Outcome,
    SeenTab,
    SeenWindow,
    Stirred,
    TabCrashed,
    TabGone,
    WindowGone,
)
from farm.protocol.failures import Reason
from farm.protocol.identities import Lent
from farm.protocol.messages import AttemptEvent, FromAgent, Intervene, Token
from farm.protocol.plan import BrowserOptions, Plan
from farm.protocol.recordings import RecordingKind


class ProxyFault(StrEnum):
    """How a proxy that a window's pages go through failed them; the values are notices' codes."""

    UNREACHABLE = "proxy_unreachable"
    AUTH_REFUSED = "proxy_auth_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """A request of the page that the egress proxy answered itself."""

    url: str
    """Without query and fragment; `host:port` for what was to be a tunnel, as for https."""
    reason: str
    unreachable: bool = False
    """The policy allowed it, but nobody answered there."""
    proxy: ProxyFault | None = None
    """It was the proxy further out that failed."""


Bare = Callable[[], AbstractAsyncContextManager[None]]
"""Makes a context in which the page has nothing in it that is not its own."""


class Control(Protocol):
    """Who has control of the tab, as far as steps need to know."""

    async def gate(self) -> None:
        """Return when automation has control; to be called between two steps."""
        ...

    async def ask(self, request: str) -> None:
        """Let a person in to do something, and return when they hand the tab back."""
        ...

    def acting(self) -> AbstractAsyncContextManager[None]:
        """Let automation's mouse and keys reach the page meanwhile; without it they are dropped."""
        ...


class Handed(Protocol):
    """A file that a page hands out."""

    name: str
    """As the page suggests it; it may be anything."""

    async def saved(self, max_bytes: int) -> Path:
        """Return where it is once it is whole.

        Raises:
            UploadRefused: `artifact_too_large`, and it has been broken off; or `download_failed`.
        """
        ...

    async def discard(self) -> None:
        """Break it off and delete it; never raises."""
        ...


class Files(Protocol):
    """Files of an attempt on the disk of this machine, until the attempt ends."""

    def expecting(self) -> AbstractContextManager[asyncio.Future[Handed]]:
        """Take the next file that a page of the attempt hands out; else it is cancelled."""
        ...

    async def folder(self) -> Path:
        """Return a folder of the attempt's own."""
        ...


class Evidence(Protocol):
    """Where a run says what it does. Implemented by the runner, used by the steps."""

    async def note(self, event: AttemptEvent) -> None:
        """Keep an event; it is sent soon, in order, and again until stored. Returns at once."""
        ...

    async def settle(self, event: AttemptEvent) -> None:
        """Keep an event and return only when the farm has it durably.

        Raises:
            StaleAssignment: If the farm says that the attempt has ended.
        """
        ...

    async def upload(
        self,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        """Store a file as an artifact of the attempt; return the name it was given.

        With `recording` it is that which the farm waits for.

        Raises:
            UploadRefused: If the farm has no room for it, or it is too large.
            StaleAssignment: If the farm says that the attempt has ended.
        """
        ...

    async def fetch(self, reference: str, into: Path, max_bytes: int) -> Path:
        """Bring a file of the farm into a new folder; return where it is, under its own name.

        Raises:
            UploadRefused: `value_invalid` if the namespace has no such file; `artifact_too_large`.
            StaleAssignment: If the farm says that the attempt has ended.
        """
        ...


class StaleAssignment(Exception):  # noqa: N818 - an outcome of asking, not a fault
    """The attempt has ended for the farm; stop, and touch nothing more."""


class UploadRefused(Exception):  # noqa: N818
    """A file was not passed on.

    `reason` is that of the failure, such as `artifact_store_full` or `artifact_too_large`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class BorrowRefused(Exception):  # noqa: N818 - an outcome of asking
    """What a run borrows was not lent, or not taken back; `detail` quotes nothing of it."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Lender(Protocol):
    """Lends to one run. What is secret passes here and by no other way."""

    async def borrow(self) -> Lent:
        """Return the saved state and the proxy of the attempt.

        Raises:
            BorrowRefused: If the farm has them no more, can't read them, or is not there.
            StaleAssignment: If the attempt has ended for the farm.
        """
        ...

    async def give_back(self, state: bytes) -> None:
        """Have a storage state (JSON, UTF-8) kept in the place of the one lent, whole.

        Raises:
            BorrowRefused: If it is too large, or the farm is not there: the old one stays.
            StaleAssignment: If the attempt has ended for the farm: the old one stays.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserInfo:
    """What was started."""

    product: str
    """Such as `HeadlessChrome/156.0.1`."""
    executable: str
    pid: int


class Channel(Protocol):
    """One data channel to the farm, open until either side ends it."""

    async def send(self, message: str, payload: bytes | None = None) -> None:
        """Send a JSON text, with or without bytes beside it; waits while nothing more is taken.

        Raises:
            ChannelClosed: If it is over.
        """
        ...

    def receive(self) -> AsyncIterator[tuple[str | bytes, memoryview | None]]:
        """Yield what the farm sends, not yet parsed; ends with the channel.

        Raises:
            ChannelClosed: If what comes can't be told apart.
        """
        ...


class Channels(Protocol):
    """Dials data channels."""

    def dial(self, channel_id: str) -> AbstractAsyncContextManager[Channel]:
        """Open a channel the farm has asked for, for as long as the block lasts.

        Raises:
            ChannelClosed: If the farm does not take it.
        """
        ...


class ChannelClosed(Exception):  # noqa: N818 - every channel ends
    """A data channel is over; the text says why."""


BrowserEvent = TabGone | TabCrashed | WindowGone | Stirred | BrowserLost


class Host(Protocol):
    """What plans run in, a browser or a host of flows, one life after another.

    `start` begins an epoch; `BrowserLost` or `kill` ends it.
    """

    async def start(self, tell: Callable[[BrowserEvent], None]) -> BrowserInfo:
        """Begin a life, and test it by a page; its events go to `tell`.

        Raises:
            BrowserUnavailable: If that can't be; says what was tried.
        """
        ...

    async def run(self, context_id: str, plan: Plan, evidence: Evidence, lender: Lender) -> Outcome:
        """Run a plan on a tab or flow, to the end or until cancelled, with what it borrows.

        Never raises for what a page does. If cancelled, the tab is closed before the cancellation
        goes on. Whatever is not a success leaves the tab closed.
        """
        ...

    async def drain(self) -> None:
        """Show people that nothing new will be taken, headed only; never fails."""
        ...

    async def probe(self) -> None:
        """Open a page of its own, read something of it and close it; raises if that can't be."""
        ...

    async def kill(self) -> None:
        """End the life with everything that was started in it, now."""
        ...


class Browser(Host, Protocol):
    """A host with windows and tabs, which have to be opened."""

    async def open_window(
        self, window_id: str, context_id: str, options: BrowserOptions, *, resets: bool = False
    ) -> None:
        """Open a window of a new identity with one tab, under the names given.

        With `resets` the tab may be asked to `reset` later.
        """
        ...

    async def open_tab(self, window_id: str, context_id: str) -> None:
        """Open one more tab in a window."""
        ...

    async def intervene(self, context_id: str, wanted: Intervene) -> None:
        """Do to the run on a tab what a person wants; it takes effect between two steps.

        Raises:
            OutOfPlaceError: If it does not follow from who has control now; nothing has changed.
            KeyError: If no run is on the tab.
        """
        ...

    async def look(self) -> tuple[SeenWindow, ...]:
        """See which windows and tabs there are, those of people too.

        Never fails: where the browser does not say in time, it is what was seen last.
        """
        ...

    async def weigh(self) -> tuple[float, float]:
        """Return how many MB the browser has, and how many its heaviest renderer has; 0 if none."""
        ...

    async def reset(self, context_id: str) -> bool:
        """Make the only tab of a window as a new one, in bounded time.

        Tells whether nothing is left of what ran there; if not, the window must be closed.
        """
        ...

    async def close_tab(self, context_id: str) -> None:
        """Close a tab; escalates to its window and to `kill` within bounded time."""
        ...

    async def close_window(self, window_id: str) -> None:
        """Close a window and all its tabs; escalates to `kill` within bounded time."""
        ...

    async def watch(self, context_id: str, channel: Channel) -> None:
        """Show a tab on a channel, and do in it what people in control do, until either ends.

        Never raises for what a page, the browser or the farm does.
        """
        ...


class BrowserUnavailable(Exception):  # noqa: N818
    """No browser can be found or started; the text says what was tried and what would help."""


class Link(Protocol):
    """The connection to the farm: dials, and dials again, until cancelled."""

    async def run(self, tell: Callable[[LinkUp | LinkDown | Heard], None]) -> None:
        """Keep a connection; say when there is one, what comes over it, and when it is lost.

        Raises:
            LinkRefused: If the farm does not know the token; dialling again would not help.
        """
        ...

    async def send(self, message: FromAgent) -> None:
        """Send on the current link; does nothing while there is none."""
        ...


class LinkRefused(Exception):  # noqa: N818
    """The farm will not let this agent in."""


class Loans(Protocol):
    """Where attempts borrow."""

    def of(self, attempt_id: str, token: Token) -> Lender:
        """Return who lends to an attempt, under its token."""
        ...


class Uploads(Protocol):
    """Where the files of attempts go, and come from."""

    async def upload(
        self,
        attempt_id: str,
        token: Token,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        """Store a file; see `Evidence.upload`."""
        ...

    async def fetch(
        self, attempt_id: str, token: Token, reference: str, into: Path, max_bytes: int
    ) -> Path:
        """Bring a file; see `Evidence.fetch`."""
        ...


__all__ = [
    "Bare",
    "BorrowRefused",
    "Browser",
    "BrowserEvent",
    "BrowserInfo",
    "BrowserLost",
    "BrowserUnavailable",
    "Channel",
    "ChannelClosed",
    "Channels",
    "Control",
    "Denied",
    "Evidence",
    "Files",
    "Handed",
    "Host",
    "Lender",
    "Link",
    "LinkRefused",
    "Loans",
    "Outcome",
    "ProxyFault",
    "SeenTab",
    "SeenWindow",
    "StaleAssignment",
    "Stirred",
    "TabCrashed",
    "TabGone",
    "UploadRefused",
    "Uploads",
    "WindowGone",
]
