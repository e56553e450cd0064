"""`JobRetention` in the ledger's database."""

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, select

from farm.core.model import Instant, Namespace
from farm.stores.ledger import forgetting, schema
from farm.stores.ledger.ledger import Database

_discards = schema.discards
_SOME = select(_discards.c.job_id).order_by(_discards.c.job_id).limit(bindparam("most"))
_GONE = delete(_discards).where(_discards.c.job_id.in_(bindparam("job_ids", expanding=True)))


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

    async def discarded(self, *, limit: int) -> Sequence[str]:
        """Return whose files may not be gone."""
        return await self._db.read(lambda db: db.execute(_SOME, {"most": limit}).scalars().all())

    async def files_gone(self, job_ids: Sequence[str]) -> None:
        """Note that they are."""
        await self._db.write(lambda db: db.execute(_GONE, {"job_ids": job_ids}))
