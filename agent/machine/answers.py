"""What the machine answers the farm."""

from agent.machine import events as ev
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason


def refusal(command: wire.Command, reason: str, detail: str = "") -> ev.Send:
    """A command is not taken up."""
    ack = {"command_id": command.command_id, "refused": reason, "detail": detail}
    return ev.Send(wire.Ack.model_validate(ack))


def no_channel(message: wire.OpenChannel, reason: str, detail: str) -> ev.Send:
    """A data channel is not dialled."""
    refused = {"channel_id": message.channel_id, "reason": reason, "detail": detail}
    return ev.Send(wire.ChannelRefused.model_validate(refused))


def failed(command_id: str, detail: str) -> ev.Send:
    """What was taken up has failed."""
    failure = Failure(reason=Reason.INTERNAL, detail=detail[:2000])
    return ev.Send(wire.Result(command_id=command_id, outcome="failed", failure=failure))


def intervened(
    intervention_id: str, outcome: wire.InterventionOutcome, detail: str = ""
) -> ev.Send:
    """What has become of an intervention."""
    return ev.Send(
        wire.Intervened(intervention_id=intervention_id, outcome=outcome, detail=detail[:500])
    )


def done(command_id: str, value: dict[str, str] | None = None) -> ev.Send:
    """What was taken up is done."""
    return ev.Send(wire.Result(command_id=command_id, outcome="succeeded", value=value or {}))
