"""A catalogue of task queues: what is not in it is refused at once, whoever serves it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from farm.core.census import Declaration, Declared, PoolVerdict
from farm.core.model import Namespace
from farm.errors import StoreUnavailableError
from farm.manager import Acquired, NotAcquired
from farm.manager.kept import KEPT_S
from farm.manager.queues import DeclaredQueues
from farm.stores.ledger import SqlDeployments, SqliteDatabase, SqlLedger
from farm.stores.ports.deployments import Deployment
from tests.manager.floor import NS, Floor
from tests.patience import PATIENCE_S
from tests.stores.pool import T0

A, B = Namespace("a"), Namespace("b")
UNCHECKED = Declared()
DECLARED = Declared(declaration=Declaration.DECLARED)


def undeclared(near: str | None = None) -> Declared:
    return Declared(declaration=Declaration.UNDECLARED, near=near)


class Counted(SqlDeployments):
    """Counts the readings, and can't be read while it is away."""

    readings = 0
    away = False

    async def deployments(self, namespace: Namespace) -> Sequence[Deployment]:
        self.readings += 1
        if self.away:
            raise StoreUnavailableError("the ledger is away")
        return await super().deployments(namespace)


@pytest.fixture
async def deployments(tmp_path: Path) -> AsyncIterator[Counted]:
    database = SqliteDatabase(tmp_path / "farm.db")
    ledger = SqlLedger(database)
    await ledger.open()
    yield Counted(database)
    await ledger.close()


async def test_a_queue_that_is_not_declared_is_refused_at_once_though_somebody_serves_it(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a", task_queue="strange")
    manager = floor.manager(queues=DeclaredQueues(("known",)))
    async with asyncio.timeout(PATIENCE_S):
        outcome = await manager.try_acquire(NS, "t", task_queue="strange", wait=3600)
    assert isinstance(outcome, NotAcquired)
    assert outcome.verdict.pool is PoolVerdict.NO_QUEUE_DECLARATION
    assert outcome.verdict.pool.structural
    assert outcome.verdict.census is not None
    assert outcome.verdict.census.compatible == 1
    assert await floor.used() == 0


async def test_without_a_catalogue_and_for_what_is_in_it_nothing_is_refused(floor: Floor) -> None:
    await floor.agent("a", "W1.a", task_queue="known")
    declared = floor.manager(queues=DeclaredQueues(("known",)))
    assert isinstance(await declared.try_acquire(NS, "t", task_queue="known"), Acquired)
    unserved = await floor.manager().try_acquire(NS, "t", task_queue="other")
    assert isinstance(unserved, NotAcquired)
    assert unserved.verdict.pool is PoolVerdict.NO_LIVE_POLLERS


async def test_where_nothing_is_declared_nothing_is_checked(deployments: Counted) -> None:
    queues = DeclaredQueues((), deployments)
    assert await queues.look_up(A, "fast") == UNCHECKED
    await deployments.declare(B, "v1", ["fast"], now=T0)
    await deployments.declare(A, "v1", [], now=T0)
    queues.changed(A)
    assert await queues.look_up(A, "slow") == UNCHECKED


async def test_a_queue_is_declared_by_the_list_or_by_any_deployment_of_the_namespace(
    deployments: Counted,
) -> None:
    await deployments.declare(A, "v1", ["fast"], now=T0)
    await deployments.declare(A, "v2", [""], now=T0)
    queues = DeclaredQueues(("listed",), deployments)
    for queue in ("listed", "fast", "default", ""):
        assert await queues.look_up(A, queue) == DECLARED
    assert await queues.look_up(A, "Fasd") == undeclared("fast")
    assert await queues.look_up(A, "zzz") == undeclared()
    assert await queues.look_up(B, "listed") == DECLARED
    assert await queues.look_up(B, "fast") == undeclared()
    await deployments.withdraw(A, "v1")
    queues.changed(A)
    assert await queues.look_up(A, "fast") == undeclared()


async def test_what_a_farm_keeps_for_itself_is_not_checked(deployments: Counted) -> None:
    queues = DeclaredQueues(("listed",), deployments, unchecked=(B,))
    assert await queues.look_up(B, "default") == UNCHECKED
    assert await queues.look_up(A, "default") == undeclared()


async def test_what_is_declared_is_read_now_and_then_and_anew_before_anything_is_refused(
    floor: Floor, deployments: Counted
) -> None:
    await deployments.declare(A, "v1", ["fast"], now=T0)
    queues = DeclaredQueues((), deployments, clock=lambda: floor.now)
    for _ in range(3):
        assert await queues.look_up(A, "fast") == DECLARED
    assert deployments.readings == 1
    await deployments.declare(A, "v2", ["slow"], now=T0)  # by another coordinator
    assert await queues.look_up(A, "slow") == DECLARED
    await deployments.withdraw(A, "v2")
    floor.passes(KEPT_S)
    assert await queues.look_up(A, "slow") == undeclared()


async def test_while_it_cannot_be_read_what_was_declared_goes_on_and_nothing_is_refused(
    floor: Floor, deployments: Counted
) -> None:
    await deployments.declare(A, "v1", ["fast"], now=T0)
    queues = DeclaredQueues(("listed",), deployments, clock=lambda: floor.now)
    assert await queues.look_up(A, "slow") == undeclared()
    floor.passes(KEPT_S)
    deployments.away = True
    assert await queues.look_up(A, "fast") == DECLARED
    assert await queues.look_up(A, "slow") == UNCHECKED
    assert await queues.look_up(B, "listed") == DECLARED
    assert await queues.look_up(B, "fast") == UNCHECKED
