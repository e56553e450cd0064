"""Commands as agents are sent them."""

from farm.core.model import ContextId, Token
from farm.protocol import messages as wire

Body = wire.OpenWindow | wire.OpenTab | wire.CreateFlow | wire.RunPlan | wire.Release | wire.Probe


def to_wire_token(token: Token) -> wire.Token:
    """Turn a token into its form on the wire."""
    return wire.Token(store_epoch=token.store_epoch, counter=token.counter)


def command(
    command_id: str,
    body: Body,
    *,
    context_id: ContextId | None = None,
    token: Token | None = None,
) -> wire.Command:
    """Build a command."""
    return wire.Command(
        command_id=command_id,
        context_id=context_id,
        token=None if token is None else to_wire_token(token),
        body=body,
    )
