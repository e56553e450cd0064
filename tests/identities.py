"""An identity book as a farm has it, for the farms that tests put together."""

from farm.clock import Clock
from farm.jobs.identities import IdentityBook
from farm.stores.keyring import Keyring, new_key
from farm.stores.ledger import SqlIdentities
from farm.stores.ledger.database import Database

MAX_STATE = 20_000


def identity_book(database: Database, clock: Clock, *keys: str) -> IdentityBook:
    """A book over a ledger's database, under these keys or a new one."""
    ring = Keyring.of(" ".join(keys or (new_key(),)))
    return IdentityBook(SqlIdentities(database), ring, clock, max_bytes=MAX_STATE)
