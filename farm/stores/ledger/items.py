"""Items, read in parts: a bounded number in memory at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from farm.core.job_states import AttemptState
from farm.core.model import Namespace
from farm.stores.ledger import schema
from farm.stores.ledger.jobs import check_namespace
from farm.stores.ledger.rows import to_item
from farm.stores.records import Item

_jobs, _attempts, _items = schema.jobs, schema.attempts, schema.items

_SOURCES = (
    select(
        _attempts.c.id,
        _attempts.c.attempt_id,
        _attempts.c.number,
        _attempts.c.state,
        _attempts.c.item_count,
    )
    .join_from(_attempts, _jobs)
    .where(_jobs.c.job_id == bindparam("job_id"))
    .order_by(_attempts.c.number)
)
_BATCH = (
    select(_items.c.id, _items.c.dataset, _items.c.position, _items.c.data)
    .where(_items.c.attempt == bindparam("attempt"), _items.c.id > bindparam("after"))
    .order_by(_items.c.id)
    .limit(bindparam("most"))
)
_BATCH_OF_DATASET = _BATCH.where(_items.c.dataset == bindparam("dataset"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which items are asked for."""

    job_id: str
    namespace: Namespace | None
    attempt: int | None
    every: bool
    dataset: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An attempt whose items are to be read."""

    row_id: int
    attempt_id: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some items, and where those after them are."""

    items: Sequence[Item]
    sources: Sequence[Source]
    """The attempts that are not done; the first from `after` on."""
    after: int
    dataset: str | None

    @property
    def more(self) -> bool:
        """Whether there may be more."""
        return bool(self.sources)


def first(connection: Connection, wanted: Wanted, most: int) -> Part:
    """Read the first items. Raises NotFoundError."""
    check_namespace(connection, wanted.namespace, wanted.job_id)
    sources = _sources(connection, wanted)
    start = Part(items=(), sources=sources, after=0, dataset=wanted.dataset)
    return following(connection, start, most)


def following(connection: Connection, part: Part, most: int) -> Part:
    """Read the items after those of a part."""
    if not part.sources:
        return part
    source, *later = part.sources
    place = {"attempt": source.row_id, "after": part.after, "most": most}
    if part.dataset is None:
        rows = connection.execute(_BATCH, place).all()
    else:
        rows = connection.execute(_BATCH_OF_DATASET, place | {"dataset": part.dataset}).all()
    whole = len(rows) < most
    return Part(
        items=[to_item(source.attempt_id, source.number, row) for row in rows],
        sources=later if whole else part.sources,
        after=0 if whole else rows[-1].id,
        dataset=part.dataset,
    )


def _sources(connection: Connection, wanted: Wanted) -> Sequence[Source]:
    """Choose the attempts whose items are meant, in order."""
    rows = connection.execute(_SOURCES, {"job_id": wanted.job_id}).all()
    if wanted.attempt is not None:
        rows = [row for row in rows if row.number == wanted.attempt]
    elif not wanted.every and rows:
        succeeded = AttemptState.SUCCEEDED.value
        rows = [max(rows, key=lambda row: (row.state == succeeded, row.item_count, row.number))]
    return [Source(row_id=row.id, attempt_id=row.attempt_id, number=row.number) for row in rows]
