"""Watches over an attempt that an agent runs: renews its lease, has it stopped, gives it up."""

import asyncio

import structlog

from farm.clock import Clock
from farm.core.model import Instant
from farm.errors import ClientAbsentError, StaleAssignmentError, StoreUnavailableError
from farm.jobs.endings import MUTE, End, ended, lost
from farm.jobs.files import JobSpec
from farm.jobs.live import AttemptMovedError, LiveAttempt
from farm.manager.awaited import SentCommand
from farm.manager.delivery import AppNode
from farm.manager.handle import ContextHandle

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_BACKSTOP_S = 60.0
"""The agent keeps the job's clock; this long after it the farm asks it to stop, and as long after
that it waits no more."""

_STORE_PAUSE_S = 0.5


class _Backstop:
    """The farm's own clock of an attempt; stands still while the agent's does."""

    def __init__(self, now: Instant, seconds: float) -> None:
        self._looked_at = now
        self._left_s = seconds

    def over_s(self, now: Instant, *, held: bool) -> float:
        """Return for how long the time has been over; negative is what is left of it."""
        if not held:
            self._left_s -= now - self._looked_at
        self._looked_at = now
        return -self._left_s


class Watch:
    """Looks after attempts, each in the task that calls it."""

    def __init__(self, app_node: AppNode, clock: Clock, *, renew_interval_s: float) -> None:
        self._app_node = app_node
        self._clock = clock
        self._interval_s = renew_interval_s

    async def end(
        self,
        sent: SentCommand,
        live: LiveAttempt,
        handle: ContextHandle | None,
        spec: JobSpec,
    ) -> End:
        """Hold the context, and pass on what is wanted, until the attempt is known to be over.

        Raises:
            AttemptMovedError: If another coordinator looks after it.
        """
        backstop = _Backstop(self._clock(), spec.timeout.job / 1000 + _BACKSTOP_S)
        told = False
        try:
            while True:
                waits: set[asyncio.Future[object]] = {sent.answer, live.lost, live.moved}  # type: ignore[arg-type]  # only waited on
                if not told:
                    waits.add(live.cancelled)  # type: ignore[arg-type]  # only waited on
                await asyncio.wait(
                    waits,
                    timeout=self._interval_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                over_s = backstop.over_s(self._clock(), held=live.held)
                if (end := _over(sent, live, over_s)) is not None:
                    return end
                if over_s > 0:
                    live.cancel("timed_out")
                if not told and live.cancelled.done():
                    told = await self._stop(live)
                await renew(handle)
        finally:
            live.acknowledged = sent.acknowledged
            self._app_node.forget(sent)

    async def _stop(self, live: LiveAttempt) -> bool:
        try:
            await self._app_node.tell(live.client_id, live.order_to_stop())
        except ClientAbsentError:
            # Asked again after the renewal interval; or the agent is gone for good.
            await asyncio.sleep(min(1.0, self._interval_s))
            return False
        return True


def _over(sent: SentCommand, live: LiveAttempt, over_s: float) -> End | None:
    if live.moved.done():
        raise AttemptMovedError
    if sent.answer.done():
        return ended(sent.answer.result())
    if live.lost.done():
        return lost(live.lost.result())
    return MUTE if over_s > _BACKSTOP_S else None


async def renew(handle: ContextHandle | None) -> None:
    """Renew what is held, if anything is; whether it still holds is not told by this."""
    if handle is None:
        return
    try:
        await handle.renew()
    except (StaleAssignmentError, StoreUnavailableError):
        # The assignment has ended under the attempt: its agent is gone or has a new browser. What
        # ends the attempt is its result or the word that it is lost, not this; nor is a store that
        # is away, as the next time comes well before the assignment's end.
        return


async def release(handle: ContextHandle) -> None:
    """Release, as soon as the store is there to be told; nobody else would before its time."""
    while True:
        try:
            await handle.release()
        except StoreUnavailableError as error:
            log.warning("release.store_unavailable", reason=error.detail)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                return  # the next life of the farm, or the sweep, ends it
            await asyncio.sleep(_STORE_PAUSE_S)
        else:
            return
