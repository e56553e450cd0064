"""Who makes namespaces, and who hears of it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from farm.core.admission import Refusal
from farm.core.model import Instant, Namespace
from farm.core.namespaces import Minting
from farm.core.tiers import Pinned
from farm.errors import ConflictError, NotFoundError, StoreUnavailableError
from farm.manager.namespaces import NamespaceBook
from farm.stores.ledger import SqliteDatabase, SqlNamespaces

A, B, OWN = Namespace("a"), Namespace("b"), Namespace("farm-own")


class Shelf:
    """A book, and what it says."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self.told: list[tuple[str, Namespace, Mapping[str, Any]]] = []
        self.woken = 0

    def book(self, minting: Minting) -> NamespaceBook:
        def moved(_: Namespace) -> None:
            self.woken += 1

        return NamespaceBook(
            SqlNamespaces(self._database),
            lambda: Instant(1.0),
            minting=minting,
            own=frozenset({OWN}),
            tell=lambda *told: self.told.append(told),
            moved=moved,
        )


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    database = SqliteDatabase(tmp_path / "farm.db")
    await database.open()
    yield Shelf(database)
    await database.close()


async def test_fifty_first_registrations_at_once_are_announced_once(shelf: Shelf) -> None:
    book = shelf.book("open")
    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(book.mint((A,), None))
    assert shelf.told == [("namespace_created", A, {"origin": "worker_mint"})]
    assert [record.name for record in await book.all()] == [A]


async def test_closed_what_is_unknown_is_refused_and_made_only_by_who_makes_it_by_name(
    shelf: Shelf,
) -> None:
    book = shelf.book("closed")
    assert isinstance(await book.missing((A,), None), Refusal)
    assert isinstance(await book.mint((A,), None), Refusal)
    with pytest.raises(NotFoundError):
        await book.require([A])
    assert (await book.all(), shelf.told) == ([], [])
    await book.create(A)
    assert shelf.told == [("namespace_created", A, {"origin": "explicit"})]
    assert await book.missing((A,), None) == ()
    assert await book.mint((A,), None) is None
    await book.require([A])


async def test_open_a_token_of_a_namespace_makes_it(shelf: Shelf) -> None:
    book = shelf.book("open")
    await book.require([A, B])
    await book.require([A, B])
    assert [record.name for record in await book.all()] == [A, B]
    assert len(shelf.told) == 2


async def test_the_farms_own_namespaces_are_neither_minted_nor_gated(shelf: Shelf) -> None:
    book = shelf.book("closed")
    assert await book.missing((OWN,), None) == ()
    assert await book.all() == []
    with pytest.raises(ConflictError):
        await book.create(OWN)


async def test_a_changed_placement_is_told_and_wakes_who_waits_and_the_same_again_does_not(
    shelf: Shelf,
) -> None:
    book = shelf.book("closed")
    await book.create(A)
    shelf.told.clear()
    for _ in range(2):
        await book.place(A, Pinned(labels=frozenset({"eu-2", "eu-1"})))
    told = {"placement": "pinned", "labels": ["eu-1", "eu-2"]}
    assert shelf.told == [("placement_changed", A, told)]
    assert shelf.woken == 1


async def test_where_the_store_is_away_nobody_is_let_in(tmp_path: Path) -> None:
    book = Shelf(SqliteDatabase(tmp_path / "farm.db")).book("open")
    with pytest.raises(StoreUnavailableError):
        await book.missing((A,), None)
    with pytest.raises(StoreUnavailableError):
        await book.mint((A,), None)


async def test_what_is_missing_is_named_and_not_made(shelf: Shelf) -> None:
    book = shelf.book("open")
    await book.create(A)
    assert await book.missing((A, B), None) == (B,)
    assert [record.name for record in await book.all()] == [A]
    await book.place(A, Pinned(labels=frozenset({"eu"})))
    assert isinstance(await book.missing((A, B), "us"), Refusal)
