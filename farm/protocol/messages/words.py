"""What the messages of both directions are made of."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PROTOCOL = 1
ContextState = Literal["active", "idle", "loading", "crashed", "closing"]
Owner = Literal["worker", "user"]
Intervention = Literal["pause", "resume", "message", "takeover", "hand_back"]
"""What a person can do to a running attempt, beside stopping it; `hello` says which of them an
agent can do."""
InterventionOutcome = Literal["applied", "capability_not_supported", "stale_target", "out_of_place"]
"""What became of an intervention: the last one is of who asks for what does not follow from the
state, such as a hand back where nobody has taken over; nothing has changed then."""


class Message(BaseModel):
    """Unknown fields are ignored, so that an older peer survives a newer one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Token(Message):
    """A fencing token: ordered by store epoch, then by counter."""

    store_epoch: int = Field(ge=0, lt=10**18)
    counter: int = Field(ge=0, lt=10**18)


class Capacity(Message):
    """What an agent may hold; `max_concurrency` None is unannounced and counts as full.

    0 is refused by name, and so it has to be readable.
    """

    max_concurrency: int | None = Field(default=None, ge=0)
    max_windows: int = Field(default=1, ge=1)
    max_tabs_per_window: int = Field(default=1, ge=1)
    max_flows: int = Field(default=0, ge=0)


class Running(Message):
    """An attempt the agent is still on, or whose result it still holds."""

    command_id: str
    attempt_id: str
    context_id: str
    token: Token
    epoch: str = ""
    """The browser life it ran in."""


class Bounds(Message):
    """Where a window is on its screen, in pixels."""

    left: int
    top: int
    width: int
    height: int


class WindowReport(Message):
    """One browser window, in exactly one identity.

    That of a worker is its identity: popups that the browser shows in frames of their own are tabs
    of it. That of a person (`owner` is `user`) is what the person sees as one.
    """

    window_id: str
    identity: str | None = None
    profile: str = ""
    """The options it was opened with, as the farm named them in `open_window`."""
    owner: Owner = "worker"
    bounds: Bounds | None = None
    """Where it is known."""
    prepared: bool = False
    """The agent opened it by itself, before anybody asked, and nobody has had it yet."""


class ContextReport(Message):
    """One tab, or one console flow (which has no window)."""

    context_id: str
    window_id: str | None = None
    owner: Owner = "worker"
    state: ContextState = "idle"
    clean: bool = True
    token: Token | None = None
    """The assignment the agent believes to hold here."""
    opener: str | None = None
    """The context whose task it belongs to: a page of that one, or a person in its window, has
    opened it. It is never lent, and goes with its task."""
