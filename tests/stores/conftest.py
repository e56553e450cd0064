"""Every implementation of every port, as parameters of one fixture a port."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from farm.stores.ledger import SqliteDatabase, SqlLedger
from farm.stores.ports import Ledger


@pytest.fixture(params=["sqlite"])
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Ledger]:
    """Make ledgers that are not open yet, each over the same data."""
    assert request.param == "sqlite"
    return lambda: SqlLedger(SqliteDatabase(tmp_path / "farm.db"))


@pytest.fixture
async def ledger(new_ledger: Callable[[], Ledger]) -> AsyncIterator[Ledger]:
    ledger = new_ledger()
    await ledger.open()
    yield ledger
    await ledger.close()
