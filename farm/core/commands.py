"""The evidence of one command, and the five questions it answers before work is repeated.

A command is admitted, then a send is attempted, and only what its agent says goes beyond that. The
mark of the attempt is made before the bytes go out, so that whoever dies in the middle leaves
"attempted" behind and never "not sent".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from farm.core.model import ClientId, ContextId, Instant, Namespace, Token

_IDS_PER_RECORD = 4
_NOT_TAKEN_UP = frozenset({"busy", "stale", "draining", "not_understood"})
"""Refusals of an agent that has not begun; `unknown_context` may be said of a run long over."""


class CommandState(StrEnum):
    """How far a command is known to have come."""

    ADMITTED = "admitted"
    WITHDRAWN = "withdrawn"
    """It was not sent, and never will be."""
    SEND_ATTEMPTED = "send_attempted"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    RESULT = "result"
    ERROR = "error"


_S = CommandState
AFTER: Mapping[CommandState, frozenset[CommandState]] = {
    # One or the other, so that who gives a command up knows whether it may have been sent.
    _S.ADMITTED: frozenset({_S.SEND_ATTEMPTED, _S.WITHDRAWN}),
    _S.WITHDRAWN: frozenset(),
    _S.SEND_ATTEMPTED: frozenset({_S.ACKNOWLEDGED, _S.REFUSED, _S.RESULT, _S.ERROR}),
    _S.ACKNOWLEDGED: frozenset({_S.REFUSED, _S.RESULT, _S.ERROR}),
    _S.REFUSED: frozenset(),
    _S.RESULT: frozenset(),
    _S.ERROR: frozenset(),
}
"""Which state may follow which."""


def before(state: CommandState) -> frozenset[CommandState]:
    """Return the states that `state` may follow."""
    return frozenset(one for one, following in AFTER.items() if state in following)


class Effect(StrEnum):
    """What the caller says a command does to the outside world."""

    NONE = "none"
    IDEMPOTENT = "idempotent"
    ONCE = "once"
    """To do it again would be a second effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What only the caller can know of a command; None where it has not said."""

    effect: Effect | None = None
    reconcilable: bool | None = None
    """The target system can be asked whether the effect happened."""


UNDECLARED = Declared()


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What an agent gave back, as a JSON text; None where it was larger than is retained."""

    text: str | None
    size: int
    """In bytes, as it came."""


