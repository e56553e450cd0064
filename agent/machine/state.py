"""What the machine remembers: tabs, windows and runs."""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from agent.machine.events import Outcome
from agent.machine.stock import Kind
from farm.protocol import messages as wire


class TabState(StrEnum):
    """Where a tab is in its life. A tab that is gone has no entry."""

    OPENING = "opening"
    IDLE = "idle"
    BUSY = "busy"
    RESETTING = "resetting"
    """It is being made as a new one."""
    CRASHED = "crashed"
    CLOSING = "closing"


@dataclass(slots=True, kw_only=True)
class Tab:
    """One tab."""

    context_id: str
    window_id: str
    state: TabState = TabState.OPENING
    token: wire.Token | None = None
    """The assignment it is held under."""
    command_id: str | None = None
    """The command that opens it, or the run on it."""
    reset: bool = False
    """It is as new, and nothing has run on it since."""
    gone: bool = False
    """Its page is no more; it is kept while its assignment holds."""


@dataclass(slots=True, kw_only=True)
class Window:
    """One window; `identity` None is anonymous: it goes with the assignment of its tab.

    A flow is here as a window of one tab that is in no report. It is nobody's identity, but stays:
    nothing of a run is left in it, as each run brings its own.
    """

    window_id: str
    identity: str | None
    kind: Kind
    used_at: float
    closing: bool = False
    flow: bool = False
    prepared: bool = False
    """It is clean and waits for whoever asks first."""
    uses: int = 0
    """Runs it has had."""
    opened_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class Run:
    """One attempt, from its command until the farm has its result."""

    command_id: str
    attempt_id: str
    context_id: str
    token: wire.Token
    epoch: str
    last: bool = False
    """Nothing more is run under its token."""
    last_seq: int = 0
    sent_seq: int = 0
    """Sent on the current link up to here."""
    unstored: deque[wire.Entry] = field(default_factory=deque)
    outcome: Outcome | None = None
    result_sent: bool = False
    cancel_reason: str | None = None
    forgotten: bool = False
    """The farm wants to hear nothing more of it, not even its end."""
    due_at: float | None = None
    """When what has not been sent is to be sent at the latest."""

    @property
    def running(self) -> bool:
        """Tell whether it has not ended."""
        return self.outcome is None

    def note(self, event: wire.AttemptEvent, *, at: float, due_at: float) -> int:
        """Keep an event under the next number, and return that."""
        self.last_seq += 1
        self.unstored.append(wire.Entry(seq=self.last_seq, at=at, event=event))
        if self.due_at is None or due_at < self.due_at:
            self.due_at = due_at
        return self.last_seq

    def stored(self, seq: int) -> None:
        """Forget what is durable; what was sent beyond it and is not, is sent again."""
        while self.unstored and self.unstored[0].seq <= seq:
            self.unstored.popleft()

    def unsent(self) -> tuple[wire.Entry, ...]:
        """Take what has not been sent on this link."""
        entries = tuple(entry for entry in self.unstored if entry.seq > self.sent_seq)
        self.sent_seq = self.last_seq
        self.due_at = None
        return entries

    def listing(self) -> wire.Running:
        """Return what `hello` says of it."""
        return wire.Running(
            command_id=self.command_id,
            attempt_id=self.attempt_id,
            context_id=self.context_id,
            token=self.token,
            epoch=self.epoch,
        )
