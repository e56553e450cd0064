"""The keys of saved identities: one that is wrong loses nothing, one that is new takes over."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from farm.clock import system_clock
from farm.core.model import Namespace, Token
from farm.errors import StaleAssignmentError, UnreadableError
from farm.jobs.identities import IdentityBook
from farm.protocol.identities import IdentityPut, Lent, StorageState
from farm.stores.identity_records import Mode, NewBorrowing
from farm.stores.keyring import new_key
from farm.stores.ledger import SqliteDatabase, SqlLedger
from tests.identities import identity_book
from tests.stores.ledger_rows import accepted, started

NS = Namespace("default")
TOKEN = Token(store_epoch=1, counter=1)
PUT = IdentityPut.model_validate(
    {
        "proxy": {"server": "http://p.example:1", "username": "u", "password": "p"},
        "state": {"cookies": [{"name": "a", "value": "b", "domain": "a.example", "path": "/"}]},
    }
)


class Shelf:
    """A ledger whose identities are read with one key after another."""

    def __init__(self, path: Path) -> None:
        self.database = SqliteDatabase(path)
        self.ledger = SqlLedger(self.database)

    def book(self, *keys: str) -> IdentityBook:
        return identity_book(self.database, system_clock, *keys)

    async def lent(self, *keys: str) -> Lent:
        return await self.book(*keys).lend("a1", TOKEN)


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    """With an attempt that has the identity of the test for itself."""
    shelf = Shelf(tmp_path / "farm.db")
    await shelf.ledger.open()
    borrowing = NewBorrowing(identity="shopper", mode=Mode.EXCLUSIVE, secret=None)
    await accepted(shelf.ledger, borrowing=borrowing)
    yield shelf
    await shelf.ledger.close()


async def test_the_wrong_key_is_said_and_loses_nothing(shelf: Shelf) -> None:
    right, wrong = new_key(), new_key()
    await shelf.book(right).put(NS, "shopper", PUT)
    await started(shelf.ledger)
    before = await shelf.book(wrong).store.sealed()
    await shelf.book(wrong).reseal()
    with pytest.raises(UnreadableError, match="FARM_IDENTITY_KEY_FILE"):
        await shelf.lent(wrong)
    assert await shelf.book(wrong).store.sealed() == before
    lent = await shelf.lent(wrong, right)
    assert lent.state == PUT.state
    assert lent.proxy is not None
    assert lent.proxy.credentials is not None
    assert lent.proxy.credentials.password == "p"


async def test_a_new_first_key_seals_everything_anew_and_the_old_one_may_go(shelf: Shelf) -> None:
    old, new = new_key(), new_key()
    await shelf.book(old).put(NS, "shopper", PUT)
    await started(shelf.ledger)
    await shelf.book(new, old).reseal()
    assert (await shelf.lent(new)).state == PUT.state
    with pytest.raises(UnreadableError):
        await shelf.lent(old)


async def test_what_is_lent_and_kept_shows_nothing_in_print(shelf: Shelf) -> None:
    key = new_key()
    await shelf.book(key).put(NS, "shopper", PUT)
    await started(shelf.ledger)
    lent = await shelf.lent(key)
    assert "'b'" not in repr(lent)
    assert "password='p'" not in f"{lent!r} {lent} {PUT!r}"


def test_what_is_no_state_is_not_quoted_in_errors() -> None:
    for wrong in ('{"cookies": [{"name": "a", "value": 5, "domain": "hush"}]}', '"hush"'):
        with pytest.raises(ValidationError) as caught:
            StorageState.model_validate_json(wrong)
        assert "hush" not in str(caught.value)


async def test_an_attempt_that_has_ended_is_lent_nothing(shelf: Shelf) -> None:
    book = shelf.book()
    await book.put(NS, "shopper", PUT)
    with pytest.raises(StaleAssignmentError):
        await book.lend("a1", TOKEN)
    with pytest.raises(StaleAssignmentError):
        await book.save("a1", TOKEN, StorageState())
