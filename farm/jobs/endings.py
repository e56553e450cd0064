"""How attempts end, as far as that can be told without asking the ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.core.job_states import AttemptState
from farm.protocol import messages as wire
from farm.protocol.failures import PERMANENT, Failure, Reason

_LOST_REASONS = frozenset(
    {Reason.BROWSER_LOST, Reason.AGENT_LOST, Reason.DRAINED, Reason.STALE_ASSIGNMENT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How one ended, and whether another may fare better."""

    state: AttemptState
    failure: Failure | None
    transient: bool
    answered: bool
    """The agent holds a result that it wants to be told is stored."""


def lost(why: str) -> End:
    """It is dead, and so is what could have told more."""
    return End(
        state=AttemptState.LOST,
        failure=Failure(reason=Reason.AGENT_LOST, detail=why),
        transient=True,
        answered=False,
    )


_REFUSED = "the agent refused the job: "
_NOT_TAKEN = f"{_REFUSED}busy"


def was_not_taken(failure: Mapping[str, Any] | None) -> bool:
    """Tell whether an attempt ended because its agent, though chosen, had no room for it."""
    return failure is not None and str(failure.get("detail", "")).startswith(_NOT_TAKEN)


MUTE = End(
    state=AttemptState.FAILED,
    failure=Failure(
        reason=Reason.AGENT_LOST, detail="the agent neither ended the job in time nor stopped it"
    ),
    # It may go on for all we know, so there is no other attempt.
    transient=False,
    answered=False,
)


def ended(answer: wire.Ack | wire.Result) -> End:
    """The agent said how, or refused to begin."""
    if isinstance(answer, wire.Ack):
        understood = answer.refused != "not_understood"
        return End(
            state=AttemptState.LOST if understood else AttemptState.FAILED,
            failure=Failure(
                reason=Reason.AGENT_LOST if understood else Reason.INTERNAL,
                detail=f"{_REFUSED}{answer.refused} {answer.detail}".strip(),
            ),
            transient=understood,
            answered=False,
        )
    failure = answer.failure
    state = AttemptState(answer.outcome)
    if failure is not None and failure.reason in _LOST_REASONS:
        state = AttemptState.LOST
    # A new attempt may only start when the old page is gone; the agent closes it before it says
    # so, and one that could not is not tried again.
    transient = failure is not None and failure.reason not in PERMANENT and answer.page_gone
    return End(state=state, failure=failure, transient=transient, answered=True)
