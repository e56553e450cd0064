"""How a transaction is run on SQLite: one thread that writes, one that reads.

A whole transaction is one hop to its thread. A hop for each statement, as an asynchronous driver
makes, costs five times as much CPU, and a job is many small transactions.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from farm.errors import StoreUnavailableError
from farm.stores.ledger.migrate import bring_up_to_date
from farm.stores.ledger.mounts import MOUNTS, network_file_system

T = TypeVar("T")

_BUSY_MS = 30_000
_EVERYWHERE = ("foreign_keys=ON", f"busy_timeout={_BUSY_MS}")
_WRITER = ("journal_mode=WAL", "synchronous=FULL", *_EVERYWHERE)
_READER = ("query_only=ON", *_EVERYWHERE)


class SqliteDatabase:
    """A database file. Writes are one after the other, each durable when its call returns.

    `read` sees everything written before it was called.
    """

    life: int | None = None

    def __init__(self, path: Path, *, mounts: Path = MOUNTS) -> None:
        self._path = path
        self._mounts = mounts
        self._writer: _Lane | None = None
        self._reader: _Lane | None = None

    async def open(self) -> None:
        """Make or open the file and bring its schema up to date.

        Raises:
            StoreUnavailableError: If the file is on a network file system, was made by a newer
                version, or can't be opened.
        """
        await asyncio.to_thread(self._prepare)
        self._writer = writer = _Lane("ledger-writer", self._path, _WRITER, begin="BEGIN IMMEDIATE")
        self._reader = _Lane("ledger-reader", self._path, _READER, begin=None)
        try:
            await writer.run(bring_up_to_date)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what was begun, and let go of the file."""
        for lane in (self._reader, self._writer):
            if lane is not None:
                await lane.close()
        self._reader = self._writer = None

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; nothing of it is kept if it raises.

        Raises:
            StoreUnavailableError: If the database failed, for want of room or otherwise.
        """
        return await _opened(self._writer).run(work)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads.

        Raises:
            StoreUnavailableError: If the database failed.
        """
        return await _opened(self._reader).run(work)

    def _prepare(self) -> None:
        if kind := network_file_system(self._path.parent, self._mounts):
            raise StoreUnavailableError(
                f"{self._path} is on a network file system ({kind}), where SQLite may lose or"
                " damage data: choose a local directory",
                file_system=kind,
            )
        try:
            # Job files may carry secrets; SQLite gives its other files the mode of this one.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StoreUnavailableError(f"the ledger can't be opened: {error}") from error


class _Lane:
    """One connection and the only thread that uses it."""

    def __init__(
        self, name: str, path: Path, pragmas: tuple[str, ...], *, begin: str | None
    ) -> None:
        self._engine = _engine(path, pragmas, begin=begin)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._connection: Connection | None = None

    async def run(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _run(self, work: Callable[[Connection], T]) -> T:
        try:
            connection = self._connection
            if connection is None:
                connection = self._connection = self._engine.connect()
            with connection.begin():
                return work(connection)
        except IntegrityError:
            raise
        except (SQLAlchemyError, sqlite3.Error) as error:
            # Nobody can tell what state it is in; the next call gets a new one.
            self._disconnect()
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise StoreUnavailableError(f"the ledger failed: {cause}") from error

    def _close(self) -> None:
        self._disconnect()
        self._engine.dispose()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError, sqlite3.Error):
                connection.close()


def _opened(lane: _Lane | None) -> _Lane:
    if lane is None:
        raise StoreUnavailableError("the ledger is not open")
    return lane


def _engine(path: Path, pragmas: tuple[str, ...], *, begin: str | None) -> Engine:
    engine = create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        # The driver would begin transactions of its own, later and weaker than we need them.
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    if begin is not None:

        @event.listens_for(engine, "begin")
        def start(connection: Connection) -> None:
            # Past SQLAlchemy, which would make a result of it.
            connection.connection.cursor().execute(begin)

    return engine
