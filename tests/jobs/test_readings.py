"""What is told of jobs that wait, where several coordinators may have them begun."""

from pathlib import Path

from farm.core.model import Instant, Request, Snapshot, TaskId
from farm.core.verdicts import Verdict
from farm.jobs.ports import Waiting
from farm.jobs.readings import Readings
from farm.stores.ledger import SqlBacklog
from tests.api.stack import StandInDispatcher
from tests.jobs.farm import NS, farm_on


async def test_why_jobs_wait_is_asked_of_all_agents_once_a_second_a_kind(tmp_path: Path) -> None:
    async with farm_on(tmp_path) as farm:
        asked: list[Request] = []

        async def explain(request: Request) -> tuple[Snapshot, Verdict]:
            asked.append(request)
            return await farm.manager.explain(request)

        request = Request(namespace=NS, task_id=TaskId("t"), through="one", auto_provision=True)
        own = Waiting(reason="linked_elsewhere", request=request)
        identity = Waiting(reason="identity_busy")
        now = Instant(100.0)
        readings = Readings(
            dispatcher=StandInDispatcher(waits={"k": own, "i": identity}),
            queue=SqlBacklog(farm.database),
            explain=explain,
            clock=lambda: now,
            shared=True,
        )
        told = await readings.unserved()
        assert (told["k"].reason, told["i"]) == ("no_agent", identity)
        assert await readings.unserved() == told
        assert [one.through for one in asked] == [None]
        now = Instant(102.0)
        assert await readings.waiting("k") == told["k"]
        assert len(asked) == 2
        assert await readings.waiting("other") is None
