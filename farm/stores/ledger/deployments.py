"""`Deployments` in the ledger's database."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from farm.core.model import Instant, Namespace
from farm.core.pools import queue_of
from farm.stores.ledger import schema
from farm.stores.ledger.database import Database
from farm.stores.ledger.rows import AnyRow
from farm.stores.ports.deployments import Deployment

_table = schema.deployments
_ALL = select(_table).where(_table.c.namespace == bindparam("namespace")).order_by(_table.c.name)
_WITHDRAW = delete(_table).where(
    _table.c.namespace == bindparam("b_namespace"), _table.c.name == bindparam("b_name")
)


class SqlDeployments:
    """The port; what a method promises is said there."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def declare(
        self, namespace: Namespace, name: str, queues: Sequence[str], *, now: Instant
    ) -> tuple[Deployment, bool]:
        """Make one, or change it."""
        return await self._db.write(lambda db: _declare(db, namespace, name, queues, now))

    async def deployments(self, namespace: Namespace) -> Sequence[Deployment]:
        """Return those of a namespace."""
        return await self._db.read(lambda db: _of(db, namespace))

    async def withdraw(self, namespace: Namespace, name: str) -> bool:
        """Forget one."""
        values = {"b_namespace": namespace, "b_name": name}
        return await self._db.write(lambda db: db.execute(_WITHDRAW, values).rowcount == 1)


def _declare(
    db: Connection, namespace: Namespace, name: str, queues: Sequence[str], now: Instant
) -> tuple[Deployment, bool]:
    values = {
        "namespace": namespace,
        "name": name,
        "queues": json.dumps(sorted({queue_of(queue) for queue in queues})),
        "created_at": now,
        "updated_at": now,
    }
    dialect = sqlite if db.dialect.name == "sqlite" else postgresql
    made = dialect.insert(_table).on_conflict_do_update(
        index_elements=["namespace", "name"],
        set_={"queues": values["queues"], "updated_at": now},
    )
    known = {one.name for one in _of(db, namespace)}
    row = db.execute(made.returning(_table), values).one()
    return _to_record(row), name not in known


def _of(db: Connection, namespace: Namespace) -> Sequence[Deployment]:
    return [_to_record(row) for row in db.execute(_ALL, {"namespace": namespace})]


def _to_record(row: AnyRow) -> Deployment:
    return Deployment(
        namespace=Namespace(row.namespace),
        name=row.name,
        queues=tuple(json.loads(row.queues)),
        created_at=Instant(row.created_at),
        updated_at=Instant(row.updated_at),
    )
