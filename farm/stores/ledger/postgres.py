"""How a transaction is run on PostgreSQL: a pool of connections, on the event loop.

Transactions are READ COMMITTED and lock the rows they change (`with_for_update`), so what they
read of them is what they change; of two that wait for each other PostgreSQL ends one, which is
run again.
"""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

import asyncpg
from sqlalchemy import Connection, delete, insert, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from farm.errors import ConflictError, InvalidInputError, StoreUnavailableError
from farm.stores.ledger import schema
from farm.stores.ledger.migrate import bring_up_to_date

T = TypeVar("T")

_CONNECTIONS = 8
_CONNECT_S = 10.0
_STATEMENT_S = 30.0
_SETTINGS = {
    "application_name": "tabfarm",
    # What has been stored is told to agents, which forget it then: the server's own setting may
    # trade that away.
    "synchronous_commit": "on",
    "lock_timeout": "20s",
    "idle_in_transaction_session_timeout": "60s",
    # A farm that the network has cut off loses its hold within a minute.
    "tcp_keepalives_idle": "20",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
_TRIES = 5
_IN_EACH_OTHERS_WAY = frozenset({"40001", "40P01"})
"""Serialization failure, deadlock: nothing was done, and doing it again is right."""
_LOCK = text("SELECT pg_try_advisory_lock(hashtext('tabfarm.ledger'))")
_MARK_NAME = "held_by"
_WHOSE = select(schema.meta.c.value).where(schema.meta.c.name == _MARK_NAME)
_FORGET_MARK = delete(schema.meta).where(schema.meta.c.name == _MARK_NAME)
_MARK = insert(schema.meta)
_FAILURES = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class PostgresDatabase:
    """A database of a PostgreSQL server, which one farm works with at a time.

    Each write is durable when its call returns; `read` sees everything written before it was
    called. While another farm has the database `open` is refused. A farm that has lost its hold
    writes nothing more until it has it again, and never where another has had it meanwhile.
    """

    def __init__(self, url: str) -> None:
        """Note where the database is: `postgresql://user:password@host:port/name`.

        Raises:
            InvalidInputError: If that is no such URL.
        """
        try:
            parsed = make_url(url).set(drivername="postgresql+asyncpg")
        except ArgumentError:
            # Not with its text, which has a password in it.
            raise InvalidInputError(
                "the ledger's URL is not one: postgresql://user:password@host:port/name"
            ) from None
        self._place = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
        self._engine = create_async_engine(
            parsed,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_STATEMENT_S,
            connect_args={
                "timeout": _CONNECT_S,
                "command_timeout": _STATEMENT_S,
                "server_settings": _SETTINGS,
            },
        )
        self._hold = _Hold(self._engine)

    async def open(self) -> None:
        """Connect, take the database for this farm, and bring its schema up to date.

        Raises:
            ConflictError: If another farm works with it.
            StoreUnavailableError: If it can't be reached, or was made by a newer version.
        """
        try:
            if not await self._hold.take():
                raise ConflictError(f"another farm is running on {self._place}")
            async with self._engine.begin() as connection:
                await connection.run_sync(bring_up_to_date)
            await self._hold.leave_mark()
        except _FAILURES as error:
            await self.close()
            raise StoreUnavailableError(
                f"the ledger at {self._place} can't be opened: {_cause(error)}"
            ) from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Give up the hold, and disconnect."""
        await self._hold.give_up()
        await self._engine.dispose()

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; nothing of it is kept if it raises.

        It is run again where another transaction was in its way.

        Raises:
            StoreUnavailableError: If the database failed, or is no longer this farm's.
        """
        try:
            await self._hold.confirm()
            for _ in range(_TRIES - 1):
                with suppress(_InTheWayError):
                    return await self._transaction(work)
            return await self._transaction(work)
        except _InTheWayError as error:
            raise StoreUnavailableError(f"the ledger is too busy: {error}") from error
        except IntegrityError:
            raise
        except _FAILURES as error:
            raise StoreUnavailableError(f"the ledger failed: {_cause(error)}") from error

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads.

        Raises:
            StoreUnavailableError: If the database failed.
        """
        self._hold.check_open()
        try:
            async with self._engine.connect() as connection:
                return await connection.run_sync(work)
        except _FAILURES as error:
            raise StoreUnavailableError(f"the ledger failed: {_cause(error)}") from error

    async def _transaction(self, work: Callable[[Connection], T]) -> T:
        try:
            async with self._engine.begin() as connection:
                return await connection.run_sync(work)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) in _IN_EACH_OTHERS_WAY:
                raise _InTheWayError(str(error.orig)) from error
            raise


class _InTheWayError(Exception):
    """Two transactions waited for each other, and this one was ended."""


class _Hold:
    """The session whose lock says that a farm has the database, and the mark that it left there."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._connection: AsyncConnection | None = None
        self._lost = False
        self._mark = secrets.randbits(62)
        self._one_at_a_time = asyncio.Lock()

    async def take(self) -> bool:
        """Take the lock; False if another session has it."""
        connection = await self._engine.connect()
        try:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            taken: bool = (await connection.execute(_LOCK)).scalar_one()
            if taken:
                raw = await connection.get_raw_connection()
                session = cast("asyncpg.Connection", raw.driver_connection)
                session.add_termination_listener(self._on_end)
        except BaseException:
            await _end(connection)
            raise
        if not taken:
            await connection.close()
            return False
        self._connection, self._lost = connection, False
        return True

    async def leave_mark(self) -> None:
        """Write who has the database, for `confirm`."""
        async with self._engine.begin() as connection:
            await connection.execute(_FORGET_MARK)
            await connection.execute(_MARK, {"name": _MARK_NAME, "value": self._mark})

    async def confirm(self) -> None:
        """Make sure that the database is this farm's, and has been since it was opened.

        Raises:
            StoreUnavailableError: If it is not.
        """
        self.check_open()
        if self._lost:
            async with self._one_at_a_time:
                if self._lost:
                    await self._take_again()

    def check_open(self) -> None:
        """Make sure that it has been taken, and not given up. Raises StoreUnavailableError."""
        if self._connection is None:
            raise StoreUnavailableError("the ledger is not open")

    async def _take_again(self) -> None:
        if self._connection is not None:
            await _end(self._connection)
        if not await self.take():
            raise StoreUnavailableError("the ledger's lock was lost, and another session has it")
        async with self._engine.connect() as connection:
            found = (await connection.execute(_WHOSE)).scalar_one_or_none()
        if found != self._mark:
            self._lost = True
            raise StoreUnavailableError("another farm has had the ledger: start this one anew")

    async def give_up(self) -> None:
        """Let go of the lock, by ending its session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await _end(connection)

    def _on_end(self, _: object) -> None:
        self._lost = True


async def _end(connection: AsyncConnection) -> None:
    with suppress(*_FAILURES):
        await connection.invalidate()
    with suppress(*_FAILURES):
        await connection.close()


def _cause(error: BaseException) -> object:
    return error.orig if isinstance(error, DBAPIError) else error