def kept(text: str, max_bytes: int) -> Payload:
    """Return a payload as far as it may be retained."""
    size = len(text.encode())
    return Payload(text=text if size <= max_bytes else None, size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is retained of a namespace's commands, the latest first."""

    keep: int = 5_000
    """So many commands."""
    keep_s: float = 86_400.0
    """For so long after they were admitted."""
    payload_bytes: int = 16 * 1024
    """The largest payload."""

    @property
    def keep_ids(self) -> int:
        """So many commands are known to have expired; of older ones nothing is known at all."""
        return self.keep * _IDS_PER_RECORD


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEvidence:
    """What is known of one command."""

    command_id: str
    namespace: Namespace
    client_id: ClientId
    kind: str
    """Such as `run`."""
    admitted_at: Instant
    context_id: ContextId | None = None
    token: Token | None = None
    declared: Declared = UNDECLARED
    state: CommandState = CommandState.ADMITTED
    send_attempted_at: Instant | None = None
    acknowledged_at: Instant | None = None
    """When the agent was first known to have the command."""
    settled_at: Instant | None = None
    reason: str | None = None
    """Why it was refused, or failed."""
    payload: Payload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One step further."""

    state: CommandState
    at: Instant
    reason: str | None = None
    """Noted of what settles, as is the payload."""
    payload: Payload | None = None
    """Only an agent gives one."""

    @property
    def settles(self) -> bool:
        """Tell whether nothing can follow."""
        return not AFTER[self.state]

    @property
    def by_agent(self) -> bool:
        """Tell whether the agent had the command, to say so."""
        return self.state in _BY_AGENT or (self.settles and self.payload is not None)


_BY_AGENT = frozenset({_S.ACKNOWLEDGED, _S.REFUSED, _S.RESULT})


def marked(known: CommandEvidence, mark: Mark) -> CommandEvidence | None:
    """Return the evidence with the mark; None where that state can't follow."""
    if mark.state not in AFTER[known.state]:
        return None
    if mark.state is CommandState.SEND_ATTEMPTED:
        return replace(known, state=mark.state, send_attempted_at=mark.at)
    acknowledged_at = known.acknowledged_at
    if acknowledged_at is None and mark.by_agent:
        acknowledged_at = mark.at
    if not mark.settles:
        return replace(known, state=mark.state, acknowledged_at=acknowledged_at)
    return replace(
        known,
        state=mark.state,
        acknowledged_at=acknowledged_at,
        settled_at=mark.at,
        reason=mark.reason,
        payload=mark.payload,
    )


class Answer(StrEnum):
    """An answer to one of the questions."""

    YES = "yes"
    NO = "no"
    EXPIRED = "expired"
    """It was known once, and is retained no more."""
    UNKNOWN = "unknown"
    """The caller has not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The five questions to ask before work is repeated.

    That the context is idle again answers none of them.
    """

    send_attempted: Answer
    """Did a send attempt begin, or was the command merely admitted?"""
    acknowledged: Answer
    """Did the agent acknowledge it?"""
    result_retained: Answer
    """Is a terminal result or error retained?"""
    effect_can_be_established: Answer
    """Can the target system say whether the effect happened?"""
    repeat_is_safe: Answer
    """Is another attempt idempotent or otherwise safe?"""
    evidence: CommandEvidence | None
    """What the answers rest on; None where it has expired."""


EXPIRED = Answers(
    send_attempted=Answer.EXPIRED,
    acknowledged=Answer.EXPIRED,
    result_retained=Answer.EXPIRED,
    effect_can_be_established=Answer.UNKNOWN,
    repeat_is_safe=Answer.UNKNOWN,
    evidence=None,
)
"""The answers for a command whose evidence is retained no more."""


def answers(known: CommandEvidence) -> Answers:
    """Answer from what is retained and from what the caller declared, and from nothing else."""
    reconcilable = known.declared.reconcilable
    return Answers(
        send_attempted=_yes_if(known.send_attempted_at is not None),
        acknowledged=_yes_if(known.acknowledged_at is not None),
        result_retained=_yes_if(known.settled_at is not None),
        effect_can_be_established=Answer.UNKNOWN if reconcilable is None else _yes_if(reconcilable),
        repeat_is_safe=_repeat_is_safe(known),
        evidence=known,
    )


def _yes_if(condition: bool) -> Answer:
    return Answer.YES if condition else Answer.NO


def _repeat_is_safe(known: CommandEvidence) -> Answer:
    match known.declared.effect:
        case None:
            return Answer.UNKNOWN
        case Effect.NONE | Effect.IDEMPOTENT:
            return Answer.YES
        case Effect.ONCE:
            return _yes_if(_never_begun(known))


def _never_begun(known: CommandEvidence) -> bool:
    if known.state is CommandState.WITHDRAWN:
        return True
    if known.state is not CommandState.REFUSED or known.reason not in _NOT_TAKEN_UP:
        return False
    return known.acknowledged_at == known.settled_at  # it refused at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDelivery:
    """How delivery to one agent fares, by the evidence that is retained."""

    admitted: int = 0
    """Not sent yet."""
    in_flight: int = 0
    """Sent, or begun to be, and neither refused nor ended."""
    unacknowledged: int = 0
    """Of those, which the agent is not known to have."""
    oldest_at: Instant | None = None
    """When the oldest that is neither refused nor ended was admitted."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """How many were refused or failed lately, by reason."""


def deliveries(
    known: Iterable[CommandEvidence], *, failed_since: Instant
) -> Mapping[ClientId, ClientDelivery]:
    """Count by agent."""
    found: dict[ClientId, ClientDelivery] = {}
    for one in known:
        so_far = found.get(one.client_id, ClientDelivery())
        found[one.client_id] = _counted(so_far, one, failed_since)
    return found


def _counted(so_far: ClientDelivery, one: CommandEvidence, failed_since: Instant) -> ClientDelivery:
    if one.settled_at is not None:
        if one.state is CommandState.RESULT or one.settled_at < failed_since:
            return so_far
        reason = one.reason or one.state.value
        failures = {**so_far.failures, reason: so_far.failures.get(reason, 0) + 1}
        return replace(so_far, failures=failures)
    oldest_at = one.admitted_at if so_far.oldest_at is None else so_far.oldest_at
    sent = one.send_attempted_at is not None
    return replace(
        so_far,
        admitted=so_far.admitted + (not sent),
        in_flight=so_far.in_flight + sent,
        unacknowledged=so_far.unacknowledged + (sent and one.acknowledged_at is None),
        oldest_at=min(oldest_at, one.admitted_at),
    )
