"""One pool of a namespace, as a snapshot has it."""

from dataclasses import dataclass, replace

from farm.core import decide
from farm.core.census import Declared, PoolVerdict
from farm.core.eligibility import is_present
from farm.core.model import Client, Namespace, Request, Snapshot, TaskId
from farm.jobs.explaining import waiting_for
from farm.jobs.ports import Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A namespace and a task queue, with what is there."""

    task_queue: str
    clients: tuple[Client, ...]
    """Those that are present."""
    slots: int
    slots_used: int
    slots_free: int
    """Of those that take work."""
    queued: int
    """Jobs that may begin."""
    waiting: Waiting | None
    """What a request without any demand would be told; None where it would be served."""


def pool_of(
    namespace: Namespace, task_queue: str, queue: Declared, snapshot: Snapshot, queued: int
) -> Pool:
    """Look at one pool."""
    request = Request(
        namespace=namespace, task_id=TaskId("pool"), task_queue=task_queue, auto_provision=True
    )
    told = waiting_for(request, replace(decide.explain(request, snapshot), queue=queue))
    there = tuple(
        client
        for client in snapshot.clients
        if namespace in client.namespaces
        and client.task_queue == task_queue
        and is_present(client, now=snapshot.taken_at, window_s=snapshot.presence_window_s)
    )
    return Pool(
        task_queue=task_queue,
        clients=there,
        slots=sum(client.capacity.max_concurrency or 0 for client in there),
        slots_used=sum(client.used_slots() for client in there),
        slots_free=sum(_free(client) for client in there),
        queued=queued,
        waiting=None if told.pool is PoolVerdict.SERVED_RACED else told,
    )


def _free(client: Client) -> int:
    if client.draining or client.excluded is not None:
        return 0
    return max(0, (client.capacity.max_concurrency or 0) - client.used_slots())
