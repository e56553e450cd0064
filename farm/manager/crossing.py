"""What coordinators hand each other of a bridge; beside a `Piece` lie its bytes."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from farm.manager.letters import Letter


class Open(Letter):
    """A socket has come to me that is yours: serve it, or say why not."""

    kind: Literal["open"] = "open"
    bridge_id: str
    sender: str
    purpose: str
    """Tells who is to serve it."""
    said: str
    """What it is about, as that one understands it."""


class Opened(Letter):
    """I serve it."""

    kind: Literal["opened"] = "opened"
    bridge_id: str


class Piece(Letter):
    """A part of a message, in order."""

    kind: Literal["piece"] = "piece"
    bridge_id: str
    seq: int
    text: bool = False
    more: bool = False
    """The next piece is of the same message."""


class Took(Letter):
    """There is room for so many bytes more."""

    kind: Literal["took"] = "took"
    bridge_id: str
    size: int


class End(Letter):
    """There is nothing more to come: it is closed, or was not opened."""

    kind: Literal["end"] = "end"
    bridge_id: str
    code: int = 1000
    """As a WebSocket's."""
    why: str = ""
    lost: bool = False
    """Something of it may not have arrived."""


class Pulse(Letter):
    """These bridges to you are open at my end."""

    kind: Literal["pulse"] = "pulse"
    bridges: tuple[str, ...]


AnyParcel = Annotated[Open | Opened | Piece | Took | End | Pulse, Field(discriminator="kind")]
parcels: TypeAdapter[AnyParcel] = TypeAdapter(AnyParcel)
