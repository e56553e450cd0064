"""What coordinators write to each other."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from farm.protocol import messages as wire
from farm.protocol.polling import Exchange, Exchanged


class Letter(wire.Message):
    """Unknown fields are ignored, so that coordinators of two versions go together."""


class Order(Letter):
    """Send a command to your agent, unless it has been withdrawn, and write back a `Word`."""

    kind: Literal["order"] = "order"
    sender: str
    client_id: str
    namespace: str | None = None
    """Whose evidence is written; None writes none."""
    command: wire.Command


class Word(Letter):
    """What became of an order or signal: the link it went out on, or why it did not."""

    kind: Literal["word"] = "word"
    command_id: str
    link: str | None = None
    absent: str = ""


class Passage(Letter):
    """Tell your agent; nobody waits."""

    kind: Literal["passage"] = "passage"
    client_id: str
    message: wire.ToAgent


class Signal(Letter):
    """Tell your agent, and write back a `Word`: no link, no signal."""

    kind: Literal["signal"] = "signal"
    sender: str
    signal_id: str
    client_id: str
    message: wire.ToAgent


class Reply(Letter):
    """My agent answers a command."""

    kind: Literal["reply"] = "reply"
    client_id: str
    noted: bool
    """Its evidence has been written."""
    answer: Annotated[wire.Ack | wire.Result, Field(discriminator="op")]


class Change(Letter):
    """Something has changed in a ledger that coordinators share."""

    kind: Literal["change"] = "change"
    jobs: dict[str, bool] = Field(default_factory=dict)
    """By job_id, whether it may have come to rest."""
    due: bool = False
    """Jobs may have been queued."""
    anew: bool = False
    """Jobs that wait may find now what they wait for."""
    namespaces: tuple[str, ...] = ()
    """Of these the placement has changed, or the task queues that deployments serve."""
    revoked: tuple[str, ...] = ()
    """Tokens that open nothing any more."""


class Wish(Letter):
    """Do to a job's attempt what a person wants, and write back a `Granted`."""

    kind: Literal["wish"] = "wish"
    sender: str
    wish_id: str
    job_id: str
    wanted: wire.Intervention
    by: str
    text: str = ""


class Granted(Letter):
    """What became of a wish."""

    kind: Literal["granted"] = "granted"
    wish_id: str
    intervention_id: str
    outcome: wire.InterventionOutcome
    detail: str = ""
    attempt_id: str | None = None


class Poll(Letter):
    """Answer a request to a session that you hold, and write back a `Polled`."""

    kind: Literal["poll"] = "poll"
    sender: str
    request_id: str
    session: str
    token_id: str
    """Who makes it."""
    said: Exchange | None = None
    """None ends the session."""


class Polled(Letter):
    """What became of a request to a session."""

    kind: Literal["polled"] = "polled"
    request_id: str
    given: Exchanged | None = None
    flaw: Literal["unknown", "gap"] | None = None
    detail: str = ""
    has: int | None = None


AboutJobs = Change | Wish | Granted
AboutPolls = Poll | Polled
AnyLetter = Annotated[
    Order | Word | Passage | Signal | Reply | AboutJobs | AboutPolls, Field(discriminator="kind")
]
letters: TypeAdapter[AnyLetter] = TypeAdapter(AnyLetter)
