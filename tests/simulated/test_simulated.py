"""The simulated agent does what a seed says, by the wire of the real one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.machine.events import Exit
from farm.protocol.plan import Plan
from farm.protocol.steps import Effect
from farm.sdk import FarmClient
from tests.e2e.faults.house import AGENT_TOKEN, House
from tests.e2e.faults.watching import job, ran
from tests.simulated.agent import SIM, Sim, live
from tests.simulated.pages import Pace, turns
from tests.simulated.site import opened, read, twice

PLAN = Plan.model_validate(
    {
        "job_id": "j",
        "attempt_id": "a",
        "name": "n",
        "steps": [
            {"type": "goto", "url": "https://example.com/"},
            {"type": "click", "selector": "#order", "effect": "once"},
        ],
    }
)
ORDER = ({"goto": "https://example.com/"}, {"click": {"selector": "#order", "effect": "once"}})


def test_what_pages_do_follows_from_the_seed_the_job_and_the_number_of_its_attempt() -> None:
    pace = Pace(step_s=(0.0, 1.0), fails=0.5, breaks=0.5)
    again = PLAN.model_copy(update={"attempt_number": 2})
    assert turns(PLAN, pace, 1) == turns(PLAN, pace, 1) != turns(PLAN, pace, 2)
    assert turns(PLAN, pace, 1) != turns(again, pace, 1)
    assert [turn.effect for turn in turns(PLAN, pace, 1)] == [Effect.NONE, Effect.ONCE]


def test_what_does_nothing_outside_does_not_break_there() -> None:
    (look, click) = turns(PLAN, Pace(breaks=1.0), 1)
    assert (look.breaks, click.breaks) == (False, True)


def test_an_agent_is_told_on_the_command_line_what_it_is() -> None:
    sim = Sim(client_id="s", urls=("http://a", "http://b"), token="t", pace=Pace(step_s=(1.0, 2.0)))
    assert SIM.validate_json(SIM.dump_json(sim)) == sim


async def test_what_was_done_at_the_site_is_in_its_log(tmp_path: Path) -> None:
    log = tmp_path / "effects.jsonl"
    async with opened(log):
        assert read(log) == []


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(root=tmp_path)
    await house.serve()
    yield house
    house.close()


@contextlib.asynccontextmanager
async def living(house: House, site: str, pace: Pace) -> AsyncIterator[FarmClient]:
    """A simulated agent for as long as the block lasts, which then leaves."""
    sim = Sim(client_id="sim", urls=(house.url,), token=AGENT_TOKEN, slots=2, site=site, pace=pace)
    stop = asyncio.Event()
    async with house.client() as client, asyncio.TaskGroup() as group:
        life = group.create_task(live(sim, stop))
        yield client
        stop.set()
        assert await life == Exit(0)


async def test_it_runs_jobs_and_what_they_do_is_seen_from_outside(
    house: House, tmp_path: Path
) -> None:
    log = tmp_path / "effects.jsonl"
    async with opened(log) as site, living(house, site, Pace()) as client:
        done = await ran(client, job("orders", *ORDER))
    assert done.state == "succeeded"
    assert [(e.effect, e.done_at is not None) for e in done.effects] == [("once", True)]
    (line,) = read(log)
    assert line.key == (done.id, 1)
    assert line.attempt == done.history[0].id
    assert twice(read(log)) == {}


async def test_a_page_that_breaks_leaves_the_effect_done_and_the_job_uncertain(
    house: House, tmp_path: Path
) -> None:
    log = tmp_path / "effects.jsonl"
    async with opened(log) as site, living(house, site, Pace(breaks=1.0)) as client:
        done = await ran(client, job("orders", *ORDER))
    assert done.state == "uncertain"
    assert len(read(log)) == 1
