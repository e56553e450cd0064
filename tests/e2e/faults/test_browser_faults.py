"""Pages that crash, hang or never come, and browsers, drivers and agents that are killed."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from farm.protocol.failures import Reason
from farm.protocol.resources import AttemptView
from farm.sdk import FarmClient
from tests.e2e.faults.conftest import Tough
from tests.e2e.faults.house import House, agents_of, browser_of, driver_of, living
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import SEEN_S, happened, job, once, ran, rested, submitted, works
from tests.e2e.processes import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def last_step_s(attempt: AttemptView) -> float:
    """How long the attempt went on after its last step had begun."""
    assert attempt.ended_at is not None
    return (attempt.ended_at - attempt.steps[-1].started_at).total_seconds()


async def test_a_crashed_renderer_fails_each_attempt_at_once_and_the_slot_goes_on(
    client: FarmClient, place: Place
) -> None:
    done = await ran(client, job("crashes", {"goto": f"{place.url}/crash"}, {"wait": "60s"}))
    assert done.state == "failed"
    assert [a.failure.reason for a in done.history if a.failure] == [Reason.PAGE_CRASHED] * 2
    assert done.failure is not None
    assert done.failure.step_index in (0, 1)
    assert all(last_step_s(attempt) < SEEN_S for attempt in done.history)
    await works(client, place.url)


async def test_a_hung_page_is_given_up_at_the_step_that_waits_for_it(
    client: FarmClient, place: Place
) -> None:
    endless = {"script": "(() => { for (;;) {} })()", "effect": "none"}
    steps = ({"goto": f"{place.url}/"}, {"eval": endless}, {"extract": {"fields": {"t": "h1"}}})
    done = await ran(client, once("hangs", *steps, timeout={"step": "1s"}))
    assert done.state == "failed"
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (Reason.STEP_TIMEOUT, 1)
    assert last_step_s(done.history[0]) < 1 + SEEN_S
    await works(client, place.url)


async def test_a_job_whose_time_is_over_in_a_hung_page_has_timed_out(
    client: FarmClient, place: Place
) -> None:
    steps = ({"goto": {"url": f"{place.url}/hang", "wait_until": "commit"}}, {"wait_for": "#never"})
    done = await ran(client, job("runs-out", *steps, timeout={"job": "2s", "step": "60s"}))
    assert done.state == "timed_out"
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (Reason.JOB_TIMEOUT, 1)
    assert len(done.history) == 1
    await works(client, place.url)


async def test_a_page_that_never_answers_is_waited_for_no_longer_than_the_job_says(
    client: FarmClient, place: Place
) -> None:
    step = {"goto": f"{place.url}/hang-response"}
    done = await ran(client, once("waits", step, timeout={"navigation": "1s"}))
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (Reason.NAVIGATION_TIMEOUT, 0)
    assert last_step_s(done.history[0]) < 1 + SEEN_S
    await works(client, place.url)


@pytest.mark.parametrize(
    ("victim", "reason"),
    [
        (browser_of, Reason.BROWSER_LOST),
        (driver_of, Reason.BROWSER_LOST),
        (lambda agent: agent, Reason.AGENT_LOST),
    ],
    ids=["browser", "driver", "agent"],
)
async def test_what_is_killed_in_the_middle_of_a_job_takes_one_attempt_with_it_and_no_more(
    tough: Tough,
    client: FarmClient,
    place: Place,
    victim: Callable[[psutil.Process], psutil.Process],
    reason: Reason,
) -> None:
    place.hold("/held/page")
    job_id = await submitted(client, job("held", {"goto": f"{place.url}/held/page"}))
    await place.asked("GET /held/page")
    await happened(client, job_id, "step_started")
    (agent,) = agents_of(tough.process)
    before = tough.house.chromium()
    assert before
    victim(agent).kill()
    lost = await happened(client, job_id, "attempt_ended", SEEN_S)
    place.let_go("/held/page")
    await eventually(lambda: living(before) == [], 5)
    done = await rested(client, job_id)
    assert done.state == "succeeded", done.failure
    assert [attempt.state for attempt in done.history] == ["lost", "succeeded"]
    failure = done.history[0].failure
    assert failure is not None
    assert failure.reason == reason
    assert lost.data["next"] == "retry"
    assert place.hits["GET /held/page"] == 2
    await works(client, place.url)


async def test_a_browser_that_has_served_enough_is_replaced_and_no_job_notices(
    tmp_path: Path, chromium_executable: str, place: Place
) -> None:
    house = House(root=tmp_path, settings={"AGENT_RECYCLE_BROWSER_USES": "2"})
    try:
        await house.up("--allow", "127.0.0.1")
        async with house.client() as client:
            epochs = set()
            for number in range(4):
                done = await ran(client, once(f"job-{number}", {"goto": f"{place.url}/status/200"}))
                assert done.state == "succeeded", done.failure
                assert len(done.history) == 1
                epochs.add((await client.agents())[0].epoch)
            assert len(epochs) > 1
            assert "browser_uses: 2" in house.said()
    finally:
        house.close()


async def test_a_lost_browser_costs_no_more_attempts_than_the_job_has(
    tough: Tough, client: FarmClient, place: Place
) -> None:
    place.hold("/held/page")
    job_id = await submitted(client, once("held", {"goto": f"{place.url}/held/page"}))
    await place.asked("GET /held/page")
    await happened(client, job_id, "step_started")
    (agent,) = agents_of(tough.process)
    browser_of(agent).kill()
    done = await rested(client, job_id, SEEN_S)
    assert done.state == "failed"
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (Reason.BROWSER_LOST, 0)
    await works(client, place.url)


async def test_a_hundred_jobs_share_one_slot_in_the_order_they_came(
    client: FarmClient, place: Place
) -> None:
    step = {"goto": f"{place.url}/status/200", "wait_until": "commit"}
    ids = [await submitted(client, job(f"number {n}", step)) for n in range(100)]
    done = [await rested(client, job_id, 120) for job_id in ids]
    assert [one.state for one in done] == ["succeeded"] * 100
    attempts = [attempt for one in done for attempt in one.history]
    assert len(attempts) == 100
    for earlier, later in pairwise(attempts):
        assert earlier.ended_at is not None
        assert earlier.ended_at <= later.started_at


async def test_jobs_submitted_at_the_same_moment_are_all_accepted_and_run(
    client: FarmClient, place: Place
) -> None:
    body = job("together", {"goto": f"{place.url}/status/200"})
    async with asyncio.TaskGroup() as group:
        sent = [group.create_task(submitted(client, body)) for _ in range(10)]
    done = [await rested(client, task.result()) for task in sent]
    assert [one.state for one in done] == ["succeeded"] * 10
