"""`IdentityStore` in the ledger's database, beside the attempts: a lease is one condition."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from farm.core.model import Instant, Namespace, Token
from farm.errors import ConflictError, NotFoundError
from farm.stores.identity_records import (
    Borrowed,
    Change,
    Mode,
    SavedIdentity,
    Sealed,
    SealedState,
    Use,
    of_identity,
    of_job,
)
from farm.stores.ledger import schema
from farm.stores.ledger.fencing import FENCED
from farm.stores.ledger.identity_rows import NEVER_SAVED, to_identity, to_state_values, to_values
from farm.stores.ledger.rows import AnyRow, from_json

_jobs, _attempts = schema.jobs, schema.attempts
_identities, _borrowings = schema.identities, schema.borrowings

_SHOWN = tuple(c for c in _identities.c if c.name != "state")
_OF = select(*_SHOWN).where(_identities.c.namespace == bindparam("namespace"))
_ALL = _OF.order_by(_identities.c.name)
_ONE = _OF.where(_identities.c.name == bindparam("name"))
_INSERT = insert(_identities)
_BY_NAME = and_(
    _identities.c.namespace == bindparam("b_namespace"), _identities.c.name == bindparam("b_name")
)
_UPDATE = update(_identities).where(_BY_NAME)
_NEXT = _identities.c.version + 1
_DELETE = delete(_identities).where(_BY_NAME)
_LOCK_ONE = (
    select(_identities.c.id)
    .where(
        _identities.c.namespace == bindparam("namespace"), _identities.c.name == bindparam("name")
    )
    .with_for_update()
)
_THE_SAME = and_(
    _identities.c.namespace == _borrowings.c.namespace, _identities.c.name == _borrowings.c.name
)
_RUNNING = (
    select(_jobs.c.job_id, _attempts.c.attempt_id, _borrowings.c.mode)
    .join_from(_borrowings, _jobs)
    .join(_attempts, _attempts.c.job == _jobs.c.number)
    .where(
        _borrowings.c.namespace == bindparam("namespace"),
        _borrowings.c.name == bindparam("name"),
        _attempts.c.state == schema.RUNNING,
    )
    .order_by(_attempts.c.id)
)
_HELD = (
    select(
        _jobs.c.job_id,
        _jobs.c.spec,
        _borrowings.c.namespace,
        _borrowings.c.name.label("borrowed"),
        _borrowings.c.mode,
        _borrowings.c.secret.label("own_secret"),
    )
    .join_from(_attempts, _jobs)
    .join(_borrowings, _borrowings.c.job == _jobs.c.number)
    .where(FENCED)
    .with_for_update()
)
_LOCK = (
    select(_identities.c.id)
    .join_from(_identities, _borrowings, _THE_SAME)
    .join(_jobs, _borrowings.c.job == _jobs.c.number)
    .where(_jobs.c.job_id == bindparam("job_id"))
    .with_for_update(of=_identities)
)
_STATE = select(_identities.c.state).where(
    _identities.c.namespace == bindparam("namespace"), _identities.c.name == bindparam("name")
)


def is_free(job: Column[Any]) -> ColumnElement[bool]:
    """Make the condition that a job may have the identity that it names.

    An exclusive use, and one that is exclusive or reads, may not both be running.
    """
    mine, theirs = _borrowings.alias("mine"), _borrowings.alias("theirs")
    excluding = or_(
        and_(mine.c.mode == Mode.EXCLUSIVE.value, theirs.c.mode != Mode.CLONE.value),
        and_(mine.c.mode == Mode.READ_ONLY.value, theirs.c.mode == Mode.EXCLUSIVE.value),
    )
    same = and_(theirs.c.namespace == mine.c.namespace, theirs.c.name == mine.c.name)
    return ~exists(
        select(_attempts.c.id)
        .join_from(mine, theirs, and_(same, theirs.c.job != mine.c.job))
        .join(_attempts, _attempts.c.job == theirs.c.job)
        .where(mine.c.job == job, excluding, _attempts.c.state == schema.RUNNING)
        .correlate(_jobs)
    )


def lock(connection: Connection, job_id: str) -> None:
    """Keep others from starting with the identity a job names, until the transaction ends.

    Where writes are one after the other there is nothing to do; elsewhere this makes them so.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK, {"job_id": job_id})


def all_of(connection: Connection, namespace: Namespace) -> Sequence[SavedIdentity]:
    """Read those of a namespace, by name."""
    return [to_identity(row) for row in connection.execute(_ALL, {"namespace": namespace})]


def one(connection: Connection, namespace: Namespace, name: str) -> SavedIdentity:
    """Read one. Raises NotFoundError."""
    found = _find(connection, namespace, name)
    if found is None:
        raise NotFoundError(f"no identity {name}", identity=name)
    return found


def users(connection: Connection, namespace: Namespace, name: str) -> Sequence[Use]:
    """Read the running attempts that have one."""
    rows = connection.execute(_RUNNING, {"namespace": namespace, "name": name})
    return [Use(job_id=r.job_id, attempt_id=r.attempt_id, mode=Mode(r.mode)) for r in rows]


