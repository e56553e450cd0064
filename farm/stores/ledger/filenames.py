"""The names of a job's files: each is there once."""

import os
from collections.abc import Set

from sqlalchemy import Connection, bindparam, select

from farm.stores.ledger import schema

_artifacts = schema.artifacts
_NAMES = select(_artifacts.c.name).where(_artifacts.c.job == bindparam("job"))


def free_in_job(connection: Connection, job: int, name: str) -> str:
    """Return the name, numbered if the job has a file of that name."""
    taken = {name.casefold() for name in connection.scalars(_NAMES, {"job": job})}
    return free_name(name, taken)


def free_name(name: str, taken: Set[str]) -> str:
    """Number a name that is among `taken` (which are case-folded): a.png, a-2.png, a-3.png.

    Names that differ only in case count as one, for file systems that see it so.
    """
    stem, ending = os.path.splitext(name)
    number = 1
    while name.casefold() in taken:
        number += 1
        name = f"{stem}-{number}{ending}"
    return name
