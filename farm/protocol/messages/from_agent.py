"""Agent to farm."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, field_validator

from farm.protocol.failures import Failure
from farm.protocol.messages.evidence import Entry
from farm.protocol.messages.words import (
    PROTOCOL,
    Capacity,
    ContextReport,
    InterventionOutcome,
    Message,
    Running,
    Token,
    WindowReport,
)


class Hello(Message):
    """First message on a link, and again when the agent's browser has begun a new life."""

    op: Literal["hello"] = "hello"
    protocol: int = PROTOCOL
    client_id: str = Field(min_length=1, max_length=128)
    client_type: Literal["browser", "console", "mobile", "web"] = "browser"
    instance: str
    """One life of the agent process; a second process under one client_id is told by it."""
    epoch: str
    """One life of the browser."""
    namespaces: tuple[str, ...] = ("default",)
    task_queue: str = "default"
    activity_types: tuple[str, ...] = ("job",)
    node: str | None = None
    deployment: str | None = Field(default=None, max_length=128)
    """What it was rolled out as; none for one started by hand."""
    metadata: dict[str, Any] = Field(default={})
    capacity: Capacity = Capacity()
    capabilities: tuple[str, ...] = ()
    """The interventions it can do; one that is not named here is never sent."""
    highest_token: Token | None = None
    running: tuple[Running, ...] = ()
    browser: str | None = None
    """Product and version, for people."""
    user_windows_lost: int = Field(default=0, ge=0)
    """So many windows of a person's went with the browser's last life."""

    @field_validator("highest_token")
    @classmethod
    def _leaves_room(cls, seen: Token | None) -> Token | None:
        """Refuse what no farm has counted to: ours counts on from it, and its numbers end."""
        if seen is not None and max(seen.store_epoch, seen.counter) > 10**17:
            raise ValueError("no farm gave this token")
        return seen


class Heartbeat(Message):
    """The agent's runtime is alive."""

    op: Literal["heartbeat"] = "heartbeat"
    epoch_number: int
    nonce: str = ""
    """Repeated in the `ping` that answers it, so that the agent knows until when it was heard."""


class Report(Message):
    """The complete picture of one epoch; what is missing is gone."""

    op: Literal["report"] = "report"
    epoch_number: int
    number: int
    draining: bool = False
    """The agent takes nothing new."""
    draining_because: str = ""
    """Why, where it is not because it has been asked to: `low_disk` until there is room again."""
    windows: tuple[WindowReport, ...] = ()
    contexts: tuple[ContextReport, ...] = ()


class CapacityAnnounced(Message):
    """How many slots the agent has from now on. Fewer than are taken stop new work only.

    For agents whose slots come and go one by one; one that takes nothing at all for a while says so
    by `draining` of its report.
    """

    op: Literal["capacity"] = "capacity"
    max_concurrency: int
    """At least 1; an agent that says less is refused by name."""


class Ack(Message):
    """A command was taken up, or refused and why."""

    op: Literal["ack"] = "ack"
    command_id: str
    refused: Literal["busy", "stale", "unknown_context", "not_understood", "draining"] | None = None
    detail: str = ""


class Events(Message):
    """Evidence of one attempt, in order; kept by the agent and sent again until `stored`."""

    op: Literal["event"] = "event"
    command_id: str
    attempt_id: str
    token: Token
    entries: tuple[Entry, ...]


class Result(Message):
    """How a command ended; kept by the agent and sent again until `stored`.

    For a run, `seq` is the number of the last entry, which must all have been stored first.
    """

    op: Literal["result"] = "result"
    command_id: str
    attempt_id: str | None = None
    token: Token | None = None
    seq: int = 0
    outcome: Literal["succeeded", "failed", "cancelled", "timed_out"]
    failure: Failure | None = None
    page_gone: bool = False
    """The page the command ran on no longer exists."""
    value: dict[str, Any] = Field(default={})
    """What a command other than a run gives back, such as `window_id` and `context_id`."""


class ChannelRefused(Message):
    """A channel that was asked for will not be dialled."""

    op: Literal["channel_refused"] = "channel_refused"
    channel_id: str
    reason: Literal["unknown_context", "stale_epoch", "not_understood", "unavailable"]
    detail: str = ""


class Error(Message):
    """The farm sent something that can't be understood."""

    op: Literal["error"] = "error"
    detail: str


class Intervened(Message):
    """What became of an `intervene`."""

    op: Literal["intervened"] = "intervened"
    intervention_id: str
    outcome: InterventionOutcome
    detail: str = ""


class Pong(Message):
    """The answer to `ping`, by the agent's runtime."""

    op: Literal["pong"] = "pong"
    nonce: str


class Bye(Message):
    """The agent leaves; its browser is gone."""

    op: Literal["bye"] = "bye"
    reason: str = ""
    user_windows_lost: int = Field(default=0, ge=0)
    """So many windows of a person's went with it."""


FromAgent = Annotated[
    Hello
    | Heartbeat
    | Report
    | CapacityAnnounced
    | Ack
    | Events
    | Result
    | Intervened
    | ChannelRefused
    | Error
    | Pong
    | Bye,
    Field(discriminator="op"),
]

from_agent: TypeAdapter[FromAgent] = TypeAdapter(FromAgent)
