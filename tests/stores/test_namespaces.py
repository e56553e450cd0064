"""What the `NamespaceStore` port promises, of every implementation."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from farm.core.admission import Refusal, RefusedFor
from farm.core.model import Namespace
from farm.core.namespaces import Minted, Origin
from farm.core.tiers import NodePlacement, Pinned, Prefer, Unplaced
from farm.errors import NotFoundError
from farm.stores.ledger import SqliteDatabase, SqlLedger, SqlNamespaces
from farm.stores.ports.ledger import Ledger
from farm.stores.ports.namespaces import NamespaceStore
from tests.stores.ledger_rows import T0, at

A, B, C = Namespace("a"), Namespace("b"), Namespace("c")
EU = Pinned(labels=frozenset({"eu-1", "eu-2"}))


def over(ledger: Ledger) -> NamespaceStore:
    assert isinstance(ledger, SqlLedger)
    return SqlNamespaces(ledger.database)


@pytest.fixture
def store(ledger: Ledger) -> NamespaceStore:
    return over(ledger)


async def names(store: NamespaceStore) -> list[str]:
    return [record.name for record in await store.namespaces()]


async def test_what_is_missing_is_minted_once(store: NamespaceStore) -> None:
    await store.create(B, Origin.EXPLICIT, now=T0)
    first = await store.admit((A, B), None, minting=True, now=at(1))
    assert isinstance(first, Minted)
    (record,) = first.new
    assert (record.name, record.origin, record.created_at) == (A, Origin.WORKER_MINT, at(1))
    assert record.placement == Unplaced()
    assert await store.admit((A, B), None, minting=True, now=at(2)) == Minted()
    assert await names(store) == ["a", "b"]


async def test_some_are_read_by_name(store: NamespaceStore) -> None:
    for name in (B, A):
        await store.create(name, Origin.EXPLICIT, now=T0)
    assert [record.name for record in await store.namespaces([A, C])] == [A]
    assert await store.namespaces([]) == []


async def test_where_nothing_is_minted_what_is_unknown_is_refused_and_not_made(
    store: NamespaceStore,
) -> None:
    await store.create(B, Origin.EXPLICIT, now=T0)
    refusal = await store.admit((B, A), None, minting=False, now=at(1))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.retry) == (RefusedFor.NAMESPACE_UNKNOWN, True)
    assert "'a'" in refusal.detail
    assert "'b'" not in refusal.detail
    assert await names(store) == ["b"]
    await store.create(A, Origin.EXPLICIT, now=at(2))
    assert await store.admit((B, A), None, minting=False, now=at(3)) == Minted()


async def test_fifty_first_registrations_at_once_are_one_record_that_is_new_to_one(
    new_ledger: Callable[[], Ledger],
) -> None:
    ledger = new_ledger()
    await ledger.open()
    store = over(ledger)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(store.admit((A,), None, minting=True, now=at(n))) for n in range(50)
        ]
    minted = [task.result() for task in tasks]
    assert sum(len(one.new) for one in minted if isinstance(one, Minted)) == 1
    assert await names(store) == ["a"]
    await ledger.close()


@pytest.mark.parametrize("node", [None, "", "us-1", "eu"])
async def test_who_is_not_where_a_namespace_is_pinned_is_refused_and_nothing_is_minted(
    store: NamespaceStore, node: str | None
) -> None:
    await store.create(A, Origin.EXPLICIT, now=T0)
    await store.place(A, EU)
    refusal = await store.admit((C, A), node, minting=True, now=at(1))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.retry) == (RefusedFor.PLACEMENT, True)
    for named in ("'a'", "'eu-1', 'eu-2'", f"'{node}'" if node else "no node"):
        assert named in refusal.detail
    assert await names(store) == ["a"]
    minted = await store.admit((C, A), "eu-2", minting=True, now=at(2))
    assert isinstance(minted, Minted)
    assert [record.name for record in minted.new] == ["c"]


@pytest.mark.parametrize("placement", [Unplaced(), Prefer(labels=frozenset({"eu-1"}))])
async def test_what_is_not_pinned_takes_agents_from_anywhere(
    store: NamespaceStore, placement: NodePlacement
) -> None:
    await store.create(A, Origin.EXPLICIT, now=T0)
    await store.place(A, placement)
    for node in (None, "us-1"):
        assert await store.admit((A,), node, minting=False, now=at(1)) == Minted()


async def test_pinned_to_no_node_nobody_is_let_in(store: NamespaceStore) -> None:
    await store.create(A, Origin.EXPLICIT, now=T0)
    await store.place(A, Pinned(labels=frozenset()))
    assert isinstance(await store.admit((A,), "eu-1", minting=True, now=at(1)), Refusal)


@pytest.mark.parametrize(
    "placement", [EU, Prefer(labels=frozenset({"x"})), Pinned(labels=frozenset())]
)
async def test_a_placement_is_kept_and_a_change_is_told_from_none(
    store: NamespaceStore, placement: NodePlacement
) -> None:
    await store.create(A, Origin.EXPLICIT, now=T0)
    record, changed = await store.place(A, placement)
    assert (record.placement, changed) == (placement, True)
    assert await store.place(A, placement) == (record, False)
    assert await store.placement(A) == placement
    assert [one.placement for one in await store.namespaces()] == [placement]
    record, changed = await store.place(A, Unplaced())
    assert (record.placement, changed) == (Unplaced(), True)


async def test_only_what_is_there_is_placed_and_what_is_not_is_unplaced(
    store: NamespaceStore,
) -> None:
    with pytest.raises(NotFoundError):
        await store.place(A, EU)
    assert await store.placement(A) == Unplaced()
    assert await names(store) == []


async def test_making_one_that_is_there_changes_nothing(store: NamespaceStore) -> None:
    first, new = await store.create(A, Origin.EXPLICIT, now=T0)
    assert new
    assert await store.create(A, Origin.START_MINT, now=at(9)) == (first, False)


async def test_an_older_ledger_has_the_namespaces_of_its_tokens_and_jobs(tmp_path: Path) -> None:
    path = tmp_path / "farm.db"
    config = Config()
    config.set_main_option("script_location", "farm.stores.ledger:migrations")
    config.set_main_option("path_separator", "os")
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0006")
    engine.dispose()
    with closing(sqlite3.connect(path)) as raw, raw:
        for token, namespace, created_at in (("t1", "a", 5.0), ("t2", "a", 3.0), ("t3", "b", 7.0)):
            raw.execute(
                "INSERT INTO tokens (token_id, sha256, scope, namespace, name, created_at)"
                " VALUES (?, ?, 'admin', ?, 'n', ?)",
                (token, token, namespace, created_at),
            )
    ledger = SqlLedger(SqliteDatabase(path))
    await ledger.open()
    found = [(r.name, r.origin, r.created_at) for r in await over(ledger).namespaces()]
    assert found == [("a", Origin.INFERRED, 3.0), ("b", Origin.INFERRED, 7.0)]
    assert await over(ledger).admit((A, B), None, minting=False, now=at(1)) == Minted()
    await ledger.close()
