"""`JobRetention` in the ledger's database."""

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, select

from farm.core.model import Instant, Namespace
from farm.stores.ledger import forgetting, schema
from farm.stores.ledger.database import Database

_discards = schema.discards
_SOME = select(_discards.c.what).order_by(_discards.c.what).limit(bindparam("most"))
_GONE = delete(_discards).where(_discards.c.what.in_(bindparam("what", expanding=True)))


class SqlRetention:
    """The port; what a method promises is said there."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def delete(self, namespace: Namespace, job_id: str) -> None:
        """Delete one job."""
        await self._db.write(lambda db: forgetting.forget_one(db, namespace, job_id))

    async def delete_ended(self, *, before: Instant, limit: int) -> int:
        """Delete some that ended long ago."""
        return await self._db.write(lambda db: forgetting.forget_ended(db, before, limit))

    async def delete_recordings(self, *, before: Instant, limit: int) -> int:
        """Delete some recordings that were made long ago."""
        return await self._db.write(lambda db: forgetting.forget_recordings(db, before, limit))

    async def discarded(self, *, limit: int) -> Sequence[str]:
        """Return which files may not be gone."""
        return await self._db.read(lambda db: db.execute(_SOME, {"most": limit}).scalars().all())

    async def files_gone(self, what: Sequence[str]) -> None:
        """Note that they are."""
        await self._db.write(lambda db: db.execute(_GONE, {"what": what}))
