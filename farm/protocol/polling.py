"""A link by requests alone, for networks that break WebSockets.

`POST /v1/agent/poll` opens a session; requests to it carry messages of `farm.protocol.messages`,
each a text as on the WebSocket, in both directions. Each direction counts its messages from 1. What
has not been acknowledged is sent again, and what comes twice counts once; so a request may be
repeated whatever has become of it.
"""

from __future__ import annotations

from pydantic import Field

from farm.protocol.messages.words import Message

LONGEST_WAIT_S = 20.0
"""Shorter than what proxies let a request take."""


class Opened(Message):
    """A session, for the token that has opened it."""

    session: str
    wait_s: float
    """So long the farm holds a request that waits for messages."""
    silence_s: float
    """A session that no request is made to for so long has ended."""


class Exchange(Message):
    """What the agent sends and has."""

    seq: int = Field(default=1, ge=1)
    """The number of the first of `messages`."""
    messages: tuple[str, ...] = ()
    ack: int = Field(default=0, ge=0)
    """The number of the last message of the farm that the agent has."""
    wait_s: float | None = Field(default=None, ge=0, le=60, allow_inf_nan=False)
    """So long the answer may wait for a message; None wants none."""


class Exchanged(Message):
    """What the farm sends and has."""

    seq: int
    messages: tuple[str, ...]
    ack: int
    """The number of the last message of the agent that the farm has."""
    closed: bool = False
    """The link has ended: no more follows."""
