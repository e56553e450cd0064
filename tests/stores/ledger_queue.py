"""What is next in a ledger."""

from farm.core.model import Instant
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_rows import T0

NONE: frozenset[str] = frozenset()


async def next_id(
    ledger: Ledger,
    *,
    now: Instant = T0,
    keys: frozenset[str] = NONE,
    jobs: frozenset[str] = NONE,
) -> str | None:
    due = await ledger.due(now=now, without_keys=keys, without_jobs=jobs, limit=1)
    return due.jobs[0].job_id if due.jobs else None


async def next_start(ledger: Ledger, *, now: Instant) -> Instant | None:
    return (await ledger.due(now=now, without_keys=NONE, without_jobs=NONE, limit=1)).next_start
