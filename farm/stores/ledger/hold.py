"""The session whose lock says who has a PostgreSQL database: one farm, or those that share it."""

import asyncio
import secrets
from contextlib import suppress
from typing import cast

import asyncpg
from sqlalchemy import Connection, delete, insert, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from farm.errors import StoreUnavailableError
from farm.stores.ledger import schema

FAILURES = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError)

_ALONE = text("SELECT pg_try_advisory_lock(hashtext('tabfarm.ledger'))")
_TOGETHER = text("SELECT pg_try_advisory_lock_shared(hashtext('tabfarm.ledger'))")
_MARK_NAME = "held_by"
_WHOSE = select(schema.meta.c.value).where(schema.meta.c.name == _MARK_NAME)
_WHOSE_FOR_NOW = _WHOSE.with_for_update(read=True, key_share=True)
_FORGET_MARK = delete(schema.meta).where(schema.meta.c.name == _MARK_NAME)
_MARK = insert(schema.meta)
_NO_LONGER = "another farm has had the ledger: start this one anew"
_OF_ALL = 0
"""The mark of those that share; a farm that is alone has a number of its own."""


class Hold:
    """The lock, and the mark that was left in the database.

    Args:
        engine: Of the database.
        shared: Others may hold it too, if they share it.
    """

    def __init__(self, engine: AsyncEngine, *, shared: bool) -> None:
        self._engine = engine
        self._lock = _TOGETHER if shared else _ALONE
        self._connection: AsyncConnection | None = None
        self._lost = False
        self._mark = _OF_ALL if shared else 1 + secrets.randbits(62)
        self._one_at_a_time = asyncio.Lock()

    async def take(self) -> bool:
        """Take the lock; False if another session keeps us from it."""
        connection = await self._engine.connect()
        try:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            taken: bool = (await connection.execute(self._lock)).scalar_one()
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

    def leave_mark(self, connection: Connection) -> None:
        """Write who has the database, for `confirm`."""
        connection.execute(_FORGET_MARK)
        connection.execute(_MARK, {"name": _MARK_NAME, "value": self._mark})

    def confirm_mark(self, connection: Connection) -> None:
        """Make sure that no other farm has the database until the transaction is over.

        Its lock alone does not say so: the server may have ended the session that has it, and the
        network kept that from us.

        Raises:
            StoreUnavailableError: If another has it, or has had it.
        """
        if connection.execute(_WHOSE_FOR_NOW).scalar_one_or_none() != self._mark:
            raise StoreUnavailableError(_NO_LONGER)

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
            raise StoreUnavailableError(_NO_LONGER)

    async def give_up(self) -> None:
        """Let go of the lock, by ending its session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await _end(connection)

    def _on_end(self, _: object) -> None:
        self._lost = True


async def _end(connection: AsyncConnection) -> None:
    with suppress(*FAILURES):
        await connection.invalidate()
    with suppress(*FAILURES):
        await connection.close()
