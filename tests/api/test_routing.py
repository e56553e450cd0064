"""Pools, what waits for them, and why: as the API tells it."""

from typing import Any

from farm.clock import system_clock
from farm.core.census import Census, PoolVerdict
from farm.core.model import Namespace, Request, TaskId
from farm.jobs.ports import Waiting
from tests.api.stack import AGENT, DEFAULT, JOB, Stack
from tests.api.test_pool import ask, assign, connect
from tests.stores.ledger_rows import new_job

OTHER = Namespace("other")


async def waits(stack: Stack, job_id: str, **changes: Any) -> None:
    """Have the dispatcher say that nobody could take a job."""
    job = await stack.ledger.job(DEFAULT, job_id)
    values: dict[str, Any] = {
        "reason": "no_agent",
        "remedy": "start one",
        "detail": "no agent is in the pool default",
        "pool": PoolVerdict.NO_LIVE_POLLERS,
        "census": Census(last_compatible_age_s=7.0),
        "request": Request(namespace=DEFAULT, task_id=TaskId(job_id), auto_provision=True),
    }
    stack.dispatcher.waits[job.match_key] = Waiting(**(values | changes))


async def test_a_pool_is_shown_with_its_agents_slots_and_jobs(stack: Stack) -> None:
    await connect(stack)
    await assign(stack)
    await stack.submit()
    await stack.submit({**JOB, "queue": "empty"})
    default, empty = (await ask(stack, "/v1/pools"))["items"]
    assert (default["task_queue"], default["agents"], default["queued"]) == ("default", 1, 1)
    assert default["slots"] - default["slots_used"] == default["slots_free"]
    assert default["slots_used"] == 1
    assert default["verdict"] is None
    assert (empty["task_queue"], empty["agents"], empty["queued"]) == ("empty", 0, 1)
    assert empty["verdict"]["verdict"] == "no_live_pollers"
    assert empty["verdict"]["reason"] == "other_queue"


async def test_a_pool_whose_agents_drain_says_so(stack: Stack) -> None:
    await connect(stack)
    await stack.registry.set_draining(AGENT)
    (pool,) = (await ask(stack, "/v1/pools"))["items"]
    assert (pool["draining"], pool["slots_free"]) == (1, 0)
    assert pool["verdict"]["verdict"] == "pollers_draining"
    assert pool["verdict"]["census"]["draining"] == 1


async def test_what_nobody_can_take_is_listed_once_a_kind_with_its_jobs_oldest_first(
    stack: Stack,
) -> None:
    first, second = await stack.submit(), await stack.submit()
    assert (await ask(stack, "/v1/pools/unserved"))["items"] == []
    await waits(stack, first)
    (one,) = (await ask(stack, "/v1/pools/unserved"))["items"]
    assert [job["id"] for job in one["jobs"]] == [first, second]
    assert (one["count"], one["verdict"], one["structural"]) == (2, "no_live_pollers", False)
    assert one["address"]["task_queue"] == "default"
    assert one["census"]["last_compatible_age_s"] == 7.0
    assert one["since"] == one["jobs"][0]["created_at"]
    assert 0 <= one["age_s"] < 60
    assert one["remedy"] == "start one"


async def test_an_entry_is_gone_with_its_jobs_however_they_leave_the_queue(stack: Stack) -> None:
    served, cancelled, paused = [await stack.submit() for _ in range(3)]
    await waits(stack, served)

    async def listed() -> list[str]:
        found = (await ask(stack, "/v1/pools/unserved"))["items"]
        return [job["id"] for one in found for job in one["jobs"]]

    assert await listed() == [served, cancelled, paused]
    await stack.start(served)
    assert await listed() == [cancelled, paused]
    await stack.ledger.request_cancel(DEFAULT, cancelled, now=system_clock())
    assert await listed() == [paused]
    await stack.ledger.hold_queued(DEFAULT, paused, paused=True, by="anna", now=system_clock())
    assert (await ask(stack, "/v1/pools/unserved"))["items"] == []


