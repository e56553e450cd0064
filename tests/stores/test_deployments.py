"""What the `Deployments` port promises, of every implementation."""

import pytest

from farm.core.model import Namespace
from farm.stores.ledger import SqlDeployments, SqlLedger
from farm.stores.ports.deployments import Association, Deployments, association
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_rows import T0, at

A, B = Namespace("a"), Namespace("b")


@pytest.fixture
def store(ledger: Ledger) -> Deployments:
    assert isinstance(ledger, SqlLedger)
    return SqlDeployments(ledger.database)


async def test_a_deployment_is_declared_declared_otherwise_and_withdrawn(
    store: Deployments,
) -> None:
    first, new = await store.declare(A, "v2", ["fast", ""], now=T0)
    assert (first.queues, first.created_at, new) == (("default", "fast"), T0, True)
    await store.declare(A, "v1", [], now=T0)
    again, new = await store.declare(A, "v2", ["slow"], now=at(1))
    assert (again.queues, again.created_at, again.updated_at, new) == (("slow",), T0, at(1), False)
    assert [one.name for one in await store.deployments(A)] == ["v1", "v2"]
    assert await store.withdraw(A, "v1")
    assert not await store.withdraw(A, "v1")
    assert await store.deployments(A) == [again]


async def test_a_namespace_has_its_own_deployments_alone(store: Deployments) -> None:
    await store.declare(A, "v1", ["fast"], now=T0)
    assert await store.deployments(B) == []
    assert not await store.withdraw(B, "v1")


async def test_an_agents_deployment_is_known_unknown_or_unchecked(store: Deployments) -> None:
    assert association("v1", await store.deployments(A)) is Association.UNCHECKED
    assert association(None, await store.deployments(A)) is Association.UNCHECKED
    await store.declare(A, "v1", ["default"], now=T0)
    declared = await store.deployments(A)
    assert association("v1", declared) is Association.KNOWN
    assert association("v2", declared) is Association.UNKNOWN
    assert association(None, declared) is Association.UNKNOWN