def change(
    connection: Connection, namespace: Namespace, name: str, wanted: Change, now: Instant
) -> tuple[SavedIdentity, bool]:
    """Make or change one; see the port."""
    _refuse_used(connection, namespace, name, by=(Mode.EXCLUSIVE,))
    before = _find(connection, namespace, name)
    values = to_values(wanted, now)
    if before is None:
        first = {"namespace": namespace, "name": name, "version": 1, "created_at": now}
        row = {"options": "{}", **NEVER_SAVED, "proxy": None, "secret": None, **first, **values}
        _insert(connection, row)
    else:
        key = {"b_namespace": namespace, "b_name": name}
        connection.execute(_UPDATE.values(version=_NEXT, **values), key)
    return one(connection, namespace, name), before is None


def _insert(connection: Connection, row: dict[str, object]) -> None:
    try:
        with connection.begin_nested():
            connection.execute(_INSERT, row)
    except IntegrityError:
        name = str(row["name"])
        raise ConflictError(f"the identity {name} has been made meanwhile", identity=name) from None


def remove(connection: Connection, namespace: Namespace, name: str) -> None:
    """Forget one; see the port."""
    one(connection, namespace, name)
    _refuse_used(connection, namespace, name, by=(Mode.EXCLUSIVE, Mode.READ_ONLY))
    connection.execute(_DELETE, {"b_namespace": namespace, "b_name": name})


def borrowed(connection: Connection, attempt_id: str, token: Token) -> Borrowed | None:
    """Read what a running attempt has; see the port."""
    held = _held(connection, attempt_id, token)
    if held is None:
        return None
    found = state = None
    if held.borrowed is not None:
        key = {"namespace": held.namespace, "name": held.borrowed}
        found = _find(connection, Namespace(held.namespace), held.borrowed)
        state = connection.execute(_STATE, key).scalar_one_or_none()
    return Borrowed(
        job_id=held.job_id,
        namespace=Namespace(held.namespace),
        mode=Mode(held.mode),
        spec_proxy=from_json(held.spec).get("proxy"),
        spec_secret=held.own_secret,
        identity=found,
        name=held.borrowed,
        state=state,
    )


def save_state(
    connection: Connection, attempt_id: str, token: Token, state: SealedState, now: Instant
) -> int | None:
    """Keep what an attempt leaves; see the port."""
    held = _held(connection, attempt_id, token)
    if held is None or held.borrowed is None or held.mode != Mode.EXCLUSIVE.value:
        return None
    values = {**to_state_values(state), "saved_at": now, "saved_by": attempt_id, "updated_at": now}
    key = {"b_namespace": held.namespace, "b_name": held.borrowed}
    kept = connection.execute(
        _UPDATE.values(version=_NEXT, **values).returning(_identities.c.version), key
    )
    version: int | None = kept.scalar_one_or_none()
    return version


def sealed(connection: Connection) -> Sequence[Sealed]:
    """Read everything that is sealed."""
    found = [
        Sealed(
            table="borrowings",
            column="secret",
            row=row.job,
            bound_to=of_job(row.job_id),
            sealed=row.secret,
        )
        for row in connection.execute(
            select(_borrowings.c.job, _borrowings.c.secret, _jobs.c.job_id)
            .join_from(_borrowings, _jobs)
            .where(_borrowings.c.secret.is_not(None))
        )
    ]
    for row in connection.execute(select(_identities)):
        for column in ("secret", "state"):
            text = getattr(row, column)
            if text is not None:
                bound = of_identity(row.namespace, row.name, column)
                found.append(
                    Sealed(
                        table="identities", column=column, row=row.id, bound_to=bound, sealed=text
                    )
                )
    return found


def reseal(connection: Connection, old: Sealed, sealed: bytes) -> bool:
    """Replace one sealed text, unless it has changed."""
    table = schema.metadata.tables[old.table]
    key: Column[Any] = table.c.job if old.table == "borrowings" else table.c.id
    column = table.c[old.column]
    found = connection.execute(
        update(table)
        .where(key == old.row, column == bindparam("old", old.sealed, LargeBinary))
        .values({column: sealed})
    )
    return found.rowcount == 1


def _find(connection: Connection, namespace: Namespace, name: str) -> SavedIdentity | None:
    row = connection.execute(_ONE, {"namespace": namespace, "name": name}).one_or_none()
    return None if row is None else to_identity(row)


def _held(connection: Connection, attempt_id: str, token: Token) -> AnyRow | None:
    return connection.execute(
        _HELD,
        {
            "attempt_id": attempt_id,
            "token_epoch": token.store_epoch,
            "token_counter": token.counter,
        },
    ).one_or_none()


def _refuse_used(
    connection: Connection, namespace: Namespace, name: str, *, by: tuple[Mode, ...]
) -> None:
    connection.execute(_LOCK_ONE, {"namespace": namespace, "name": name})
    for use in users(connection, namespace, name):
        if use.mode in by:
            raise ConflictError(
                f"the identity {name} is in use by job {use.job_id}",
                identity=name,
                job_id=use.job_id,
            )
