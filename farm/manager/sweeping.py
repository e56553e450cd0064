"""The timeout of assignments: the sweep releases what is over, and does nothing else (P9)."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from farm.core.model import Assignment, Instant
from farm.manager.loops import every
from farm.stores.ports.contexts import AssignmentRegistry, BulkTimeout

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def release_expired(
    registry: AssignmentRegistry, clock: Callable[[], Instant]
) -> tuple[Assignment, ...]:
    """End the assignments whose time is over, whatever their namespace; return them.

    In one step where the registry offers one. Else one after the other, each looked at again just
    before: what is renewed between that look and the release is lost, which is why the farm's own
    registries all offer the one step.
    """
    if isinstance(registry, BulkTimeout):
        return await registry.release_expired(now=clock())
    ended = []
    for held in await _over(registry, clock()):
        still = {(a.client_id, a.context_id): a for a in await _over(registry, clock())}
        again = still.get((held.client_id, held.context_id))
        if again is None or again.token != held.token:
            continue
        if await registry.release(held.client_id, held.context_id, held.token):
            ended.append(held)
    return tuple(ended)


async def _over(registry: AssignmentRegistry, now: Instant) -> list[Assignment]:
    snapshot = await registry.snapshot(now=now)
    return [a for c in snapshot.clients for a in c.assignments.values() if a.expires_at <= now]


class Sweeper:
    """A loop with a life of its own, from `start` to `stop`."""

    def __init__(self, step: Callable[[], Awaitable[object]], interval_s: float) -> None:
        self._step = step
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Tell whether it sweeps."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin, if it does not sweep already."""
        if self.running:
            return
        # The one task that has no group: its life is from a call of the host's to another, which
        # no block encloses. It has an owner all the same: `stop` waits for it and raises what broke
        # it, and a crash is logged at once.
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(
            every(self._interval_s, self._step, name="sweep expired"), name="sweep expired"
        )
        self._task.add_done_callback(_log_crash)

    async def stop(self) -> None:
        """End, if it sweeps; return when it has. Raises what it has broken on."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


def _log_crash(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("sweeper.crashed", error=repr(error))
