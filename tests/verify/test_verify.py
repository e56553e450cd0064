"""A farm that runs proves what its pool promises, and one that breaks a promise is caught."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.api.request_state import Principal
from farm.clock import system_clock
from farm.core.job_states import JobState
from farm.core.model import Capacity, Client, ClientId, Instant, LinkId
from farm.manager.acquisition import Acquisition
from farm.protocol import messages as wire
from farm.protocol.resources import PointView
from farm.sdk import FarmApiError, FarmUnreachableError
from farm.stores.ledger import SqliteDatabase
from farm.stores.redis import RedisCommandLog, RedisRegistry, connect
from farm.verify import VERIFY, Verifier
from farm.verify.client import ProbeClient, Script
from farm.verify.outcomes import Seen
from farm.verify.points import POINTS, Point
from farm.verify.stage import Stage
from tests.stores.conftest import redis_url
from tests.stores.pool import hello
from tests.verify.broken import BROKEN, ForgetsEffects, Registry, WithoutClientRelease
from tests.verify.farm import DEFAULT, WINDOW_S, Served, serving, until

__all__ = ["redis_url"]

JOB = b'{"name": "mine", "steps": [{"goto": "https://example.com/"}]}'


def only(number: int) -> tuple[Point, ...]:
    return (POINTS[number - 1],)


async def forever(_: Stage, seen: Seen) -> None:
    seen("it begins")
    await asyncio.Event().wait()


LINK = LinkId("link")


async def has_been_left(farm: Served) -> ClientId:
    """Have an agent of a verification that is not running any more; return its name."""
    now = farm.farm.clock()
    agent = hello("farm-verify.1.gone", link=LINK, namespaces=(VERIFY,), seen_at=now)
    await farm.farm.registry.register(agent, epoch_name="e", highest_token=None, now=now)
    return agent.client_id


ENDLESS = (Point(number=1, claim="it never ends", prove=forever),)


@asynccontextmanager
async def over_redis(
    directory: Path, url: str, points: Sequence[Point] = POINTS
) -> AsyncIterator[Served]:
    redis = connect(url)
    registry = RedisRegistry(redis, presence_window_s=WINDOW_S, shard="verify")
    await registry.open(store_epoch=1)
    log = RedisCommandLog(registry)
    try:
        async with serving(directory, registry=registry, log=log, points=points) as farm:
            yield farm
    finally:
        await registry.close()
        await redis.aclose()


@pytest.fixture(params=["memory", "redis"])
async def farm(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    if request.param == "memory":
        async with serving(tmp_path) as farm:
            yield farm
        return
    async with over_redis(tmp_path, request.getfixturevalue("redis_url")) as farm:
        yield farm


async def test_a_farm_that_keeps_its_promises_proves_all_nine_and_keeps_nothing(
    farm: Served,
) -> None:
    points, end = await farm.verified()
    settled = {number: (point.outcome, point.reason) for number, point in points.items()}
    assert settled == dict.fromkeys(range(1, 10), ("pass", None))
    assert all(point.evidence for point in points.values())
    assert end.left_behind == ()
    assert end.seconds < 60
    assert await farm.left() == []


async def test_it_can_be_done_again(tmp_path: Path) -> None:
    async with serving(tmp_path, points=(*only(3), *only(9))) as farm:
        for _ in range(2):
            points, end = await farm.verified()
            assert {p.outcome for p in points.values()} == {"pass"}
            assert end.left_behind == ()


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_promise_is_a_point_that_fails(name: str, tmp_path: Path) -> None:
    number, make, said = BROKEN[name]
    async with serving(tmp_path, registry=make(), points=only(number)) as farm:
        points, end = await farm.verified()
        assert points[number].outcome == "fail"
        assert said in (points[number].reason or "")
        assert end.left_behind == ()


async def test_a_manager_that_creates_unelected_fails_point_eight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Acquisition, "_not_ours", lambda *_: frozenset())
    async with serving(tmp_path, points=only(8)) as farm:
        points, _ = await farm.verified()
    assert points[8].outcome == "fail"
    assert points[8].reason == "who is not elected had 2 windows opened"


async def test_a_farm_that_does_not_sweep_fails_point_five(tmp_path: Path) -> None:
    began = system_clock()

    def ten_times_faster() -> Instant:
        return Instant(began + 10 * (system_clock() - began))

    async with serving(
        tmp_path,
        registry=Registry(presence_window_s=100),
        clock=ten_times_faster,
        points=only(5),
        sweeps=False,
    ) as farm:
        points, _ = await farm.verified()
    assert points[5].outcome == "fail"
    assert points[5].reason == "abandoned work still holds 10 s after its time"


async def test_a_farm_that_tries_again_without_evidence_fails_point_nine(tmp_path: Path) -> None:
    ledger = ForgetsEffects(SqliteDatabase(tmp_path / "farm.db"))
    async with serving(tmp_path, ledger=ledger, points=only(9)) as farm:
        points, end = await farm.verified()
        assert points[9].outcome == "fail"
        assert "a job whose effect `once` began and is not known to be done" in str(
            points[9].reason
        )
        assert end.left_behind == ()
        assert await farm.left() == []


async def test_what_lacks_what_it_needs_is_not_proven_and_says_so(tmp_path: Path) -> None:
    registry: Any = WithoutClientRelease()
    async with serving(tmp_path, registry=registry, points=only(6)) as farm:
        points, _ = await farm.verified()
    assert points[6].outcome == "not_proven"
    assert "release_client" in str(points[6].reason)


async def test_without_agents_let_in_nothing_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as farm:
        monkeypatch.setattr(farm.tokens, "lend", lambda **_: nullcontext("not a token"))
        points, end = await farm.verified()
    assert len(points) == 9
    assert {p.outcome for p in points.values()} == {"not_proven"}
    assert all("was not let in" in str(p.reason) for p in points.values())
    assert end.left_behind == ()


async def test_a_farm_that_takes_long_to_let_its_agents_in_is_verified_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    running = loop.time
    async with serving(tmp_path, points=only(3)) as farm:
        admit = farm.tokens.principal

        async def admit_late(secret: str) -> Principal | None:
            principal = await admit(secret)
            if principal is not None and principal.namespace == VERIFY:
                monkeypatch.setattr(loop, "time", lambda: running() + 10)
                await asyncio.sleep(0)
            return principal

        monkeypatch.setattr(farm.tokens, "principal", admit_late)
        points, _ = await farm.verified()
    assert (points[3].outcome, points[3].reason) == ("pass", None)


async def test_what_does_not_end_is_not_proven_when_its_time_is_over(tmp_path: Path) -> None:
    async with serving(tmp_path, points=ENDLESS, proof_s=0.1) as farm:
        points, end = await farm.verified()
    assert points[1].outcome == "not_proven"
    assert points[1].reason == "it was not settled within 0.1 s"
    assert points[1].evidence == ("it begins",)
    assert end.seconds < 10


async def test_of_two_at_once_the_second_is_refused_by_name(tmp_path: Path) -> None:
    points = (*only(3), *ENDLESS)
    async with serving(tmp_path, points=points) as farm, farm.client() as client:
        first = client.verify()
        assert isinstance(await anext(first), PointView)
        with pytest.raises(FarmApiError) as refused:
            await farm.verified()
        assert refused.value.status == 409
        assert "another verification is running" in refused.value.problem.detail
        await first.aclose()


async def test_one_that_runs_on_another_coordinator_is_known_too(
    tmp_path: Path, redis_url: str
) -> None:
    points = (*only(3), *ENDLESS)
    (tmp_path / "two").mkdir()
    async with (
        over_redis(tmp_path, redis_url, points) as one,
        over_redis(tmp_path / "two", redis_url, points) as two,
        one.client() as client,
    ):
        first = client.verify()
        await anext(first)
        with pytest.raises(FarmApiError) as refused:
            await two.verified()
        assert refused.value.status == 409
        await first.aclose()


async def test_it_ends_and_keeps_nothing_when_whoever_asked_has_gone(farm: Served) -> None:
    async with farm.client() as client:
        told = client.verify()
        assert isinstance(await anext(told), PointView)
        assert await farm.left() != []
        await told.aclose()

    async def nothing_left() -> bool:
        return await farm.left() == []

    await until(nothing_left)
    # And the next may begin as soon as it has ended.
    await until(lambda: _begins(farm))


async def _begins(farm: Served) -> bool:
    async with farm.client() as client:
        try:
            return isinstance(await anext(client.verify()), PointView)
        except FarmApiError:
            return False


# A probe may dial in the moment in which the farm stops listening: what asyncio has accepted by
# then it drops without closing it (gh-109564).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_farm_that_stops_meanwhile_keeps_nothing_either(tmp_path: Path) -> None:
    async with serving(tmp_path) as farm, farm.client() as client:
        told = client.verify()
        assert isinstance(await anext(told), PointView)
        await until(lambda: farm.farm.ledger.jobs(VERIFY, state=None, before=None, limit=1))
        await farm.stop()
        with pytest.raises(FarmUnreachableError):
            [line async for line in told]
        assert await farm.left() == []


async def test_what_a_killed_one_has_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    async with serving(tmp_path, points=only(3)) as farm:
        await farm.farm.jobs.submit(VERIFY, JOB, "application/json", {}, None)
        name = await has_been_left(farm)
        with pytest.raises(FarmApiError) as refused:
            await farm.verified()
        assert "or has just been killed" in refused.value.problem.detail
        await farm.farm.registry.unlink(name, LINK, now=farm.farm.clock())
        points, end = await farm.verified()
        assert points[3].outcome == "pass"
        assert end.left_behind == ()
        assert await farm.left() == []


async def test_what_is_left_behind_is_said(tmp_path: Path) -> None:
    async with serving(tmp_path, points=only(3)) as farm:

        async def forgets_nobody(client_id: ClientId, why: str) -> None:
            del client_id, why

        kept = replace(farm.farm, agent_is_gone=forgets_nobody)
        verifier = Verifier(kept, lambda: nullcontext("no token"), points=only(3))
        verification = await verifier.begin(f"{farm.url}/v1/agent", "127.0.0.1")
        name = await has_been_left(farm)
        assert (await verification.end()).left_behind == (f"agent {name}",)


async def test_agents_and_jobs_of_others_are_not_touched(farm: Served) -> None:
    mine = ProbeClient(
        ClientId("mine"),
        DEFAULT,
        Script(metadata={}, capacity=Capacity(max_concurrency=2, max_windows=2), tabs=2),
    )
    async with asyncio.TaskGroup() as group:
        life = await farm.joined(group, mine)
        job, _ = await farm.farm.jobs.submit(DEFAULT, JOB, "application/json", {}, None)
        run = await mine.runs.get()
        before = await _of(farm, mine)
        orders = len(mine.orders)
        points, _ = await farm.verified()
        assert {p.outcome for p in points.values()} == {"pass"}
        after = await _of(farm, mine)
        assert len(mine.orders) == orders
        assert (after.contexts, after.windows) == (before.contexts, before.windows)
        held, still = before.assignments, after.assignments
        assert {c: a.token for c, a in held.items()} == {c: a.token for c, a in still.items()}
        assert (await farm.farm.ledger.job(DEFAULT, job.job_id)).state is JobState.RUNNING
        assert await farm.farm.ledger.attempts(job.job_id)
        async with farm.client() as client:
            assert [agent.client_id for agent in await client.agents()] == ["mine"]
            assert [one.id for one in (await client.jobs()).items] == [job.job_id]
        assert not isinstance(run.body, wire.Release)
        life.cancel()


async def test_readiness_does_not_rest_on_agents_without_a_browser(tmp_path: Path) -> None:
    points = (*only(3), *ENDLESS)
    async with serving(tmp_path, points=points) as farm, farm.client() as client:
        told = client.verify()
        await anext(told)
        assert await farm.left() != []
        ready = await client.ready()
        assert (ready.ready, ready.reason) == (False, "no agent is connected")
        await told.aclose()


async def _of(farm: Served, probe: ProbeClient) -> Client:
    snapshot = await farm.farm.registry.snapshot(now=farm.farm.clock())
    return next(c for c in snapshot.clients if c.client_id == probe.client_id)
