"""Whose an attempt is, among the coordinators that share the database."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from farm.core.model import ClientId, Token
from farm.stores.ledger import attempts, schema
from farm.stores.ledger.fencing import FENCED
from farm.stores.ledger.membership import NOW
from farm.stores.ledger.rows import to_attempt
from farm.stores.ports.sharing import Standing
from farm.stores.records import Attempt

_jobs, _attempts, _lives, _agents = (
    schema.jobs,
    schema.attempts,
    schema.coordinators,
    schema.agents,
)


_THIS = (
    select(_attempts.c.id)
    .where(
        FENCED,
        _attempts.c.client_id == bindparam("client_id"),
        _attempts.c.command_id == bindparam("command_id"),
    )
    .with_for_update()
)
_TAKE_OVER = (
    update(_attempts)
    .where(_attempts.c.id == bindparam("b_id"))
    .values(owner=bindparam("life"), orphaned_at=None)
)
_MINE = and_(_attempts.c.state == schema.RUNNING, _attempts.c.owner == bindparam("life"))
_IS_ORPHAN = and_(_attempts.c.state == schema.RUNNING, _attempts.c.owner.is_(None))
_ADOPT = (
    update(_attempts)
    .where(_attempts.c.attempt_id == bindparam("b_attempt_id"), _IS_ORPHAN)
    .values(owner=bindparam("life"), orphaned_at=None)
)
_DISOWN = (
    update(_attempts)
    .where(_attempts.c.attempt_id == bindparam("b_attempt_id"), _MINE)
    .values(owner=None, orphaned_at=NOW)
)
_ORPHANS = attempts.ALL.where(
    _IS_ORPHAN, _attempts.c.orphaned_at <= NOW - bindparam("for_s")
).order_by(_attempts.c.id)
_STANDING = select(
    _attempts.c.attempt_id,
    _attempts.c.client_id,
    _attempts.c.owner,
    _jobs.c.cancel_requested,
).join_from(_attempts, _jobs)


def take_over(
    connection: Connection,
    attempt_id: str,
    client_id: ClientId,
    token: Token,
    command_id: str,
    life: int,
) -> Attempt | None:
    """Own an attempt; None if none such runs."""
    found = connection.execute(
        _THIS,
        {
            "attempt_id": attempt_id,
            "token_epoch": token.store_epoch,
            "token_counter": token.counter,
            "client_id": client_id,
            "command_id": command_id,
        },
    ).scalar_one_or_none()
    if found is None:
        return None
    connection.execute(_TAKE_OVER, {"b_id": found, "life": life})
    return attempts.one(connection, attempt_id)


def adopt(connection: Connection, attempt_id: str, life: int) -> bool:
    """Own an orphan; False if it is none."""
    return connection.execute(_ADOPT, {"b_attempt_id": attempt_id, "life": life}).rowcount == 1


def disown(connection: Connection, attempt_id: str, life: int) -> None:
    """Make an attempt of this life's an orphan."""
    connection.execute(_DISOWN, {"b_attempt_id": attempt_id, "life": life})


def orphans(connection: Connection, for_s: float, client_id: ClientId | None) -> Sequence[Attempt]:
    """Read what runs and has had no owner for so long."""
    query = _ORPHANS if client_id is None else _ORPHANS.where(_attempts.c.client_id == client_id)
    return [to_attempt(row) for row in connection.execute(query, {"for_s": for_s})]


def standing(
    connection: Connection, attempt_ids: Collection[str], life: int
) -> Mapping[str, Standing]:
    """Read how attempts stand, if they run: these, and all of this life's."""
    query = _STANDING.where(
        _attempts.c.state == schema.RUNNING,
        or_(_attempts.c.owner == life, _attempts.c.attempt_id.in_(attempt_ids)),
    )
    return {
        row.attempt_id: Standing(
            client_id=ClientId(row.client_id),
            mine=row.owner == life,
            cancel_requested=row.cancel_requested,
        )
        for row in connection.execute(query)
    }


def note_agent(connection: Connection, client_id: ClientId, token_id: str) -> None:
    """Remember with which token an agent was let in."""
    row = insert(_agents).values(client_id=client_id, token_id=token_id)
    connection.execute(
        row.on_conflict_do_update(index_elements=["client_id"], set_={"token_id": token_id})
    )


def token_of_agent(connection: Connection, client_id: ClientId) -> str | None:
    """Read it."""
    query = select(_agents.c.token_id).where(_agents.c.client_id == client_id)
    found: str | None = connection.execute(query).scalar_one_or_none()
    return found
