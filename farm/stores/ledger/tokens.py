"""Bearer tokens, by hash."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from farm.core.model import Instant, Namespace
from farm.errors import NotFoundError
from farm.stores.ledger import schema
from farm.stores.ledger.rows import bounds_to_text, to_token
from farm.stores.records import TokenRecord

_tokens = schema.tokens

_INSERT = insert(_tokens)
_VALID = select(_tokens).where(
    _tokens.c.sha256 == bindparam("sha256"), _tokens.c.revoked_at.is_(None)
)
_ALL = select(_tokens).where(_tokens.c.revoked_at.is_(None)).order_by(_tokens.c.created_at)
_KNOWN = select(_tokens.c.namespace).where(_tokens.c.token_id == bindparam("token_id"))
_REVOKE = (
    update(_tokens)
    .where(_tokens.c.token_id == bindparam("b_token_id"), _tokens.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("now"))
)


def add(connection: Connection, token: TokenRecord) -> None:
    """Remember a token, unless one with its secret is known: two may learn of it at once."""
    row = {
        "token_id": token.token_id,
        "sha256": token.sha256,
        "scope": token.scope,
        "namespace": token.namespace,
        "name": token.name,
        "created_at": token.created_at,
        "revoked_at": token.revoked_at,
        "bounds": bounds_to_text(token.bounds),
    }
    try:
        with connection.begin_nested():
            connection.execute(_INSERT, row)
    except IntegrityError:
        if valid(connection, token.sha256) is None:
            raise


def valid(connection: Connection, sha256: str) -> TokenRecord | None:
    """Find a token that opens something."""
    row = connection.execute(_VALID, {"sha256": sha256}).one_or_none()
    return None if row is None else to_token(row)


def valid_of(connection: Connection, namespace: Namespace | None) -> Sequence[TokenRecord]:
    """Read the tokens that open something, those made in a namespace or all, the oldest first."""
    asked = _ALL if namespace is None else _ALL.where(_tokens.c.namespace == namespace)
    return [to_token(row) for row in connection.execute(asked)]


def revoke(
    connection: Connection, token_id: str, now: Instant, namespace: Namespace | None
) -> None:
    """Note when a token ended; the first time counts. Raises NotFoundError."""
    found = connection.execute(_KNOWN, {"token_id": token_id}).scalar_one_or_none()
    if found is None or namespace not in (None, found):
        raise NotFoundError(f"no token {token_id}", token_id=token_id)
    connection.execute(_REVOKE, {"b_token_id": token_id, "now": now})
