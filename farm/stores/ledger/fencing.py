"""What every statement asks that writes for an attempt: it runs, under the token shown."""

from sqlalchemy import and_, bindparam

from farm.errors import NotOwnerError
from farm.stores.ledger import schema
from farm.stores.ledger.rows import AnyRow

_attempts = schema.attempts
FENCED = and_(
    _attempts.c.attempt_id == bindparam("attempt_id"),
    _attempts.c.state == schema.RUNNING,
    _attempts.c.token_epoch == bindparam("token_epoch"),
    _attempts.c.token_counter == bindparam("token_counter"),
)
"""Of attempts (P8); takes the parameters `attempt_id`, `token_epoch` and `token_counter`."""


def check_owner(attempt: AnyRow, life: int | None) -> None:
    """Make sure that the attempt of a row is this coordinator's; None has all to itself.

    Raises:
        NotOwnerError: If another coordinator has taken it over.
    """
    if life is not None and attempt.owner != life:
        raise NotOwnerError("another coordinator has taken the attempt over")
