"""How a transaction is run on PostgreSQL: a pool of connections, on the event loop.

Transactions are READ COMMITTED and lock the rows they change (`with_for_update`), so what they
read of them is what they change; of two that wait for each other PostgreSQL ends one, which is
run again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import structlog
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine

from farm.errors import ConflictError, InvalidInputError, StoreUnavailableError
from farm.stores.cancelling import cancellations_kept
from farm.stores.ledger import membership
from farm.stores.ledger.hold import FAILURES, Hold
from farm.stores.ledger.migrate import bring_up_to_date
from farm.stores.ledger.session import Session

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

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
_RENEWALS_PER_LEASE = 4
_START_S = 30.0
"""A start may take so long: the lease is renewed only when the coordinator dispatches."""
_LEAVE_S = 5.0
_LOCKED_S = 3.0
"""Well within the time that agents wait for somebody to go on with what they run."""
_IN_EACH_OTHERS_WAY = frozenset({"40001", "40P01"})
"""Serialization failure, deadlock: nothing was done, and doing it again is right."""
_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtext('tabfarm.ledger.opening'))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The database is one that several coordinators work with.

    Each is known for as long as it renews its lease, and writes nothing beyond it.
    """

    name: str
    """This coordinator's."""
    lease_s: float


def _patience(share: Share) -> dict[str, str]:
    """Return for how long what one has locked that is gone may keep the others waiting.

    One that was stopped is idle; of one that was cut off the server only hears nothing. Whatever
    it is, the others end its sessions, which are called after it, once its lease has lapsed.
    """
    longest_s = min(share.lease_s, _LOCKED_S)
    silence_s = max(1, round(share.lease_s / 4))
    return {
        "application_name": membership.session_name(share.name),
        "idle_in_transaction_session_timeout": f"{round(longest_s * 1000)}ms",
        "tcp_keepalives_idle": f"{silence_s}",
        "tcp_keepalives_interval": f"{silence_s}",
        "tcp_user_timeout": f"{round(share.lease_s * 1000)}ms",
    }


