"""What is noted of commands as they are sent and answered, and how it is read again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from farm.clock import Clock
from farm.core.commands import (
    EXPIRED,
    UNDECLARED,
    Answers,
    ClientDelivery,
    CommandEvidence,
    CommandState,
    Declared,
    Mark,
    answers,
    kept,
)
from farm.core.model import ClientId, ContextId, Instant, Namespace, Token
from farm.errors import ConflictError, NotFoundError
from farm.protocol import messages as wire
from farm.stores.ports.commands import CommandLog, Forgotten

Answer = wire.Ack | wire.Result
"""What an agent says to a command: an ack, or the terminal result."""
_ABSENT = "client_absent"
"""Why a command failed that found no agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whose a command is, and what its sender says of it."""

    namespace: Namespace
    declared: Declared = UNDECLARED


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The retained end of a command."""

    outcome: str
    """As the agent said it; else `refused`, `withdrawn` or `error`."""
    reason: str | None
    """Why it was refused or failed."""
    value: Mapping[str, Any] | None
    """What it gave back; None where there was nothing, or it was cut."""
    failure: Mapping[str, Any] | None
    size: int
    """Of what the agent gave, in bytes."""
    cut: bool
    """It was larger than is retained: value and failure are lost."""


def result_of(evidence: CommandEvidence) -> CommandResult | None:
    """Return how a command ended; None while it has not."""
    if evidence.settled_at is None:
        return None
    outcome = evidence.state.value if evidence.payload is None else "error"
    text = None if evidence.payload is None else evidence.payload.text
    said = {} if text is None else json.loads(text)
    cut = evidence.payload is not None and text is None
    if cut and evidence.state is CommandState.RESULT:
        outcome = "succeeded"
    return CommandResult(
        outcome=said.get("outcome", outcome),
        reason=evidence.reason,
        value=said.get("value"),
        failure=said.get("failure"),
        size=0 if evidence.payload is None else evidence.payload.size,
        cut=cut,
    )


class Notes:
    """Writes the evidence of commands, and answers from it."""

    def __init__(self, log: CommandLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    async def admitted(
        self, client_id: ClientId, command: wire.Command, admission: Admission
    ) -> None:
        """Begin with a command.

        Raises:
            ConflictError: If its id has been used in the namespace.
        """
        token = command.token
        evidence = CommandEvidence(
            command_id=command.command_id,
            namespace=admission.namespace,
            client_id=client_id,
            kind=command.body.kind,
            admitted_at=self._clock(),
            context_id=None if command.context_id is None else ContextId(command.context_id),
            token=None
            if token is None
            else Token(store_epoch=token.store_epoch, counter=token.counter),
            declared=admission.declared,
        )
        if not await self._log.admit(evidence):
            raise ConflictError(f"there has been a command {command.command_id} before")

    async def attempted(self, namespace: Namespace, command_id: str) -> bool:
        """Note that it is about to be sent; False if it has been withdrawn and must not be."""
        mark = Mark(state=CommandState.SEND_ATTEMPTED, at=self._clock())
        return await self._log.mark(namespace, command_id, mark)

    async def withdrawn(self, namespace: Namespace, command_id: str) -> bool:
        """Give a command up that has not been sent; False if it may have been."""
        mark = Mark(state=CommandState.WITHDRAWN, at=self._clock(), reason=_ABSENT)
        return await self._log.mark(namespace, command_id, mark)

    async def failed(self, namespace: Namespace, command_id: str) -> None:
        """Note that there was no agent, before a send was attempted or while it was."""
        if not await self.withdrawn(namespace, command_id):
            mark = Mark(state=CommandState.ERROR, at=self._clock(), reason=_ABSENT)
            await self._log.mark(namespace, command_id, mark)

    async def answered(self, namespace: Namespace, answer: Answer) -> None:
        """Note what the agent says."""
        await self._log.mark(namespace, answer.command_id, self._mark(answer))

    def _mark(self, answer: Answer) -> Mark:
        now = self._clock()
        if isinstance(answer, wire.Ack):
            if answer.refused is None:
                return Mark(state=CommandState.ACKNOWLEDGED, at=now)
            return Mark(state=CommandState.REFUSED, at=now, reason=answer.refused)
        said = answer.model_dump_json(include={"outcome", "value", "failure"}, exclude_none=True)
        payload = kept(said, self._log.retention.payload_bytes)
        if answer.outcome == "succeeded":
            return Mark(state=CommandState.RESULT, at=now, payload=payload)
        reason = answer.outcome if answer.failure is None else answer.failure.reason.value
        return Mark(state=CommandState.ERROR, at=now, reason=reason, payload=payload)

    async def answers(self, namespace: Namespace, command_id: str) -> Answers:
        """Answer the five questions.

        Raises:
            NotFoundError: If nothing is known of the command.
        """
        found = await self._log.find(namespace, command_id, now=self._clock())
        if isinstance(found, CommandEvidence):
            return answers(found)
        if found.expired:
            return EXPIRED
        raise _not_found(command_id, found)

    async def deliveries(
        self, namespace: Namespace, *, failed_since: Instant
    ) -> Mapping[ClientId, ClientDelivery]:
        """Count by agent."""
        return await self._log.deliveries(namespace, now=self._clock(), failed_since=failed_since)

    async def forget(self, namespace: Namespace) -> None:
        """Let go of all that is known of a namespace's commands."""
        await self._log.forget(namespace, now=self._clock())


def _not_found(command_id: str, forgotten: Forgotten) -> NotFoundError:
    since = datetime.fromtimestamp(forgotten.since, UTC).isoformat(timespec="milliseconds")
    return NotFoundError(
        f"no command {command_id!r} is known, nor would it be if it was admitted before {since}"
    )
