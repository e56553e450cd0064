"""What a job leaves as the evidence of its commands."""

from pathlib import Path
from typing import Any

import pytest

from farm.core.commands import Answer, CommandState, Effect
from farm.jobs.declaring import effect_of
from farm.protocol.plan import Plan
from tests.jobs.farm import NS, Agent, farm_on, living

GOTO = {"type": "goto", "url": "https://example.com/"}
CLICK = {"type": "click", "selector": "#buy"}


@pytest.mark.parametrize(
    ("steps", "effects", "declared"),
    [
        ([GOTO], "once", None),
        ([GOTO, CLICK], "once", Effect.ONCE),
        ([GOTO, CLICK], "idempotent", Effect.IDEMPOTENT),
        ([GOTO], "idempotent", Effect.IDEMPOTENT),
        ([{**CLICK, "effect": "idempotent"}], "once", None),
        ([{**CLICK, "effect": "none"}], "once", None),
        ([{**CLICK, "effect": "idempotent"}, {**GOTO, "effect": "once"}], "once", Effect.ONCE),
    ],
)
def test_a_plan_declares_no_less_than_it_may_do(
    steps: list[dict[str, Any]], effects: str, declared: Effect | None
) -> None:
    plan = {"job_id": "j", "attempt_id": "a", "name": "n", "steps": steps, "effects": effects}
    assert effect_of(Plan.model_validate(plan)) is declared


async def test_the_run_of_an_attempt_is_known_by_its_command(tmp_path: Path) -> None:
    agent = Agent()
    async with farm_on(tmp_path) as farm, living(agent):
        await agent.dial(farm)
        job_id = await farm.submit(steps=[{"click": "#buy"}])
        await agent.running()
        (attempt,) = await farm.attempts(job_id)
        found = await farm.node.answers(NS, attempt.command_id)
        assert (found.send_attempted, found.result_retained) == (Answer.YES, Answer.NO)
        assert found.repeat_is_safe is Answer.NO
        await agent.end()
        await farm.state(job_id, "succeeded")
        evidence = (await farm.node.answers(NS, attempt.command_id)).evidence
        assert evidence is not None
        assert evidence.state is CommandState.RESULT
        assert (evidence.context_id, evidence.token) == (attempt.context_id, attempt.token)
