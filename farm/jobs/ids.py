"""Names of jobs: unique, and in the order in which they were given."""

import secrets

from farm.core.model import Instant

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, which sorts as its values do."""
_CHANCE_BITS = 80


def random_id(prefix: str) -> str:
    """Return a name that nothing else has."""
    return f"{prefix}_{secrets.token_hex(12)}"


class JobIds:
    """Makes ids such as `job_01JDW3H8Q2K0000000000000AB`: 48 bits of time, 80 of chance.

    Each is greater than every earlier one of this object, within a millisecond and where the clock
    is set back too.
    """

    def __init__(self) -> None:
        self._last = 0

    def next(self, now: Instant) -> str:
        """Return a new id."""
        value = (int(now * 1000) << _CHANCE_BITS) | secrets.randbits(_CHANCE_BITS)
        if value >> _CHANCE_BITS <= self._last >> _CHANCE_BITS:
            value = self._last + 1 + secrets.randbits(32)
        self._last = value
        return "job_" + "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
