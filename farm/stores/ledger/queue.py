"""Which queued jobs are next, and the turns of their namespaces.

Nothing here reads a backlog: the kinds of jobs that wait are found by one look into the index for
each, and of each kind as many jobs are read as may be wanted.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, Text, bindparam, func, select, text, union_all

from farm.core.fairness import in_turns, order_of_turns, share_of
from farm.core.model import Instant, Namespace
from farm.stores.ledger import schema
from farm.stores.ledger.rows import to_job
from farm.stores.records import Due, Job

_jobs, _turns = schema.jobs, schema.turns

_WAITS = "state = 'queued' AND control = 'automation'"
_KINDS = text(f"""
WITH RECURSIVE kinds(namespace, match_key) AS (
  SELECT '', ''
  UNION ALL
  SELECT
    (SELECT jobs.namespace FROM jobs
      WHERE {_WAITS} AND (jobs.namespace, jobs.match_key) > (kinds.namespace, kinds.match_key)
      ORDER BY jobs.namespace, jobs.match_key LIMIT 1),
    (SELECT jobs.match_key FROM jobs
      WHERE {_WAITS} AND (jobs.namespace, jobs.match_key) > (kinds.namespace, kinds.match_key)
      ORDER BY jobs.namespace, jobs.match_key LIMIT 1)
  FROM kinds WHERE kinds.namespace IS NOT NULL
)
SELECT kinds.namespace, kinds.match_key, (
    SELECT jobs.number FROM jobs
    WHERE {_WAITS} AND jobs.namespace = kinds.namespace AND jobs.match_key = kinds.match_key
      AND jobs.not_before <= :now AND jobs.job_id NOT IN :jobs
    ORDER BY jobs.number LIMIT 1
  ) AS oldest, turns.turn
FROM kinds LEFT JOIN turns ON turns.namespace = kinds.namespace
WHERE kinds.namespace <> ''
""").bindparams(bindparam("jobs", type_=Text(), expanding=True))  # noqa: S608 - of constants
_NEXT_START = select(func.min(_jobs.c.not_before)).where(
    schema.WAITS, _jobs.c.not_before > bindparam("now")
)
_COUNT_TURN = text("""
INSERT INTO turns (namespace, turn)
SELECT jobs.namespace, (SELECT coalesce(max(turn), 0) + 1 FROM turns)
FROM jobs WHERE jobs.number = :job
ON CONFLICT (namespace) DO UPDATE SET turn = excluded.turn
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Without:
    """What is not asked for."""

    keys: frozenset[str]
    jobs: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Jobs of one namespace that ask for the same."""

    namespace: Namespace
    match_key: str
    oldest: int


def due(
    connection: Connection,
    now: Instant,
    without: Without,
    served: Sequence[Namespace],
    limit: int,
) -> Due:
    """Read the jobs that are next, and when the next of those may start that may not yet."""
    kinds, turns = _kinds(connection, now, without)
    oldest = {
        namespace: min(kind.oldest for kind in waiting) for namespace, waiting in kinds.items()
    }
    order = order_of_turns(oldest, turns, served)[:limit]
    share = share_of(len(order), limit)
    wanted = [kind for namespace in order for kind in kinds[namespace][:share]]
    lines: dict[Namespace, list[Job]] = {namespace: [] for namespace in order}
    for job in _oldest_of(connection, wanted, now, without, share):
        lines[job.namespace].append(job)
    return Due(
        jobs=in_turns([line[:share] for line in lines.values()], limit),
        next_start=connection.execute(_NEXT_START, {"now": now}).scalar_one(),
    )


def _kinds(
    connection: Connection, now: Instant, without: Without
) -> tuple[Mapping[Namespace, list[_Kind]], Mapping[Namespace, int]]:
    """Read the kinds that wait, those with older jobs first, and when each last had a turn."""
    kinds: defaultdict[Namespace, list[_Kind]] = defaultdict(list)
    turns: dict[Namespace, int] = {}
    for row in connection.execute(_KINDS, {"now": now, "jobs": sorted(without.jobs)}):
        if row.oldest is None or row.match_key in without.keys:
            continue
        namespace = Namespace(row.namespace)
        turns[namespace] = row.turn or 0
        kinds[namespace].append(
            _Kind(namespace=namespace, match_key=row.match_key, oldest=row.oldest)
        )
    for waiting in kinds.values():
        waiting.sort(key=lambda kind: kind.oldest)
    return kinds, turns


def _oldest_of(
    connection: Connection, kinds: Sequence[_Kind], now: Instant, without: Without, each: int
) -> Sequence[Job]:
    """Read the oldest jobs of each kind, all of them in order of age."""
    if not kinds:
        return ()
    numbers = union_all(*(select(_first(kind, now, without, each).subquery()) for kind in kinds))
    query = select(_jobs).where(_jobs.c.number.in_(numbers)).order_by(_jobs.c.number)
    return [to_job(row) for row in connection.execute(query)]


def _first(kind: _Kind, now: Instant, without: Without, each: int) -> Select[tuple[int]]:
    query = select(_jobs.c.number).where(
        schema.WAITS,
        _jobs.c.namespace == kind.namespace,
        _jobs.c.match_key == kind.match_key,
        _jobs.c.number >= kind.oldest,
        _jobs.c.not_before <= now,
        _jobs.c.job_id.not_in(without.jobs),
    )
    return query.order_by(_jobs.c.number).limit(each)


def count_turn(connection: Connection, job: int) -> None:
    """Note that the namespace of a job has had its turn: it is last now."""
    connection.execute(_COUNT_TURN, {"job": job})
