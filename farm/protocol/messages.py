"""Messages on the WebSocket between agent and coordinator, told apart by `op`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from farm.protocol.failures import Failure
from farm.protocol.plan import BrowserOptions, Plan

PROTOCOL = 1
_LAST_MOMENT = 253_402_300_799
"""The end of the year 9999, after which no date can be written."""
ContextState = Literal["active", "idle", "loading", "crashed", "closing"]
Owner = Literal["worker", "user"]


class Message(BaseModel):
    """Unknown fields are ignored, so that an older peer survives a newer one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Token(Message):
    """A fencing token: ordered by store epoch, then by counter."""

    store_epoch: int = Field(ge=0, lt=10**18)
    counter: int = Field(ge=0, lt=10**18)


class Capacity(Message):
    """What an agent may hold; `max_concurrency` None is unannounced and counts as full."""

    max_concurrency: int | None = Field(default=None, ge=1)
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


class WindowReport(Message):
    """One browser window, in exactly one identity."""

    window_id: str
    identity: str | None = None
    profile: str = ""
    """The options it was opened with, as the farm named them in `open_window`."""
    owner: Owner = "worker"


class ContextReport(Message):
    """One tab, or one console flow (which has no window)."""

    context_id: str
    window_id: str | None = None
    owner: Owner = "worker"
    state: ContextState = "idle"
    clean: bool = True
    token: Token | None = None
    """The assignment the agent believes to hold here."""


# agent -> farm


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
    metadata: dict[str, Any] = {}
    capacity: Capacity = Capacity()
    capabilities: tuple[str, ...] = ()
    highest_token: Token | None = None
    running: tuple[Running, ...] = ()
    browser: str | None = None
    """Product and version, for people."""

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
    windows: tuple[WindowReport, ...] = ()
    contexts: tuple[ContextReport, ...] = ()


class Ack(Message):
    """A command was taken up, or refused and why."""

    op: Literal["ack"] = "ack"
    command_id: str
    refused: Literal["busy", "stale", "unknown_context", "not_understood", "draining"] | None = None
    detail: str = ""


class Started(Message):
    """The first step is about to begin."""

    kind: Literal["started"] = "started"
    window_id: str | None = None
    context_id: str


class StepStarted(Message):
    """A step begins."""

    kind: Literal["step_started"] = "step_started"
    index: int
    verb: str
    label: str


class StepEnded(Message):
    """A step is over; `skipped` where an optional one failed."""

    kind: Literal["step_ended"] = "step_ended"
    index: int
    ms: float
    skipped: Failure | None = None


class EffectBegun(Message):
    """A step (or an observed request) is about to change the outside world.

    A declared one is executed only after the farm has said `stored`.
    """

    kind: Literal["effect_begun"] = "effect_begun"
    effect_id: str
    """Unique in the attempt."""
    index: int | None = None
    effect: Literal["once", "idempotent"]
    observed: bool = False
    """Seen as an unsafe request of the page, not declared by a step."""
    method: str | None = None
    url: str | None = None
    """Without query and fragment."""


class EffectDone(Message):
    """The effect is known to have finished."""

    kind: Literal["effect_done"] = "effect_done"
    effect_id: str


class Items(Message):
    """Records of one page of results."""

    kind: Literal["items"] = "items"
    dataset: str
    first: int
    """The number of the first of them in the data set of this attempt, from 0."""
    items: tuple[dict[str, Any], ...]


class Notice(Message):
    """Something worth knowing that fails nothing: a denied request, a dialog, a popup closed."""

    kind: Literal["notice"] = "notice"
    code: str
    detail: str
    index: int | None = None


AttemptEvent = Annotated[
    Started | StepStarted | StepEnded | EffectBegun | EffectDone | Items | Notice,
    Field(discriminator="kind"),
]


class Entry(Message):
    """One event of an attempt with its number, counted from 1 without gaps."""

    seq: int = Field(ge=1)
    at: float = Field(ge=0, le=_LAST_MOMENT, allow_inf_nan=False)
    """Seconds since the Unix epoch, by the agent's clock."""
    event: AttemptEvent


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
    value: dict[str, Any] = {}
    """What a command other than a run gives back, such as `window_id` and `context_id`."""