class PostgresDatabase:
    """A database of a PostgreSQL server: one farm works with it at a time, or several that share.

    Each write is durable when its call returns; `read` sees everything written before it was
    called. While another farm has the database `open` is refused. A farm that has lost its hold
    writes nothing more until it has it again, and never where another has had it meanwhile.
    Those that share it keep out only those that don't; what they write, each does under its life,
    which ends when its lease has lapsed.
    """

    def __init__(self, url: str, share: Share | None = None) -> None:
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
                "connection_class": Session,
                "timeout": _CONNECT_S,
                "command_timeout": _STATEMENT_S,
                "server_settings": _SETTINGS if share is None else _SETTINGS | _patience(share),
            },
        )
        self._share = share
        self._longest_s = None if share is None else min(share.lease_s, _STATEMENT_S)
        """What takes longer counts for nothing, since the lease is over by then."""
        self.life: int | None = None
        self._lives_until = 0.0
        """By the loop's clock, if the lease is not renewed before."""
        self._hold = Hold(self._engine, shared=share is not None)

    async def open(self) -> None:
        """Connect, take the database for this farm, and bring its schema up to date.

        Raises:
            ConflictError: If another farm works with it.
            StoreUnavailableError: If it can't be reached, or was made by a newer version.
        """
        try:
            if not await self._hold.take():
                raise ConflictError(f"another farm is running on {self._place}")
            since = asyncio.get_running_loop().time()
            async with self._engine.begin() as connection:
                life = await connection.run_sync(self._prepare)
            self._live(life, since + self._first_lease_s)
        except FAILURES as error:
            await self.close()
            raise StoreUnavailableError(
                f"the ledger at {self._place} can't be opened: {_cause(error)}"
            ) from error
        except BaseException:
            await self.close()
            raise

    def _prepare(self, connection: Connection) -> int | None:
        connection.execute(_ONE_AT_A_TIME)
        bring_up_to_date(connection)
        self._hold.leave_mark(connection)
        if self._share is None:
            membership.end_all(connection)
            return None
        return membership.join(connection, self._share.name, self._first_lease_s)

    @property
    def _first_lease_s(self) -> float:
        return 0.0 if self._share is None else max(self._share.lease_s, _START_S)

    def _live(self, life: int | None, until: float) -> None:
        self.life, self._lives_until = life, until

    @property
    def alive(self) -> bool:
        """Tell whether the lease is not over, by this process's own clock; True if not shared."""
        return self._share is None or asyncio.get_running_loop().time() < self._lives_until

    async def begin_again(self) -> None:
        """Begin another life, if shared; what the one before had is anybody's.

        Raises:
            StoreUnavailableError: If that can't be written.
        """
        share, before = self._share, self.life
        if share is None:
            return

        def anew(connection: Connection) -> int:
            if before is not None:
                membership.leave(connection, before)
            return membership.join(connection, share.name, share.lease_s)

        since = asyncio.get_running_loop().time()
        self._live(await self._write(anew), since + share.lease_s)

    async def lapsed(self) -> None:
        """Renew the lease, and return when that could not be done in time; if shared.

        Others may have ended this life by then, and taken over what it had: nothing that rests on
        it may be gone on with.
        """
        share, life, now = self._share, self.life, asyncio.get_running_loop().time
        if share is None or life is None:
            await asyncio.Event().wait()
            return
        while (asked_at := now()) < self._lives_until:
            try:
                async with asyncio.timeout_at(self._lives_until):
                    renewed = await self._renew(share, life)
            except TimeoutError:
                return
            if renewed is False:
                return
            if renewed:
                self._lives_until = asked_at + share.lease_s
            left_s = self._lives_until - now()
            await asyncio.sleep(max(0.0, min(share.lease_s / _RENEWALS_PER_LEASE, left_s)))

    async def _renew(self, share: Share, life: int) -> bool | None:
        """Tell whether there is one more lease; None where nobody could be asked."""
        try:
            if not await self._write(lambda db: membership.renew(db, life, share.lease_s)):
                return False
            for name in await self._write(membership.end_lapsed):
                log.warning("coordinator.lapsed", coordinator=name)
        except StoreUnavailableError as error:
            log.warning("lease.not_renewed", reason=error.detail)
            return None
        return True

    async def close(self) -> None:
        """End the life, give up the hold, and disconnect."""
        life, self.life = self.life, None
        if life is not None:
            with suppress(StoreUnavailableError, TimeoutError):
                async with asyncio.timeout(_LEAVE_S):
                    await self._write(lambda db: membership.leave(db, life))
        await self._hold.give_up()
        await self._engine.dispose()

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; nothing of it is kept if it raises.

        It is run again where another transaction was in its way.

        Raises:
            StoreUnavailableError: If the database failed, or is no longer this farm's.
        """
        life = self.life

        def confirmed(connection: Connection) -> T:
            if life is None:
                self._hold.confirm_mark(connection)
            else:
                membership.confirm(connection, life)
            return work(connection)

        return await self._write(confirmed)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        try:
            with cancellations_kept():
                await self._hold.confirm()
                for _ in range(_TRIES - 1):
                    with suppress(_InTheWayError):
                        return await self._transaction(work)
                return await self._transaction(work)
        except _InTheWayError as error:
            raise StoreUnavailableError(f"the ledger is too busy: {error}") from error
        except IntegrityError:
            raise
        except FAILURES as error:
            raise StoreUnavailableError(f"the ledger failed: {_cause(error)}") from error

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads.

        Raises:
            StoreUnavailableError: If the database failed.
        """
        self._hold.check_open()
        try:
            with cancellations_kept():
                async with self._engine.connect() as connection:
                    return await connection.run_sync(work)
        except FAILURES as error:
            raise StoreUnavailableError(f"the ledger failed: {_cause(error)}") from error

    async def _transaction(self, work: Callable[[Connection], T]) -> T:
        try:
            async with asyncio.timeout(self._longest_s), self._engine.begin() as connection:
                return await connection.run_sync(work)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) in _IN_EACH_OTHERS_WAY:
                raise _InTheWayError(str(error.orig)) from error
            raise


class _InTheWayError(Exception):
    """Two transactions waited for each other, and this one was ended."""


def _cause(error: BaseException) -> object:
    return error.orig if isinstance(error, DBAPIError) else error
