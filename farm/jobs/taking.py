"""Takes a context for a job, where it is to run or where else it may."""

from collections.abc import Mapping
from dataclasses import replace

import structlog

from farm.clock import Clock
from farm.core.decide import Verdict
from farm.core.eligibility import Reason
from farm.core.model import ClientId, Instant, Request
from farm.errors import StoreUnavailableError
from farm.jobs.files import JobSpec, Place, falls_back_to, place_of
from farm.jobs.placement import request_for
from farm.manager.manager import Acquired, Creation, NotAcquired, WorkerContextManager
from farm.protocol.plan import BrowserOptions
from farm.stores.records import Job

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_REST_S = 1.0
"""Nothing is created for so long on an agent on which that has just failed."""

_UNBEGUN_S = 30.0
"""For so long a context is held for an attempt that has not begun. Who takes it may die."""

Taken = Acquired | Creation
"""A context that is held, or the room for one."""


class Taking:
    """Asks the manager.

    Args:
        manager: Who lends the contexts.
        clock: The time.
        coordinator: Only agents that are linked to it; None is any.
    """

    def __init__(
        self, manager: WorkerContextManager, clock: Clock, coordinator: str | None
    ) -> None:
        self._manager = manager
        self._clock = clock
        self._coordinator = coordinator
        self._resting: dict[ClientId, Instant] = {}

    @property
    def resting(self) -> Mapping[ClientId, Instant]:
        """Agents on which nothing is created before the moment."""
        return self._resting

    def let_rested(self, now: Instant) -> None:
        """Let agents that have rested be created on again."""
        self._resting = {c: until for c, until in self._resting.items() if until > now}

    async def begin(
        self, job: Job, spec: JobSpec, options: BrowserOptions
    ) -> tuple[Taken | NotAcquired, Request, Place]:
        """Begin where the job is to run; or where else it may, if nobody is there for that.

        Returns:
            What was taken, what was asked for, and where that is.
        """
        place = place_of(spec, job.namespace, job.match_key)
        begun, asked = await self._begin(job, spec, place, options)
        other = falls_back_to(spec, place)
        if other is None or not isinstance(begun, NotAcquired) or begun.verdict.somebody:
            return begun, asked, place
        elsewhere, instead = await self._begin(job, spec, other, options)
        nobody = isinstance(elsewhere, NotAcquired) and not elsewhere.verdict.somebody
        return (begun, asked, place) if nobody else (elsewhere, instead, other)

    async def _begin(
        self, job: Job, spec: JobSpec, place: Place, options: BrowserOptions
    ) -> tuple[Taken | NotAcquired, Request]:
        request = request_for(job.job_id, job.namespace, spec, place, options)
        asked = replace(request, through=self._coordinator)
        begun = await self._manager.begin(
            asked, options=options, create_not_on=self._resting, timeout_s=_UNBEGUN_S
        )
        return begun, asked

    async def complete(self, begun: Taken) -> Acquired | NotAcquired:
        """Have what was begun, for as long as is usual once it is renewed.

        Where it can't be created, its agent rests for a moment.
        """
        held = begun if isinstance(begun, Acquired) else await self._manager.complete(begun)
        if isinstance(held, NotAcquired):
            self._rest(held.verdict)
            return held
        return Acquired(handle=self._manager.handle(held.handle.assignment))

    def _rest(self, verdict: Verdict) -> None:
        if verdict.reason is Reason.CREATION_FAILED:
            until = Instant(self._clock() + _REST_S)
            self._resting = {**self._resting, **dict.fromkeys(verdict.clients, until)}

    async def give_back(self, begun: Taken) -> None:
        """Give back what nothing has come of."""
        try:
            if isinstance(begun, Creation):
                await self._manager.abandon(begun)
            else:
                await begun.handle.release()
        except StoreUnavailableError as error:
            log.warning("give_back.skipped", reason=error.detail)  # its time ends it
