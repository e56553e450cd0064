"""What an attempt says of itself: fenced by its token, each entry stored once and in order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, select, update

from farm.core.job_states import AttemptState
from farm.core.model import Token
from farm.stores.ledger import history, schema
from farm.stores.ledger.rows import AnyRow, to_effect, to_item, to_json
from farm.stores.records import Effect, Evidence, Item

_jobs, _attempts, _effects, _items = schema.jobs, schema.attempts, schema.effects, schema.items

_FENCED = (
    select(
        _attempts.c.id,
        _attempts.c.job,
        _attempts.c.last_seq,
        _attempts.c.began,
        _attempts.c.item_count,
        _jobs.c.last_event,
        _jobs.c.item_count.label("job_items"),
    )
    .join_from(_attempts, _jobs)
    .where(
        _attempts.c.attempt_id == bindparam("attempt_id"),
        _attempts.c.state == AttemptState.RUNNING.value,
        _attempts.c.token_epoch == bindparam("token_epoch"),
        _attempts.c.token_counter == bindparam("token_counter"),
    )
    .with_for_update()
)
_INSERT_EFFECTS = insert(_effects)
_EFFECT_DONE = (
    update(_effects)
    .where(
        _effects.c.attempt == bindparam("b_attempt"),
        _effects.c.effect_id == bindparam("b_effect_id"),
        _effects.c.done_at.is_(None),
    )
    .values(done_at=bindparam("done_at"))
)
_INSERT_ITEMS = insert(_items)
_ADVANCE_ATTEMPT = (
    update(_attempts)
    .where(_attempts.c.id == bindparam("b_id"))
    .values(
        last_seq=bindparam("last_seq"),
        began=bindparam("began"),
        item_count=bindparam("item_count"),
    )
)
_ADVANCE_JOB = (
    update(_jobs)
    .where(_jobs.c.number == bindparam("b_number"))
    .values(last_event=bindparam("last_event"), item_count=bindparam("item_count"))
)

_EFFECTS = (
    select(*_effects.c, _attempts.c.attempt_id)
    .join_from(_effects, _attempts)
    .join(_jobs, _attempts.c.job == _jobs.c.number)
    .where(_jobs.c.job_id == bindparam("job_id"))
    .order_by(_effects.c.id)
)
_EFFECTS_OF_ATTEMPT = _EFFECTS.where(_attempts.c.attempt_id == bindparam("attempt_id"))

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
class Source:
    """An attempt whose items are to be read."""

    row_id: int
    attempt_id: str
    number: int


def fence(connection: Connection, attempt_id: str, token: Token) -> AnyRow | None:
    """Find the attempt if it still runs under this token."""
    return connection.execute(
        _FENCED,
        {
            "attempt_id": attempt_id,
            "token_epoch": token.store_epoch,
            "token_counter": token.counter,
        },
    ).one_or_none()


def record(
    connection: Connection, attempt_id: str, token: Token, evidence: Sequence[Evidence]
) -> int | None:
    """Store what follows the attempt's last entry without a gap; return its new last number."""
    attempt = fence(connection, attempt_id, token)
    if attempt is None:
        return None
    new = list(_following(attempt.last_seq, evidence))
    last: int = attempt.last_seq
    if not new:
        return last
    lines: list[history.Line] = [(entry.event_type, entry.data, entry.at) for entry in new]
    last_event = history.append(
        connection, attempt.job, attempt.last_event, lines, attempt_id=attempt_id
    )
    _store_effects(connection, attempt.id, new)
    items = _store_items(connection, attempt.id, new)
    last = new[-1].seq
    count = attempt.item_count + items
    connection.execute(
        _ADVANCE_ATTEMPT,
        {
            "b_id": attempt.id,
            "last_seq": last,
            "began": attempt.began or any(entry.began for entry in new),
            "item_count": count,
        },
    )
    # Until an attempt succeeds, those of the attempt with the most count.
    most = max(attempt.job_items, count)
    connection.execute(
        _ADVANCE_JOB, {"b_number": attempt.job, "last_event": last_event, "item_count": most}
    )
    return last


def _following(last: int, evidence: Sequence[Evidence]) -> Iterable[Evidence]:
    """Yield what is new, up to the first gap: what is missing will be sent again, in order."""
    for entry in evidence:
        if entry.seq <= last:
            continue
        if entry.seq != last + 1:
            return
        last = entry.seq
        yield entry


def _store_effects(connection: Connection, attempt: int, new: Sequence[Evidence]) -> None:
    begun = [
        {
            "attempt": attempt,
            "effect_id": effect.effect_id,
            "step_index": effect.step_index,
            "effect": effect.effect,
            "observed": effect.observed,
            "method": effect.method,
            "url": effect.url,
            "begun_at": effect.begun_at,
            "done_at": effect.done_at,
        }
        for entry in new
        if (effect := entry.effect_begun) is not None
    ]
    if begun:
        connection.execute(_INSERT_EFFECTS, begun)
    done = [
        {"b_attempt": attempt, "b_effect_id": entry.effect_done, "done_at": entry.at}
        for entry in new
        if entry.effect_done is not None
    ]
    if done:
        connection.execute(_EFFECT_DONE, done)


def _store_items(connection: Connection, attempt: int, new: Sequence[Evidence]) -> int:
    rows = [
        {
            "attempt": attempt,
            "dataset": item.dataset,
            "position": item.index,
            "data": to_json(item.data),
        }
        for entry in new
        for item in entry.items
    ]
    if rows:
        connection.execute(_INSERT_ITEMS, rows)
    return len(rows)


def effects(connection: Connection, job_id: str, attempt_id: str | None) -> Sequence[Effect]:
    """Read the effects of a job or of one attempt, in the order they were told."""
    if attempt_id is None:
        rows = connection.execute(_EFFECTS, {"job_id": job_id})
    else:
        rows = connection.execute(_EFFECTS_OF_ATTEMPT, {"job_id": job_id, "attempt_id": attempt_id})
    return [to_effect(row) for row in rows]


def sources(
    connection: Connection, job_id: str, *, attempt: int | None, every: bool
) -> Sequence[Source]:
    """Choose the attempts whose items are meant, in order."""
    rows = connection.execute(_SOURCES, {"job_id": job_id}).all()
    if attempt is not None:
        rows = [row for row in rows if row.number == attempt]
    elif not every and rows:
        succeeded = AttemptState.SUCCEEDED.value
        rows = [max(rows, key=lambda row: (row.state == succeeded, row.item_count, row.number))]
    return [Source(row_id=row.id, attempt_id=row.attempt_id, number=row.number) for row in rows]


def batch(
    connection: Connection, source: Source, *, dataset: str | None, after: int, most: int
) -> tuple[Sequence[Item], int | None]:
    """Read some items after a place; return them, and the place for more or None."""
    place = {"attempt": source.row_id, "after": after, "most": most}
    if dataset is None:
        rows = connection.execute(_BATCH, place).all()
    else:
        rows = connection.execute(_BATCH_OF_DATASET, place | {"dataset": dataset}).all()
    items = [to_item(source.attempt_id, source.number, row) for row in rows]
    return items, rows[-1].id if len(rows) == most else None
