"""The evidence of commands, as HTTP tells it."""

from typing import Any, Literal

from pydantic import AwareDatetime

from farm.protocol.resources import Resource

Retained = Literal["yes", "no", "expired"]
Declared = Literal["yes", "no", "unknown"]


class CommandView(Resource):
    """What is known of one command."""

    client_id: str
    context_id: str | None = None
    """None where it is not for one context."""
    kind: str
    """Such as `run`."""
    state: Literal[
        "admitted", "withdrawn", "send_attempted", "acknowledged", "refused", "result", "error"
    ]
    effect: Literal["none", "idempotent", "once"] | None = None
    """What its sender says that it does to the outside world."""
    reconcilable: bool | None = None
    """Whether the target system can be asked, as its sender says."""
    admitted_at: AwareDatetime
    send_attempted_at: AwareDatetime | None = None
    acknowledged_at: AwareDatetime | None = None
    """When the agent was first known to have it."""
    settled_at: AwareDatetime | None = None
    reason: str | None = None
    """Why it was refused, withdrawn, or failed."""
    payload: dict[str, Any] | None = None
    """What the agent gave back: `outcome`, `value` and `failure`."""
    payload_size: int | None = None
    """In bytes, as it came."""
    payload_cut: bool = False
    """It was larger than is retained, so `payload` is null."""


class EvidenceView(Resource):
    """Five questions to ask before work is repeated.

    That the context is idle again answers none of them.
    """

    command_id: str
    send_attempted: Retained
    """Did a send attempt begin, or was it merely admitted?"""
    acknowledged: Retained
    """Did the agent acknowledge it?"""
    result_retained: Retained
    """Is a terminal result or error retained?"""
    effect_can_be_established: Declared
    """Can the target system say whether the effect happened?"""
    repeat_is_safe: Declared
    """Is another attempt idempotent or otherwise safe?"""
    command: CommandView | None = None
    """What the answers rest on; null where it has expired."""


class AgentDelivery(Resource):
    """How delivery to one agent fares: of the namespace's commands that are retained."""

    client_id: str
    linked: bool
    """It has a link that is open."""
    admitted: int
    """Not sent yet."""
    in_flight: int
    """Sent, or begun to be, and neither refused nor ended."""
    unacknowledged: int
    """Of those, which the agent is not known to have."""
    oldest_at: AwareDatetime | None = None
    """When the oldest that is neither refused nor ended was admitted."""
    failures: dict[str, int]
    """How many were refused, withdrawn or failed since `failed_since`, by reason."""


class DeliveryView(Resource):
    """How delivery fares, by agent."""

    failed_since: AwareDatetime
    items: tuple[AgentDelivery, ...]