class Error(Message):
    """The farm sent something that can't be understood."""

    op: Literal["error"] = "error"
    detail: str


class Pong(Message):
    """The answer to `ping`, by the agent's runtime."""

    op: Literal["pong"] = "pong"
    nonce: str


class Bye(Message):
    """The agent leaves; its browser is gone."""

    op: Literal["bye"] = "bye"
    reason: str = ""


FromAgent = Annotated[
    Hello | Heartbeat | Report | Ack | Events | Result | Error | Pong | Bye,
    Field(discriminator="op"),
]

# farm -> agent


class Welcome(Message):
    """The agent is in. Reports carry `epoch_number` from here on."""

    op: Literal["welcome"] = "welcome"
    epoch_number: int
    capacity: Capacity
    """As negotiated, read back from the registry."""
    heartbeat_interval_s: float
    window_s: float
    """With nothing heard from the farm for this long the agent gives up its assignments."""


class Refused(Message):
    """The agent is not let in, and why; `retry` says whether to dial again."""

    op: Literal["refused"] = "refused"
    reason: str
    detail: str
    retry: bool = True


class OpenWindow(Message):
    """Open a window of a new identity, with one tab."""

    kind: Literal["open_window"] = "open_window"
    identity: str | None = None
    """None is anonymous: the identity ends with the assignment."""
    profile: str = ""
    """Names the options; repeated in reports, compared and never parsed."""
    options: BrowserOptions = BrowserOptions()


class OpenTab(Message):
    """Open one more tab in a window."""

    kind: Literal["open_tab"] = "open_tab"
    window_id: str


class CreateFlow(Message):
    """Begin a console flow."""

    kind: Literal["create_flow"] = "create_flow"
    worker: bool = True
    """It is for tasks of the farm, and not a person's own."""


class RunPlan(Message):
    """Run one attempt of a job on the context."""

    kind: Literal["run"] = "run"
    plan: Plan
    last: bool = False
    """Nothing more comes under this assignment: an anonymous window may close as soon as the result
    has been sent, before its release."""


class Release(Message):
    """The assignment under this token has ended; make the context clean, or close it."""

    kind: Literal["release"] = "release"


class Probe(Message):
    """Open a page of its own, evaluate something, close it: the self-test behind `/readyz`."""

    kind: Literal["probe"] = "probe"


class Command(Message):
    """One order. With `context_id` it is for exactly that context under that token."""

    op: Literal["command"] = "command"
    command_id: str
    context_id: str | None = None
    token: Token | None = None
    body: Annotated[
        OpenWindow | OpenTab | CreateFlow | RunPlan | Release | Probe, Field(discriminator="kind")
    ]


class Cancel(Message):
    """Stop a command; it answers with a result of its own."""

    op: Literal["cancel"] = "cancel"
    command_id: str
    reason: Literal["cancelled", "timed_out", "superseded"] = "cancelled"


class Stored(Message):
    """Everything up to `seq` of this command is durable; `done` says the result is too.

    `refused` says that the attempt has ended for the farm: stop it, and forget what is unsaid.
    """

    op: Literal["stored"] = "stored"
    command_id: str
    seq: int = 0
    done: bool = False
    refused: bool = False


class Drain(Message):
    """Take nothing new, finish what runs, then say `bye`."""

    op: Literal["drain"] = "drain"
    deadline_s: float = 30.0


class Ping(Message):
    """The farm is there: the answer to a heartbeat, and a question for `pong`."""

    op: Literal["ping"] = "ping"
    nonce: str = ""


ToAgent = Annotated[
    Welcome | Refused | Command | Cancel | Stored | Drain | Ping, Field(discriminator="op")
]

from_agent: TypeAdapter[FromAgent] = TypeAdapter(FromAgent)
to_agent: TypeAdapter[ToAgent] = TypeAdapter(ToAgent)
