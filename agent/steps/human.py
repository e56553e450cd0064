"""human: a person does what the job can't."""

import asyncio

from agent.steps.failures import StepFailed
from agent.steps.stage import Stage
from farm.protocol.failures import Reason
from farm.protocol.steps import Human


async def human(stage: Stage, step: Human) -> None:
    """Let a person in, and go on when they hand the tab back.

    Raises:
        StepFailed: `human_timeout` when nobody does so in time.
    """
    try:
        async with stage.clock.stopped(), asyncio.timeout(stage.clock.timeout_ms / 1000):
            await stage.attempt.control.ask(step.message)
    except TimeoutError:
        detail = f"nobody handed the tab back {stage.clock.words}; asked to: {step.message}"
        raise StepFailed(Reason.HUMAN_TIMEOUT, detail) from None
