import asyncio

from farm.api.readiness import Readiness
from farm.core.model import Instant
from farm.errors import ClientAbsentError, StoreUnavailableError
from tests.api.stack import Probe, Stack
from tests.patience import PATIENCE_S


async def test_healthz_says_200_and_nothing_else(stack: Stack) -> None:
    async with stack.http.get(f"{stack.url}/healthz", headers={"Host": "10.1.2.3"}) as response:
        assert response.status == 200
        assert await response.read() == b""


async def test_a_farm_that_is_not_ready_gives_its_reason_only_to_those_with_a_token(
    stack: Stack,
) -> None:
    stack.probe.reason = "no agent is there"
    async with stack.http.get(f"{stack.url}/readyz") as response:
        assert response.status == 503
        assert await response.json() == {"ready": False, "reason": None, "checked_at": None}
    for headers in (stack.as_admin(), stack.as_agent()):
        async with stack.http.get(f"{stack.url}/readyz", headers=headers) as response:
            assert (await response.json())["reason"] == "no agent is there"


async def test_a_ready_farm_is_tested_once_in_half_a_minute() -> None:
    now, probe = [Instant(1000.0)], Probe()
    readiness = Readiness(probe, lambda: now[0])
    for second in range(31):
        now[0] = Instant(1000.0 + second)
        assert (await readiness.verdict()).reason is None
    assert probe.ran == 1
    now[0] = Instant(1031.0)
    await readiness.verdict()
    assert probe.ran == 2


async def test_a_finished_job_says_as_much_as_a_test() -> None:
    now, probe = [Instant(1000.0)], Probe()
    readiness = Readiness(probe, lambda: now[0])
    for second in range(0, 300, 20):
        now[0] = Instant(1000.0 + second)
        readiness.worked()
        assert (await readiness.verdict()).reason is None
    assert probe.ran == 0


async def test_a_farm_that_was_not_ready_is_tested_again_soon() -> None:
    now, probe = [Instant(1000.0)], Probe(reason="nobody")
    readiness = Readiness(probe, lambda: now[0])
    assert (await readiness.verdict()).reason == "nobody"
    probe.reason = None
    now[0] = Instant(1001.5)
    assert (await readiness.verdict()).reason is None


async def test_however_many_ask_one_test_runs() -> None:
    started, go = asyncio.Event(), asyncio.Event()
    ran = []

    async def slow() -> str | None:
        ran.append(1)
        started.set()
        await go.wait()
        return None

    readiness = Readiness(slow, lambda: Instant(1.0))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        asked = [group.create_task(readiness.verdict()) for _ in range(10)]
        await started.wait()
        go.set()
    assert {task.result().reason for task in asked} == {None}
    assert len(ran) == 1


async def test_a_test_that_hangs_or_finds_nobody_is_a_reason() -> None:
    async def hangs() -> str | None:
        await asyncio.Event().wait()
        return None

    async def nobody() -> str | None:
        raise ClientAbsentError("the agent has gone")

    hanging = Readiness(hangs, lambda: Instant(1.0), timeout_s=0.01)
    assert "longer" in ((await hanging.verdict()).reason or "")
    alone = Readiness(nobody, lambda: Instant(1.0))
    assert (await alone.verdict()).reason == "the agent has gone"


async def test_a_farm_whose_ledger_does_not_answer_is_not_ready() -> None:
    async def away() -> None:
        raise StoreUnavailableError("the ledger failed: no answer")

    async def works() -> str | None:
        return None

    verdict = await Readiness(works, lambda: Instant(1.0), store=away).verdict()
    assert verdict.reason == "the ledger failed: no answer"
