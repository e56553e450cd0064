"""What the ledger asks of an SQL database."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from farm.stores.ports.timing import Observe, timed

T = TypeVar("T")


class Database(Protocol):
    """Runs work in transactions. Failures of the database are StoreUnavailableError."""

    @property
    def life(self) -> int | None:
        """The number of this coordinator's life; None where it has the database to itself."""
        ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in one durable transaction."""
        ...

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run work that only reads; it sees all that was written before."""
        ...


class Timed:
    """A database that says how long its transactions took."""

    def __init__(self, database: Database, observe: Observe) -> None:
        self.database = database
        self.open, self.close = database.open, database.close
        self._observe = observe

    @property
    def life(self) -> int | None:
        """See `Database.life`."""
        return self.database.life

    async def write(self, work: Callable[[Connection], T]) -> T:
        """See `Database.write`."""
        with timed(self._observe, "ledger", "write"):
            return await self.database.write(work)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """See `Database.read`."""
        with timed(self._observe, "ledger", "read"):
            return await self.database.read(work)
