"""Farm to agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from farm.protocol.messages.words import Capacity, Intervention, Message, Token
from farm.protocol.plan import BrowserOptions, Plan


class Welcome(Message):
    """The agent is in. Reports carry `epoch_number` from here on."""

    op: Literal["welcome"] = "welcome"
    epoch_number: int
    capacity: Capacity
    """As negotiated, read back from the registry."""
    heartbeat_interval_s: float
    window_s: float
    """With nothing heard from the farm for this long the agent gives up its assignments."""
    shared: bool = False
    """Any coordinator takes the agent back with what it runs; else the one that it is linked to."""


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
    resets: bool = False
    """It may be made clean in place after an assignment, where that can be proven, and be lent
    again under the same profile; else it is closed."""


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


class Intervene(Message):
    """Do to a running attempt what a person wants; answered by `intervened`."""

    op: Literal["intervene"] = "intervene"
    intervention_id: str
    command_id: str
    """The run it is about."""
    token: Token
    """The assignment it is about: under another one nothing is done."""
    kind: Intervention
    by: str
    """Who wants it, for people."""
    text: str = Field(default="", max_length=500)
    """Of a `message`."""


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


class OpenChannel(Message):
    """Dial `GET /v1/agent/channels/{channel_id}`: what is big or fast travels beside this link.

    Nothing answers it here but `channel_refused`; that the agent dials is the answer.
    """

    op: Literal["open_channel"] = "open_channel"
    channel_id: str = Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")
    """Opens one connection, once, for the agent that was asked."""
    kind: str = Field(max_length=64)
    """What it is for, such as `live`; an agent refuses what it does not know."""
    context_id: str
    epoch_number: int
    """The life of the browser that `context_id` is of."""
    options: dict[str, Any] = Field(default={})
    """As `kind` has them."""


class Ping(Message):
    """The answer to a heartbeat, with its nonce, or a question of the farm's own.

    An agent's runtime answers either with a `pong` of the same nonce. One that does not answer the
    farm's questions is given nothing new.
    """

    op: Literal["ping"] = "ping"
    nonce: str = ""


ToAgent = Annotated[
    Welcome | Refused | Command | Cancel | Intervene | Stored | Drain | OpenChannel | Ping,
    Field(discriminator="op"),
]

to_agent: TypeAdapter[ToAgent] = TypeAdapter(ToAgent)
