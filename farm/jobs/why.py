"""What a namespace is told of its queue: which pools there are, what waits for them, and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from farm.clock import Clock
from farm.core.census import PoolVerdict
from farm.core.control import Control
from farm.core.eligibility import Reason
from farm.core.estimate import begins_within_s
from farm.core.job_states import JobState
from farm.core.model import (
    Client,
    ClientId,
    ClientType,
    Instant,
    Namespace,
    Snapshot,
    TaskId,
)
from farm.core.pools import DEFAULT_QUEUE
from farm.core.verdicts import REMEDY_OF_POOL, Verdict
from farm.jobs.endings import was_not_taken
from farm.jobs.explaining import Explain, waiting_for
from farm.jobs.pools import Pool, pool_of
from farm.jobs.ports import Waiting
from farm.jobs.readings import Readings
from farm.stores.ports.backlog import Backlog
from farm.stores.ports.contexts import AssignmentRegistry
from farm.stores.ports.deployments import QueueCatalogue
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Job, Queued

_LATEST = 20
_NAMED = 20
_HOLDERS = 50
_FOR_ROOM = frozenset(
    {
        PoolVerdict.POLLERS_AT_CAPACITY,
        PoolVerdict.NO_WINDOW_FREE,
        PoolVerdict.NO_TAB_FREE,
        PoolVerdict.NO_FLOW_FREE,
    }
)
"""Where it is only a matter of time until a job begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """Jobs that ask for the same, which nobody can take now."""

    waiting: Waiting
    jobs: Queued

    @property
    def since(self) -> Instant:
        """When the oldest of them was to begin."""
        oldest = self.jobs.jobs[0]
        return Instant(max(oldest.created_at, oldest.not_before))


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why one job has not begun; all None or empty where it has, or nobody has looked yet."""

    job: Job
    waiting: Waiting | None = None
    position: int | None = None
    """Among those that ask for the same, from 1."""
    agents: Mapping[ClientId, Reason] | None = None
    begins_within_s: float | None = None
    runs_on: ClientId | None = None


class Explaining:
    """Reads queue, ledger and registry; changes nothing.

    Args:
        registry: Who is there.
        ledger: Where the jobs are.
        queue: What of them waits.
        readings: Why it does, as far as that has been looked at.
        explain: Says why a request would get nothing now.
        queues: The task queues there are.
        clock: The time.
    """

    def __init__(
        self,
        *,
        registry: AssignmentRegistry,
        ledger: Ledger,
        queue: Backlog,
        readings: Readings,
        explain: Explain,
        queues: QueueCatalogue,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._ledger = ledger
        self._queue = queue
        self._readings = readings
        self._explain = explain
        self._queues = queues
        self._clock = clock

    async def unserved(self, namespace: Namespace) -> Sequence[Unserved]:
        """Say what waits in a namespace that nobody can take, that with the oldest job first.

        What has begun since, or has been cancelled or paused, is in the queue no more, so not here.
        """
        waiting = await self._readings.unserved()
        queued = await self._queue.queued(namespace, first=_NAMED, now=self._clock())
        return [
            Unserved(waiting=waiting[one.match_key], jobs=one)
            for one in queued
            if one.match_key in waiting
        ]

    async def pools(self, namespace: Namespace) -> Sequence[Pool]:
        """Return the pools of a namespace by name: those of its agents, and those of its jobs."""
        now = self._clock()
        queued: Counter[str] = Counter()
        for one in await self._queue.queued(namespace, first=1, now=now):
            queued[one.jobs[0].spec.get("queue", DEFAULT_QUEUE)] += one.count
        snapshot = await self._registry.snapshot(now=now)
        clients = [client for client in snapshot.clients if namespace in client.namespaces]
        names = queued.keys() | {client.task_queue for client in clients}
        declared = {name: await self._queues.look_up(namespace, name) for name in sorted(names)}
        return [
            pool_of(namespace, name, queue, snapshot, queued[name])
            for name, queue in declared.items()
        ]

    async def counts(self) -> Mapping[PoolVerdict, int]:
        """Count the jobs of all namespaces that nobody can take, by verdict."""
        queued = await self._queue.counts_by_key(now=self._clock())
        found = dict.fromkeys(PoolVerdict, 0)
        for key, waiting in (await self._readings.unserved()).items():
            found[waiting.pool] += queued.get(key, 0)
        return found

    async def why(self, namespace: Namespace, job_id: str) -> Why:
        """Say why a job has not begun. Raises NotFoundError, also for one of another namespace."""
        job = await self._ledger.job(namespace, job_id)
        if job.state is not JobState.QUEUED:
            return Why(job=job, runs_on=await self._runs_on(job))
        if job.control is not Control.AUTOMATION:
            return Why(job=job)
        if job.not_before > self._clock():
            return Why(job=job, waiting=await self._saturated(job))
        ahead = await self._queue.ahead_of(job, now=self._clock())
        waiting = await self._readings.waiting(job.match_key)
        if waiting is None or waiting.request is None:
            return Why(job=job, waiting=waiting, position=ahead + 1)
        asked = replace(waiting.request, task_id=TaskId(job_id))
        snapshot, verdict = await self._explain(asked)
        told = verdict.without_strangers()
        return Why(
            job=job,
            waiting=waiting_for(asked, verdict),
            position=ahead + 1,
            agents=told.clients,
            begins_within_s=await self._begins_within_s(job, ahead, snapshot, told),
        )

    async def _saturated(self, job: Job) -> Waiting | None:
        """Say that it was an agent that had no room after all, where it was."""
        attempts = await self._ledger.attempts(job.job_id)
        if not attempts or not was_not_taken(attempts[-1].failure):
            return None
        return Waiting(
            reason=PoolVerdict.SATURATED.value,
            remedy=REMEDY_OF_POOL[PoolVerdict.SATURATED],
            detail=f"{attempts[-1].client_id} was chosen and had no room",
            pool=PoolVerdict.SATURATED,
        )

    async def _runs_on(self, job: Job) -> ClientId | None:
        if job.state not in (JobState.RUNNING, JobState.CANCELLING):
            return None
        attempts = await self._ledger.attempts(job.job_id)
        return attempts[-1].client_id if attempts else None

    async def _begins_within_s(
        self, job: Job, ahead: int, snapshot: Snapshot, verdict: Verdict
    ) -> float | None:
        """Estimate where jobs of this kind hold the slots, and none of another waits for them."""
        if verdict.pool not in _FOR_ROOM or len(await self._readings.unserved()) > 1:
            return None
        clients = [c for c in snapshot.clients if c.client_id in verdict.clients]
        full = [c for c in clients if verdict.clients[c.client_id] is verdict.reason]
        if not await self._are_held_by_its_kind(job, full):
            return None
        durations = await self._queue.durations_s(job, latest=_LATEST)
        return begins_within_s(durations, ahead=ahead, slots=sum(map(_slots, full)))

    async def _are_held_by_its_kind(self, job: Job, clients: Sequence[Client]) -> bool:
        held = [one for client in clients for one in client.assignments.values()]
        if len(held) > _HOLDERS or any(one.namespace != job.namespace for one in held):
            return False
        keys = await self._queue.match_keys(job.namespace, [one.task_id for one in held])
        return all(keys.get(one.task_id) == job.match_key for one in held)


def _slots(client: Client) -> int:
    capacity = client.capacity
    most = capacity.max_flows if client.client_type is ClientType.CONSOLE else capacity.max_windows
    return min(capacity.max_concurrency or 0, most)