async def test_a_job_is_told_its_place_its_verdict_and_each_agents_reason(stack: Stack) -> None:
    await connect(stack)
    await stack.registry.set_draining(AGENT)
    first, second = await stack.submit(), await stack.submit()
    await waits(stack, first)
    why = await ask(stack, f"/v1/jobs/{second}/why")
    assert (why["state"], why["position"]) == ("queued", 2)
    assert why["verdict"]["verdict"] == "pollers_draining"
    assert why["verdict"]["census"]["compatible"] == 1
    assert why["detail"] == "of 1 agents in the pool default 1 would do: 1 draining"
    assert why["agents"] == [{"client_id": AGENT, "reason": "draining", "detail": "it is draining"}]
    assert why["begins_within_s"] is None


async def test_a_job_that_does_not_wait_for_an_agent_says_what_it_does(stack: Stack) -> None:
    unseen, held, running, ended = [await stack.submit() for _ in range(4)]
    await stack.ledger.hold_queued(DEFAULT, held, paused=True, by="anna", now=system_clock())
    await stack.start(running)
    await stack.finish(await stack.start(ended))
    said = {
        job_id: (await ask(stack, f"/v1/jobs/{job_id}/why"))
        for job_id in (unseen, held, running, ended)
    }
    assert [one["detail"] for one in said.values()] == [
        "nobody has looked at it yet",
        "it is paused by anna",
        f"it runs on {AGENT}",
        "it has ended: succeeded",
    ]
    assert [one["position"] for one in said.values()] == [1, None, None, None]
    assert all(one["verdict"] is None and one["agents"] == [] for one in said.values())


async def test_a_job_that_waits_for_an_identity_says_so_and_no_agent_is_blamed(
    stack: Stack,
) -> None:
    job_id = await stack.submit()
    await waits(
        stack,
        job_id,
        reason="identity_in_use",
        detail="job j has it",
        pool=PoolVerdict.NO_IDENTITY_FREE,
        census=None,
        request=None,
    )
    why = await ask(stack, f"/v1/jobs/{job_id}/why")
    assert (why["verdict"]["verdict"], why["detail"]) == ("no_identity_free", "job j has it")
    assert (why["verdict"]["census"], why["agents"]) == (None, [])
    (one,) = (await ask(stack, "/v1/pools/unserved"))["items"]
    assert one["address"] is None


async def test_nothing_of_another_namespace_is_told(stack: Stack) -> None:
    await connect(stack, "agent-2", "other")
    job_id = await stack.submit()
    await waits(stack, job_id)
    why = await ask(stack, f"/v1/jobs/{job_id}/why")
    assert why["agents"] == []
    assert why["verdict"]["census"]["in_pool"] == 0
    assert why["verdict"]["reason"] == "no_agent"
    assert "namespace" not in why["verdict"]["remedy"]
    (pool,) = (await ask(stack, "/v1/pools"))["items"]
    assert pool["agents"] == 0
    ours = await stack.ledger.job(DEFAULT, job_id)
    foreign = new_job("foreign", namespace=OTHER, match_key=ours.match_key)
    await stack.ledger.accept(foreign, now=system_clock())
    async with stack.http.get(
        f"{stack.url}/v1/jobs/foreign/why", headers=stack.as_admin()
    ) as response:
        assert response.status == 404
    (unserved,) = (await ask(stack, "/v1/pools/unserved"))["items"]
    assert [job["id"] for job in unserved["jobs"]] == [job_id]


async def test_jobs_that_nobody_can_take_are_a_gauge_by_verdict(stack: Stack) -> None:
    first = await stack.submit()
    await stack.submit()
    await waits(stack, first)
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as response:
        told = await response.text()
    assert 'farm_jobs_unserved{verdict="no_live_pollers"} 2.0' in told
    assert 'farm_jobs_unserved{verdict="pollers_at_capacity"} 0.0' in told
