"""Who shares a PostgreSQL database: each coordinator's life, for as long as it renews its lease.

The time is the database's. Who writes locks its own life's row against being ended; so nothing is
written under a life that another coordinator has seen lapse.
"""

from hashlib import md5

from sqlalchemy import (
    Connection,
    Double,
    bindparam,
    cast,
    delete,
    exists,
    extract,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from farm.errors import StoreUnavailableError
from farm.stores.ledger import schema

_lives, _attempts = schema.coordinators, schema.attempts

_APPLICATION = "tabfarm "
NOW = cast(extract("epoch", func.clock_timestamp()), Double)
"""The database's time, also within a transaction that has waited."""

_COUNT_START = (
    update(schema.meta)
    .where(schema.meta.c.name == "store_epoch")
    .values(value=schema.meta.c.value + 1)
    .returning(schema.meta.c.value)
)
_JOIN = insert(_lives).values(
    life=bindparam("life"), name=bindparam("name"), lease_until=NOW + bindparam("lease_s")
)
_RENEW = (
    update(_lives)
    .where(_lives.c.life == bindparam("b_life"))
    .values(lease_until=NOW + bindparam("lease_s"))
)
_FENCE = (
    select(_lives.c.life)
    .where(_lives.c.life == bindparam("life"), _lives.c.lease_until > NOW)
    .with_for_update(read=True, key_share=True)
)
_UNUSED = select(_lives.c.life).with_for_update(skip_locked=True)
_LEAVE = delete(_lives).where(_lives.c.life.in_(_UNUSED.where(_lives.c.life == bindparam("life"))))
_LAPSED = _UNUSED.where(_lives.c.lease_until <= NOW)
_END_LAPSED = delete(_lives).where(_lives.c.life.in_(_LAPSED)).returning(_lives.c.name)
_END_SESSIONS_OF_LAPSED = text("""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
AND application_name IN (
  SELECT :application || md5(name) FROM coordinators
  GROUP BY name HAVING max(lease_until) <= extract(epoch FROM clock_timestamp())
)
""")
_END_ALL = delete(_lives)
_DEAD = (
    select(_attempts.c.owner)
    .where(
        _attempts.c.state == schema.RUNNING,
        _attempts.c.owner.is_not(None),
        ~exists(select(_lives.c.life).where(_lives.c.life == _attempts.c.owner)),
    )
    .distinct()
)
_LEFT = (
    select(_attempts.c.id)
    .where(
        _attempts.c.state == schema.RUNNING,
        _attempts.c.orphaned_at.is_(None),
        or_(_attempts.c.owner.is_(None), _attempts.c.owner.in_(bindparam("dead", expanding=True))),
    )
    .with_for_update(skip_locked=True)
)
_ORPHAN = (
    update(_attempts)
    .where(_attempts.c.id.in_(bindparam("left", expanding=True)))
    .values(owner=None, orphaned_at=NOW)
)
_FORGET_OWNERS = (
    update(_attempts)
    .where(_attempts.c.state == schema.RUNNING)
    .values(owner=None, orphaned_at=None)
)


def session_name(name: str) -> str:
    """Return what the sessions of a coordinator that shares are called, by which others end them.

    It is no longer than the server takes.
    """
    return _APPLICATION + md5(name.encode(), usedforsecurity=False).hexdigest()


def count_start(connection: Connection) -> int:
    """Count a start of a coordinator; return its number, which no other has."""
    number: int = connection.execute(_COUNT_START).scalar_one()
    return number


def join(connection: Connection, name: str, lease_s: float) -> int:
    """Begin a life, and return its number. What nobody has is an orphan from here on."""
    life = count_start(connection)
    connection.execute(_JOIN, {"life": life, "name": name, "lease_s": lease_s})
    _orphan(connection)
    return life


def renew(connection: Connection, life: int, lease_s: float) -> bool:
    """Live for one more lease; False if the life has been ended."""
    renewed = connection.execute(_RENEW, {"b_life": life, "lease_s": lease_s})
    return renewed.rowcount == 1


def confirm(connection: Connection, life: int) -> None:
    """Make sure of a life until the transaction is over. Raises StoreUnavailableError."""
    if connection.execute(_FENCE, {"life": life}).one_or_none() is None:
        raise StoreUnavailableError("this coordinator's lease of the ledger has lapsed")


def leave(connection: Connection, life: int) -> None:
    """End a life; what it has is an orphan from here on.

    One under which something is still being written, as by a session that is cut off, lapses.
    """
    connection.execute(_LEAVE, {"life": life})
    _orphan(connection)


def end_lapsed(connection: Connection) -> list[str]:
    """End the lives whose lease is over, and their sessions; return whose they were.

    A session whose client has said half of something, and then was stopped or cut off, counts as
    at work, so that no timeout of the server ends it with what it has locked.
    One under which something is just being written is left to the next time: who waited for it
    would not renew meanwhile, and lapse as well.
    """
    connection.execute(_END_SESSIONS_OF_LAPSED, {"application": _APPLICATION})
    names = list(connection.execute(_END_LAPSED).scalars())
    _orphan(connection)
    return names


def _orphan(connection: Connection) -> None:
    """Make orphans of what runs and has no living owner.

    What another is just writing for is left to the next time: it may be taking that over. And who
    is dead is read before: PostgreSQL looks again at a row that has changed while it was waited
    for, but not at the rows of others, by which it would still have no owner.
    """
    dead = list(connection.execute(_DEAD).scalars())
    left = list(connection.execute(_LEFT, {"dead": dead}).scalars())
    if left:
        connection.execute(_ORPHAN, {"left": left})


def agreed_on(connection: Connection, name: str, number: int, life: int) -> int:
    """Return the number that is there for all under a name; this one, if there are no others."""
    others = exists(select(_lives.c.life).where(_lives.c.life != life, _lives.c.lease_until > NOW))
    if not connection.execute(select(others)).scalar_one():
        connection.execute(delete(schema.meta).where(schema.meta.c.name == name))
    mine = postgresql.insert(schema.meta).values(name=name, value=number)
    connection.execute(mine.on_conflict_do_nothing())
    found: int = connection.execute(
        select(schema.meta.c.value).where(schema.meta.c.name == name)
    ).scalar_one()
    return found


def end_all(connection: Connection) -> None:
    """End every life: one farm has the database to itself, and with it all that runs."""
    connection.execute(_END_ALL)
    connection.execute(_FORGET_OWNERS)
