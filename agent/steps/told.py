"""What is told of a step, on a page as in a flow: that it begins, and how it ends."""

from collections.abc import Awaitable, Callable

from agent.clock import monotonic
from agent.ports import Evidence, StaleAssignment, UploadRefused
from agent.steps.failed import StepFailed, clean
from agent.steps.naming import label_of
from farm.protocol.failures import Failure, Reason
from farm.protocol.messages import StepEnded, StepStarted
from farm.protocol.steps import Step

_NEVER_SKIPPED = frozenset(
    {
        Reason.PAGE_CRASHED,
        Reason.PAGE_CLOSED,
        Reason.BROWSER_LOST,
        Reason.STALE_ASSIGNMENT,
        Reason.AGENT_LOST,
    }
)
"""After these there is no going on, optional or not."""


async def told(
    evidence: Evidence, index: int, step: Step, do: Callable[[], Awaitable[None]]
) -> Failure | None:
    """Do a step; return why the attempt is over, or None where it goes on.

    The step that ends it has no `StepEnded`: the failure names it.
    """
    label = label_of(step)
    await evidence.note(StepStarted(index=index, verb=step.type, label=label))
    began = monotonic()
    skipped = None
    try:
        await _in_words(do)
    except StepFailed as failed:
        skipped = Failure(
            reason=failed.reason,
            detail=failed.detail,
            step_index=index,
            step=label,
            status=failed.status,
        )
        if not step.optional or failed.reason in _NEVER_SKIPPED:
            return skipped
    ms = round(1000 * (monotonic() - began), 1)
    await evidence.note(StepEnded(index=index, ms=ms, skipped=skipped))
    return None


async def _in_words(do: Callable[[], Awaitable[None]]) -> None:
    """Let what the farm has refused come as `StepFailed` too."""
    try:
        await do()
    except UploadRefused as refused:
        raise StepFailed(Reason(refused.reason), clean(refused.detail)) from None
    except StaleAssignment:
        raise StepFailed(Reason.STALE_ASSIGNMENT, "the attempt has ended for the farm") from None
