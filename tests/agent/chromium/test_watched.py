"""The outer clock of the steps."""

import asyncio
from typing import Any

import pytest

from agent.chromium import watched
from agent.chromium.watched import Watched, limit_s
from farm.protocol.messages import AttemptEvent, EffectBegun, StepEnded, StepStarted
from tests.agent.chromium.journal import Journal, plan
from tests.patience import PATIENCE_S

STEP = {"type": "click", "selector": "#a", "timeout": 20}
BEGUN = StepStarted(index=0, verb="click", label="click")


class Patient(Journal):
    """A farm that takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.stored = asyncio.Event()

    async def settle(self, event: AttemptEvent) -> None:
        await self.stored.wait()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "UNHANG_S", 0.01)
    monkeypatch.setattr(watched, "OVERDUE_S", 0.05)


class Clock:
    """A `Watched` whose calls are remembered."""

    def __init__(self, journal: Journal) -> None:
        self.hung = asyncio.Event()
        self.overdue = asyncio.Event()
        self.watched = Watched(
            journal, plan(STEP), overlay=None, hung=self.hung.set, overdue=self.overdue.set
        )

    async def passes(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.overdue.wait()
        except TimeoutError:
            return


async def test_a_step_that_gives_no_sign_is_hung_and_then_overdue() -> None:
    clock = Clock(Journal())
    await clock.watched.note(BEGUN)
    async with asyncio.timeout(PATIENCE_S):
        await clock.hung.wait()
        assert not clock.overdue.is_set()
        await clock.overdue.wait()


async def test_a_step_that_has_ended_is_not_waited_for() -> None:
    clock = Clock(Journal())
    await clock.watched.note(BEGUN)
    await clock.watched.note(StepEnded(index=0, ms=1))
    await clock.passes(0.15)
    assert not clock.overdue.is_set()


async def test_the_clock_stands_still_while_the_farm_is_waited_for() -> None:
    farm = Patient()
    clock = Clock(farm)
    await clock.watched.note(BEGUN)
    async with asyncio.TaskGroup() as group:
        effect = EffectBegun(effect_id="e", effect="once")
        group.create_task(clock.watched.settle(effect))
        await clock.passes(0.15)
        assert not clock.overdue.is_set()
        farm.stored.set()
    async with asyncio.timeout(PATIENCE_S):
        await clock.overdue.wait()


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"type": "click", "selector": "a"}, 15),
        ({"type": "click", "selector": "a", "timeout": 500}, 0.5),
        ({"type": "goto", "url": "http://a"}, 30),
        ({"type": "wait", "ms": 60_000}, 75),
        ({"type": "type", "selector": "a", "text": "b", "delay": 10}, None),
        ({"type": "extract", "fields": {"a": "b"}}, 45),
    ],
)
def test_each_verb_has_its_own_patience(step: dict[str, Any], expected: float | None) -> None:
    one = plan(step)
    assert limit_s(one.steps[0], one) == expected
