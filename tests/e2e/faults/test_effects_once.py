"""No effect twice (P12): what becomes of an order whose answer is lost with agent or browser."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import psutil
import pytest

from farm.cli.exits import ExitCode
from farm.sdk import FarmClient
from tests.e2e.faults.conftest import Tough
from tests.e2e.faults.house import House, agents_of, browser_of, free_port, lives, living
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import SEEN_S, happened, job, kinds, rested, submitted, works
from tests.e2e.processes import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_Victim = Callable[[psutil.Process], psutil.Process]


def order(url: str, *, effect: str | None = None, **more: object) -> dict[str, Any]:
    """A job that orders once; the click counts as it is marked, or as it is not."""
    click: Mapping[str, object] = {"selector": "role=button[name='Place order']"}
    if effect is not None:
        click = {**click, "effect": effect}
    steps = (
        {"goto": f"{url}/order"},
        {"fill": {"selector": "#name", "value": "demo"}},
        {"click": click},
        {"wait_for": "#thanks"},
        {"extract": {"fields": {"message": "#thanks"}}},
    )
    return job("orders", *steps, **{"retry": {"max_attempts": 3}, **more})


async def killed_after_the_click(
    tough: Tough, client: FarmClient, place: Place, body: Mapping[str, Any], victim: _Victim
) -> str:
    """Submit an order, and kill when the shop has it and has not answered; return the job."""
    place.hold("/order")
    job_id = await submitted(client, body)
    await place.asked("POST /order")
    assert place.ordered == 1
    (agent,) = agents_of(tough.process)
    victim(agent).kill()
    await happened(client, job_id, "attempt_ended", SEEN_S)
    place.let_go("/order")
    return job_id


@pytest.mark.parametrize(
    ("victim", "effect"),
    [(lambda agent: agent, None), (browser_of, None), (browser_of, "once")],
    ids=["agent-unmarked", "browser-unmarked", "browser-once"],
)
async def test_an_order_whose_answer_is_lost_is_held_and_not_made_again(
    tough: Tough, client: FarmClient, place: Place, victim: _Victim, effect: str | None
) -> None:
    body = order(place.url, effect=effect)
    job_id = await killed_after_the_click(tough, client, place, body, victim)
    done = await rested(client, job_id, SEEN_S)
    assert done.state == "uncertain"
    assert len(done.history) == 1
    assert [(e.step_index, e.effect) for e in done.effects if not e.observed] == [(2, "once")]
    await works(client, place.url)
    assert place.ordered == 1
    assert (await client.job(job_id)).state == "uncertain"


async def test_a_job_that_says_fail_has_failed_and_ordered_once(
    tough: Tough, client: FarmClient, place: Place
) -> None:
    body = order(place.url, on_uncertain="fail")
    job_id = await killed_after_the_click(tough, client, place, body, browser_of)
    done = await rested(client, job_id, SEEN_S)
    assert done.state == "failed"
    await works(client, place.url)
    assert place.ordered == 1


@pytest.mark.parametrize(
    "more",
    [{"on_uncertain": "retry"}, {"effects": "idempotent"}, {"effect": "idempotent"}],
    ids=["on_uncertain-retry", "effects-idempotent", "step-idempotent"],
)
async def test_an_order_is_made_again_only_where_the_job_says_so(
    tough: Tough, client: FarmClient, place: Place, more: dict[str, Any]
) -> None:
    body = order(place.url, **more)
    job_id = await killed_after_the_click(tough, client, place, body, browser_of)
    done = await rested(client, job_id)
    assert done.state == "succeeded", done.failure
    assert [attempt.state for attempt in done.history] == ["lost", "succeeded"]
    assert place.ordered == 2


@pytest.mark.parametrize(
    ("decision", "victim", "ordered"),
    [("succeeded", lambda agent: agent, 1), ("retry", browser_of, 2)],
    ids=["succeeded", "retry"],
)
async def test_a_person_decides_what_an_uncertain_order_was(
    tough: Tough, client: FarmClient, place: Place, decision: str, victim: _Victim, ordered: int
) -> None:
    file = tough.house.root / "order.json"
    file.write_text(json.dumps(order(place.url)))
    place.hold("/order")
    at = ("--data-dir", str(tough.house.data_dir))
    watching = tough.house.start("farm.cli", "jobs", "submit", str(file), "--watch", *at, env={})
    await place.asked("POST /order")
    (agent,) = agents_of(tough.process)
    victim(agent).kill()
    await eventually(lambda: watching.poll() is not None, 20)
    assert watching.returncode == ExitCode.UNCERTAIN, tough.house.said()
    place.let_go("/order")
    (uncertain,) = (await client.jobs("uncertain", limit=1)).items
    command = ("farm.cli", "jobs", "resolve", uncertain.id, "--as", decision, *at)
    resolving = tough.house.start(*command, env={})
    await eventually(lambda: resolving.poll() is not None, 20)
    assert resolving.returncode == ExitCode.SUCCEEDED, tough.house.said()
    assert (await rested(client, uncertain.id)).state == "succeeded"
    assert place.ordered == ordered


async def test_farm_run_ends_with_the_code_of_an_uncertain_job(house: House, place: Place) -> None:
    file = house.root / "order.json"
    file.write_text(json.dumps(order(place.url)))
    place.hold("/order")
    run = house.start("farm.cli", "run", str(file), env={})
    await place.asked("POST /order")
    (agent,) = agents_of(run)
    agent.kill()
    await eventually(lambda: run.poll() is not None, 20)
    assert run.returncode == ExitCode.UNCERTAIN, house.said()
    assert place.ordered == 1
    assert living(house.chromium()) == []


async def test_a_request_that_a_page_makes_by_itself_counts_as_an_effect(
    tough: Tough, client: FarmClient, place: Place
) -> None:
    place.hold("/posted")
    steps = ({"goto": f"{place.url}/posts"}, {"wait_for": "#done"})
    job_id = await submitted(client, job("posts", *steps, timeout={"step": "60s"}))
    await place.asked("POST /posted")
    begun = await happened(client, job_id, "effect_begun", SEEN_S)
    assert begun.data["observed"] is True
    (agent,) = agents_of(tough.process)
    agent.kill()
    done = await rested(client, job_id, SEEN_S)
    place.let_go("/posted")
    assert done.state == "uncertain"
    (effect,) = done.effects
    assert (effect.observed, effect.method, effect.done_at) == (True, "POST", None)
    await works(client, place.url)
    assert place.hits["POST /posted"] == 1


async def test_an_order_that_was_answered_is_not_made_again_by_a_later_loss(
    tough: Tough, client: FarmClient, place: Place
) -> None:
    place.hold("/held/page")
    body = order(place.url)
    body["steps"].append({"goto": f"{place.url}/held/page"})
    job_id = await submitted(client, body)
    await place.asked("GET /held/page")
    (agent,) = agents_of(tough.process)
    browser_of(agent).kill()
    done = await rested(client, job_id, SEEN_S)
    place.let_go("/held/page")
    assert done.state == "failed"
    assert place.ordered == 1
    ended = await happened(client, job_id, "attempt_ended")
    assert ended.data["next"] == "effect_would_repeat"


async def test_an_order_on_a_living_agent_outlives_the_coordinator(
    house: House, place: Place
) -> None:
    house.settings = {"FARM_LINK__WINDOW_S": "20"}
    port = free_port()
    coordinator = await house.serve("--allow", "127.0.0.1", port=port)
    agent = await house.agent("lone")
    place.hold("/order")
    async with house.client() as client:
        job_id = await submitted(client, order(place.url))
        await place.asked("POST /order")
        coordinator.kill()
        coordinator.wait()
        place.let_go("/order")
        await place.asked("GET /thanks")
        await house.serve("--allow", "127.0.0.1", port=port)
        done = await rested(client, job_id)
        assert done.state == "succeeded", done.failure
        assert len(done.history) == 1
        assert "items" in await kinds(client, job_id)
    assert agent.poll() is None
    assert place.ordered == 1


async def test_an_order_that_is_lost_with_the_whole_farm_is_uncertain_when_it_is_back(
    house: House, place: Place
) -> None:
    farm = await house.up("--allow", "127.0.0.1")
    place.hold("/order")
    async with house.client() as client:
        job_id = await submitted(client, order(place.url))
    await place.asked("POST /order")
    below = {*house.chromium(), *agents_of(farm)}
    farm.kill()
    farm.wait()
    place.let_go("/order")
    await eventually(lambda: not any(lives(one) for one in below), 5)
    await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        done = await rested(client, job_id)
        assert done.state == "uncertain"
        await works(client, place.url)
    assert place.ordered == 1
