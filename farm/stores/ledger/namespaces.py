"""`NamespaceStore` in the ledger's database."""

import json
from collections.abc import Sequence
from typing import assert_never

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from farm.core.admission import Refusal
from farm.core.model import Instant, Namespace
from farm.core.namespaces import Minted, NamespaceRecord, Origin, decide
from farm.core.tiers import NodePlacement, Pinned, Prefer, Unplaced
from farm.errors import NotFoundError
from farm.stores.ledger import schema
from farm.stores.ledger.database import Database
from farm.stores.ledger.rows import AnyRow

_table = schema.namespaces
_ALL = select(_table).order_by(_table.c.name)
_SOME = _ALL.where(_table.c.name.in_(bindparam("names", expanding=True)))
_LOCK_ONE = select(_table).where(_table.c.name == bindparam("name")).with_for_update()
_PLACE = update(_table).where(_table.c.name == bindparam("b_name"))


class SqlNamespaces:
    """The port; what a method promises is said there."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def admit(
        self, namespaces: Sequence[Namespace], node: str | None, *, minting: bool, now: Instant
    ) -> Minted | Refusal:
        """Look, decide and mint in one transaction."""
        return await self._db.write(lambda db: _admit(db, namespaces, node, minting, now))

    async def create(
        self, name: Namespace, origin: Origin, *, now: Instant
    ) -> tuple[NamespaceRecord, bool]:
        """Make one, or find it."""
        return await self._db.write(lambda db: _create(db, name, origin, now))

    async def namespaces(
        self, among: Sequence[Namespace] | None = None
    ) -> Sequence[NamespaceRecord]:
        """Return all of them, or some."""
        if among is not None:
            return await self._db.read(lambda db: _known(db, among))
        return await self._db.read(lambda db: [_to_record(row) for row in db.execute(_ALL)])

    async def place(
        self, name: Namespace, placement: NodePlacement
    ) -> tuple[NamespaceRecord, bool]:
        """Change where one's work may be done."""
        return await self._db.write(lambda db: _place(db, name, placement))

    async def placement(self, namespace: Namespace) -> NodePlacement:
        """Return where one's work may be done."""
        found = await self._db.read(lambda db: _known(db, [namespace]))
        return found[0].placement if found else Unplaced()


def _admit(
    db: Connection, wanted: Sequence[Namespace], node: str | None, minting: bool, now: Instant
) -> Minted | Refusal:
    missing = decide(_known(db, wanted), wanted, node, minting)
    if isinstance(missing, Refusal):
        return missing
    made = (_insert(db, name, Origin.WORKER_MINT, now) for name in missing)
    return Minted(new=tuple(record for record in made if record is not None))


def _create(
    db: Connection, name: Namespace, origin: Origin, now: Instant
) -> tuple[NamespaceRecord, bool]:
    made = _insert(db, name, origin, now)
    return (made, True) if made is not None else (_known(db, [name])[0], False)


def _insert(
    db: Connection, name: Namespace, origin: Origin, now: Instant
) -> NamespaceRecord | None:
    """Make one; None where it is there, also where another transaction makes it now."""
    dialect = sqlite if db.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(_table).on_conflict_do_nothing().returning(_table)
    values = {"name": name, "origin": origin.value, "created_at": now}
    row = db.execute(statement, values).one_or_none()
    return None if row is None else _to_record(row)


def _place(
    db: Connection, name: Namespace, placement: NodePlacement
) -> tuple[NamespaceRecord, bool]:
    row = db.execute(_LOCK_ONE, {"name": name}).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no namespace {name}", namespace=name)
    if _to_record(row).placement == placement:
        return _to_record(row), False
    db.execute(_PLACE.values(**_to_values(placement)), {"b_name": name})
    return _known(db, [name])[0], True


def _known(db: Connection, names: Sequence[Namespace]) -> Sequence[NamespaceRecord]:
    return [_to_record(row) for row in db.execute(_SOME, {"names": list(names)})]


def _to_record(row: AnyRow) -> NamespaceRecord:
    return NamespaceRecord(
        name=Namespace(row.name),
        origin=Origin(row.origin),
        created_at=Instant(row.created_at),
        placement=_to_placement(row.placement, frozenset(json.loads(row.labels))),
    )


def _to_placement(kind: str, labels: frozenset[str]) -> NodePlacement:
    match kind:
        case "pinned":
            return Pinned(labels=labels)
        case "prefer":
            return Prefer(labels=labels)
        case _:
            return Unplaced()


def _to_values(placement: NodePlacement) -> dict[str, str]:
    match placement:
        case Unplaced():
            return {"placement": "unplaced", "labels": "[]"}
        case Prefer(labels=labels):
            return {"placement": "prefer", "labels": json.dumps(sorted(labels))}
        case Pinned(labels=labels):
            return {"placement": "pinned", "labels": json.dumps(sorted(labels))}
        case _:
            assert_never(placement)
