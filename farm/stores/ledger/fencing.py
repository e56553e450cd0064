"""What every statement asks that writes for an attempt: it runs, under the token shown."""

from sqlalchemy import and_, bindparam

from farm.stores.ledger import schema

_attempts = schema.attempts
FENCED = and_(
    _attempts.c.attempt_id == bindparam("attempt_id"),
    _attempts.c.state == schema.RUNNING,
    _attempts.c.token_epoch == bindparam("token_epoch"),
    _attempts.c.token_counter == bindparam("token_counter"),
)
"""Of attempts (P8); takes the parameters `attempt_id`, `token_epoch` and `token_counter`."""
