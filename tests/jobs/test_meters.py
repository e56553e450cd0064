"""What is measured of attempts and stores has the usual names, and no ids."""

from pathlib import Path

from prometheus_client import CollectorRegistry

from farm.core.job_states import AttemptState
from farm.core.model import Namespace
from farm.jobs.meters import AttemptMeters
from farm.main.metering import store_times
from farm.stores.ledger import SqliteDatabase, SqlLedger
from tests.jobs.farm import NS, Agent, farm_on, living, until

A = Namespace("a")


def test_attempts_are_counted_by_namespace_and_outcome_and_their_durations_kept() -> None:
    metrics = CollectorRegistry()
    meters = AttemptMeters(metrics)
    for took_s in (1.0, 2.0):
        meters.dispatched(A)
        meters.completed(A, AttemptState.SUCCEEDED, took_s)
    meters.dispatched(A)
    meters.completed(A, AttemptState.LOST, 4.0)

    def value(name: str, **labels: str) -> float | None:
        return metrics.get_sample_value(name, {"namespace": "a", **labels})

    assert value("farm_attempts_dispatched_total") == 3
    assert value("farm_attempts_completed_total", outcome="succeeded") == 2
    assert value("farm_attempts_completed_total", outcome="lost") == 1
    assert value("farm_attempt_duration_seconds_count") == 3
    assert value("farm_attempt_duration_seconds_sum") == 7


async def test_an_attempt_counts_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    agent = Agent()
    async with living(agent), farm_on(tmp_path) as farm:
        await agent.dial(farm)
        job_id = await farm.submit()
        await agent.running()
        begun = farm.metrics.get_sample_value("farm_attempts_dispatched_total", {"namespace": NS})
        assert begun == 1
        await agent.end()
        await farm.state(job_id, "succeeded")
        labels = {"namespace": NS, "outcome": "succeeded"}
        await until(lambda: farm.metrics.get_sample_value("farm_attempts_completed_total", labels))


async def test_the_ledgers_transactions_are_measured(tmp_path: Path) -> None:
    metrics = CollectorRegistry()
    ledger = SqlLedger(SqliteDatabase(tmp_path / "farm.db"), observe=store_times(metrics))
    await ledger.open()
    await ledger.check()
    await ledger.close()
    for operation in ("read", "write"):
        labels = {"store": "ledger", "operation": operation}
        name = "farm_store_operation_duration_seconds_count"
        assert metrics.get_sample_value(name, labels) == 1
