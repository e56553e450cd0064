"""The face of saved identities over an SQL database: each method is one transaction."""

from collections.abc import Sequence

from farm.core.model import Instant, Namespace, Token
from farm.stores.identity_records import Borrowed, Change, SavedIdentity, Sealed, SealedState, Use
from farm.stores.ledger import identities
from farm.stores.ledger.database import Database


class SqlIdentities:
    """The `IdentityStore` port, over the database of a ledger that is open."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def identities(self, namespace: Namespace) -> Sequence[SavedIdentity]:
        """Return those of a namespace."""
        return await self._db.read(lambda db: identities.all_of(db, namespace))

    async def identity(self, namespace: Namespace, name: str) -> SavedIdentity:
        """Return one. Raises NotFoundError."""
        return await self._db.read(lambda db: identities.one(db, namespace, name))

    async def change(
        self, namespace: Namespace, name: str, change: Change, *, now: Instant
    ) -> tuple[SavedIdentity, bool]:
        """Make one, or change it."""
        return await self._db.write(lambda db: identities.change(db, namespace, name, change, now))

    async def delete(self, namespace: Namespace, name: str) -> None:
        """Forget one."""
        await self._db.write(lambda db: identities.remove(db, namespace, name))

    async def users(self, namespace: Namespace, name: str) -> Sequence[Use]:
        """Return the running attempts that have it."""
        return await self._db.read(lambda db: identities.users(db, namespace, name))

    async def borrowed(self, attempt_id: str, token: Token) -> Borrowed | None:
        """Return what a running attempt has."""
        return await self._db.read(lambda db: identities.borrowed(db, attempt_id, token))

    async def save_state(
        self, attempt_id: str, token: Token, state: SealedState, *, now: Instant
    ) -> int | None:
        """Keep the state an attempt leaves."""
        return await self._db.write(
            lambda db: identities.save_state(db, attempt_id, token, state, now)
        )

    async def sealed(self) -> Sequence[Sealed]:
        """Return everything that is sealed."""
        return await self._db.read(identities.sealed)

    async def reseal(self, old: Sealed, sealed: bytes) -> bool:
        """Replace one sealed text."""
        return await self._db.write(lambda db: identities.reseal(db, old, sealed))
