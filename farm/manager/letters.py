"""What coordinators write to each other."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from farm.protocol import messages as wire


class Letter(wire.Message):
    """Unknown fields are ignored, so that coordinators of two versions go together."""


class Order(Letter):
    """Send a command to your agent, unless it has been withdrawn, and write back a `Word`."""

    kind: Literal["order"] = "order"
    sender: str
    client_id: str
    namespace: str | None
    """Whose evidence is written; None writes none."""
    command: wire.Command


class Word(Letter):
    """What became of an order: the link it went out on, or why it did not."""

    kind: Literal["word"] = "word"
    command_id: str
    link: str | None = None
    absent: str = ""


class Passage(Letter):
    """Tell your agent; nobody waits."""

    kind: Literal["passage"] = "passage"
    client_id: str
    message: wire.ToAgent


class Reply(Letter):
    """My agent answers a command."""

    kind: Literal["reply"] = "reply"
    client_id: str
    noted: bool
    """Its evidence has been written."""
    answer: Annotated[wire.Ack | wire.Result, Field(discriminator="op")]


AnyLetter = Annotated[Order | Word | Passage | Reply, Field(discriminator="kind")]
letters: TypeAdapter[AnyLetter] = TypeAdapter(AnyLetter)
