"""The face of a shared ledger: each method is one transaction, under this coordinator's life."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from farm.core.model import ClientId, Token
from farm.errors import StoreUnavailableError
from farm.stores.ledger import claiming, membership, owning
from farm.stores.ledger.postgres import PostgresDatabase
from farm.stores.ports.sharing import Standing
from farm.stores.records import Attempt

T = TypeVar("T")


class SqlSharing:
    """The `SharedLedger` port, over the database of a ledger that is opened to be shared."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._db = database

    def alive(self) -> bool:
        """Tell whether the lease is not over."""
        return self._db.alive

    async def lapsed(self) -> None:
        """Renew the lease until the life is over."""
        await self._db.lapsed()

    async def begin_again(self) -> None:
        """Begin another life."""
        await self._db.begin_again()

    async def claim(self, job_id: str) -> bool:
        """Claim a queued job."""
        return await self._write(lambda db, life: claiming.claim(db, job_id, life))

    async def give_up_claim(self, job_id: str) -> None:
        """Claim it no more."""
        await self._write(lambda db, life: claiming.give_up_claim(db, job_id, life))

    async def keep_claims(self, job_ids: Collection[str]) -> None:
        """Claim nothing any more but these."""
        await self._write(lambda db, life: claiming.keep_claims(db, job_ids, life))

    async def take_over(
        self, attempt_id: str, *, client_id: ClientId, token: Token, command_id: str
    ) -> Attempt | None:
        """Own an attempt."""
        return await self._write(
            lambda db, life: owning.take_over(db, attempt_id, client_id, token, command_id, life)
        )

    async def adopt(self, attempt_id: str) -> bool:
        """Own an orphan."""
        return await self._write(lambda db, life: owning.adopt(db, attempt_id, life))

    async def disown(self, attempt_id: str) -> None:
        """Make an attempt an orphan."""
        await self._write(lambda db, life: owning.disown(db, attempt_id, life))

    async def orphans(
        self, *, for_s: float, client_id: ClientId | None = None
    ) -> Sequence[Attempt]:
        """Return what has had no owner for so long."""
        return await self._db.read(lambda db: owning.orphans(db, for_s, client_id))

    async def standing(self, attempt_ids: Collection[str]) -> Mapping[str, Standing]:
        """Tell how attempts stand."""
        life = self._life()
        return await self._db.read(lambda db: owning.standing(db, attempt_ids, life))

    async def agreed_on(self, name: str, number: int) -> int:
        """Return what the living have agreed on."""
        return await self._write(lambda db, life: membership.agreed_on(db, name, number, life))

    async def note_agent(self, client_id: ClientId, token_id: str) -> None:
        """Remember an agent's token."""
        await self._db.write(lambda db: owning.note_agent(db, client_id, token_id))

    async def token_of_agent(self, client_id: ClientId) -> str | None:
        """Return an agent's token."""
        return await self._db.read(lambda db: owning.token_of_agent(db, client_id))

    async def _write(self, work: Callable[[Connection, int], T]) -> T:
        life = self._life()
        return await self._db.write(lambda db: work(db, life))

    def _life(self) -> int:
        if (life := self._db.life) is None:
            raise StoreUnavailableError("the ledger is not open to be shared")
        return life
