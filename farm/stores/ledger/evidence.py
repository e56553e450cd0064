"""What an attempt says of itself: fenced by its token, each entry stored once and in order."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, insert, select, update

from farm.core.model import Token
from farm.stores.ledger import history, recordings, schema
from farm.stores.ledger.fencing import FENCED, check_owner
from farm.stores.ledger.rows import AnyRow, to_effect, to_json
from farm.stores.records import Effect, Evidence

_jobs, _attempts, _effects, _items = schema.jobs, schema.attempts, schema.effects, schema.items

_FENCED = (
    select(
        _attempts.c.id,
        _attempts.c.job,
        _attempts.c.last_seq,
        _attempts.c.began,
        _attempts.c.item_count,
        _attempts.c.owner,
        _jobs.c.last_event,
        _jobs.c.item_count.label("job_items"),
    )
    .join_from(_attempts, _jobs)
    .where(FENCED)
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
_ADVANCE_JOB = schema.CHANGE_JOB.values(
    last_event=bindparam("last_event"), item_count=bindparam("item_count")
)

_CONTROL = schema.CHANGE_JOB.values(
    control=bindparam("control"), control_by=bindparam("control_by"), asked=bindparam("asked")
)

_EFFECTS = (
    select(*_effects.c, _attempts.c.attempt_id)
    .join_from(_effects, _attempts)
    .join(_jobs, _attempts.c.job == _jobs.c.number)
    .where(_jobs.c.job_id == bindparam("job_id"))
    .order_by(_effects.c.id)
)
_EFFECTS_OF_ATTEMPT = _EFFECTS.where(_attempts.c.attempt_id == bindparam("attempt_id"))


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
    connection: Connection,
    attempt_id: str,
    token: Token,
    evidence: Sequence[Evidence],
    life: int | None,
) -> int | None:
    """Store what follows the attempt's last entry without a gap; return its new last number."""
    attempt = fence(connection, attempt_id, token)
    if attempt is None:
        return None
    check_owner(attempt, life)
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
    _end_recordings(connection, attempt.id, new)
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
    _store_control(connection, attempt.job, new)
    return last


def _store_control(connection: Connection, job: int, new: Sequence[Evidence]) -> None:
    told = [entry.controlled for entry in new if entry.controlled is not None]
    if told:
        now = {"control": told[-1].control.value, "control_by": told[-1].by}
        connection.execute(_CONTROL, {"b_number": job, "asked": told[-1].asked, **now})


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


def _end_recordings(connection: Connection, attempt: int, new: Sequence[Evidence]) -> None:
    for entry in new:
        if entry.recording_end is not None:
            recordings.end(connection, attempt, entry.recording_end)


def effects(connection: Connection, job_id: str, attempt_id: str | None) -> Sequence[Effect]:
    """Read the effects of a job or of one attempt, in the order they were told."""
    if attempt_id is None:
        rows = connection.execute(_EFFECTS, {"job_id": job_id})
    else:
        rows = connection.execute(_EFFECTS_OF_ATTEMPT, {"job_id": job_id, "attempt_id": attempt_id})
    return [to_effect(row) for row in rows]
