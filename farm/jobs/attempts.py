"""One attempt from its start to the job's next state. Each runs as one task of the dispatcher."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from farm.clock import Clock
from farm.core.control import HELD
from farm.core.job_states import AttemptState, JobState
from farm.errors import (
    ClientAbsentError,
    ConflictError,
    NotFoundError,
    NotOwnerError,
    StaleAssignmentError,
    StoreUnavailableError,
)
from farm.jobs.deciding import Deciding
from farm.jobs.declaring import effect_of
from farm.jobs.endings import End, lost
from farm.jobs.feed import JobFeed
from farm.jobs.files import JobSpec, Place, to_plan
from farm.jobs.live import AttemptMovedError, LiveAttempt, LiveAttempts
from farm.jobs.meters import AttemptMeters
from farm.jobs.rules import AttemptRules
from farm.jobs.watching import Watch, release, renew
from farm.manager.delivery import AppNode
from farm.manager.handle import ContextHandle
from farm.protocol import messages as wire
from farm.protocol.recordings import FILES
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Attempt, Expected, Finish, Job

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_STORE_PAUSE_S = 0.5


class AttemptRunner:
    """Runs attempts on handles, and finishes them in the ledger.

    `take_back` is what `Owning` has, where others take attempts over.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        app_node: AppNode,
        live: LiveAttempts,
        feed: JobFeed,
        clock: Clock,
        new_id: Callable[[str], str],
        rules: AttemptRules,
        meters: AttemptMeters,
        on_success: Callable[[], None],
        take_back: Callable[[LiveAttempt], Awaitable[bool]] | None = None,
    ) -> None:
        self._ledger = ledger
        self._app_node = app_node
        self._live = live
        self._feed = feed
        self._clock = clock
        self._new_id = new_id
        self._rules = rules
        self._meters = meters
        self._on_success = on_success
        self._take_back = take_back
        self._watch = Watch(app_node, clock, renew_interval_s=rules.renew_interval_s)
        self._deciding = Deciding(ledger, rules)

    async def run(
        self,
        job: Job,
        spec: JobSpec,
        handle: ContextHandle,
        place: Place,
        *,
        began: Callable[[], None],
    ) -> Job | None:
        """Run a new attempt to its end; return the job as it is then, None if it was not queued.

        `began` is called when the attempt is in the ledger, and the job no longer in the queue.
        The handle is released on every path but two: if this is cancelled while the agent runs the
        attempt, or another coordinator takes that over, it goes on under its assignment, with the
        next life or there.
        """
        live = None
        try:
            attempt = await self._start(job, spec, handle)
            if attempt is None:
                return None
            began()
            live = self._take_in_hand(attempt, spec, place)
            end = await self._run_on(handle, job, attempt, spec, live)
            return await self._finish(job, attempt, live, spec, end)
        except AttemptMovedError:
            return None
        finally:
            await self._let_go(live, handle)

    async def resume(
        self,
        job: Job,
        attempt: Attempt,
        spec: JobSpec,
        handle: ContextHandle | None,
        place: Place,
    ) -> Job | None:
        """Go on with an attempt of an earlier life of the farm that its agent still holds."""
        if self._live.get(attempt.attempt_id) is not None:
            return None  # its agent has come on two links, one after the other
        live = self._take_in_hand(attempt, spec, place)
        live.sent, live.held = True, job.control in HELD
        if job.cancel_requested:
            live.cancel("cancelled")
        # Before anything is waited for: the agent's next frame may be the result.
        sent = self._app_node.expect(
            attempt.client_id,
            attempt.command_id,
            outlives_link=True,
            namespace=job.namespace,
            here=True,
        )
        try:
            # Put back for as long as an agent may be silent; it lasts as any other from here on.
            await renew(handle)
            end = await self._watch.end(sent, live, handle, spec)
            return await self._finish(job, attempt, live, spec, end)
        except AttemptMovedError:
            return None
        finally:
            self._app_node.forget(sent)
            await self._let_go(live, handle)

    async def lose(self, job: Job, attempt: Attempt, why: str) -> Job | None:
        """End an attempt of an earlier life that nobody holds any more."""
        spec = JobSpec.model_validate(job.spec)
        try:
            return await self._finish(job, attempt, None, spec, lost(why))
        except AttemptMovedError:
            return None

    async def _let_go(self, live: LiveAttempt | None, handle: ContextHandle | None) -> None:
        runs_on = live is not None and live.sent and (not live.over or live.moved.done())
        if live is not None:
            self._live.discard(live)
        if handle is not None and not runs_on:
            await release(handle)

    def _take_in_hand(self, attempt: Attempt, spec: JobSpec, place: Place) -> LiveAttempt:
        live = LiveAttempt(
            job_id=attempt.job_id,
            attempt_id=attempt.attempt_id,
            number=attempt.number,
            command_id=attempt.command_id,
            client_id=attempt.client_id,
            token=attempt.token,
            steps=len(spec.steps),
            in_flow=place is Place.FLOW,
            stored=attempt.last_seq,
        )
        self._live.add(live)
        return live

    async def _start(self, job: Job, spec: JobSpec, handle: ContextHandle) -> Attempt | None:
        held = handle.assignment
        attempt_id, command_id = self._new_id("att"), self._new_id("cmd")
        doubtful = False
        while True:
            try:
                attempt = await self._ledger.start_attempt(
                    job.job_id,
                    attempt_id=attempt_id,
                    command_id=command_id,
                    client_id=held.client_id,
                    epoch=held.epoch,
                    context_id=held.context_id,
                    token=held.token,
                    recordings=_recordings(spec),
                    now=self._clock(),
                )
                if attempt is None and doubtful:
                    # Not queued any more: by the try of which we did not learn that it went well?
                    attempt = await self._own(attempt_id)
            except StoreUnavailableError as error:
                doubtful = True
                await self._pause(job, error)
                await renew(handle)
                continue
            if attempt is not None:
                self._meters.dispatched(job.namespace)
                self._feed.publish(job.job_id, may_rest=False)
            return attempt

    async def _own(self, attempt_id: str) -> Attempt | None:
        try:
            return await self._ledger.attempt(attempt_id)
        except NotFoundError:
            return None

    async def _pause(self, job: Job, error: StoreUnavailableError) -> None:
        log.warning("attempt.store_unavailable", job_id=job.job_id, reason=error.detail)
        await asyncio.sleep(_STORE_PAUSE_S)

    async def _run_on(
        self, handle: ContextHandle, job: Job, attempt: Attempt, spec: JobSpec, live: LiveAttempt
    ) -> End:
        plan = to_plan(
            spec,
            job_id=job.job_id,
            attempt_id=attempt.attempt_id,
            attempt_number=attempt.number,
            place=Place.FLOW if live.in_flow else Place.TAB,
            egress=self._rules.egress,
            recording_max_bytes=self._rules.recording_max_bytes,
        )
        try:
            await handle.renew()  # it was taken for a moment only
            sent = await handle.send(
                attempt.command_id,
                wire.RunPlan(plan=plan, last=True),
                outlives_link=True,
                effect=effect_of(plan),
                here=True,
            )
        except (ClientAbsentError, StaleAssignmentError, StoreUnavailableError) as error:
            return lost(error.detail)  # nothing was sent
        live.sent = True
        return await self._watch.end(sent, live, handle, spec)

    async def _finish(
        self, job: Job, attempt: Attempt, live: LiveAttempt | None, spec: JobSpec, end: End
    ) -> Job | None:
        if live is not None:
            live.over = True
        finish, finished = await self._keep(job, attempt, live, spec, end)
        if end.answered and live is not None:
            await self._confirm(live)
        queued = finished is not None and finished.state is JobState.QUEUED
        self._feed.publish(job.job_id, queued=queued)
        log.info(
            "attempt.ended",
            job_id=job.job_id,
            attempt_id=attempt.attempt_id,
            state=end.state.value,
            job_state=finish.job_state.value,
            reason=end.failure.reason.value if end.failure else None,
        )
        took_s = self._clock() - attempt.started_at
        self._meters.completed(job.namespace, end.state, took_s)
        if end.state is AttemptState.SUCCEEDED:
            self._on_success()
        return finished

    async def _keep(
        self, job: Job, attempt: Attempt, live: LiveAttempt | None, spec: JobSpec, end: End
    ) -> tuple[Finish, Job | None]:
        now = self._clock()
        while True:
            try:
                finish = await self._deciding.finish(job, attempt, live, spec, end, now)
                return finish, await self._ledger.finish(finish, now=now)
            except ConflictError:
                continue  # it has said more meanwhile, such as that an effect begins
            except NotOwnerError:
                if live is None or not end.answered or not await self._has_again(job, live):
                    if live is not None:
                        live.move()
                    raise AttemptMovedError from None
            except StoreUnavailableError as error:
                # Its end is known here and nowhere else, so there is nothing to do but to go on.
                await self._pause(job, error)

    async def _has_again(self, job: Job, live: LiveAttempt) -> bool:
        """Own an attempt again whose agent has said here how it ended, and says it nowhere else."""
        while self._take_back is not None:
            try:
                return await self._take_back(live)
            except StoreUnavailableError as error:
                await self._pause(job, error)
        return False

    async def _confirm(self, live: LiveAttempt) -> None:
        try:
            await self._app_node.tell(
                live.client_id, wire.Stored(command_id=live.command_id, done=True)
            )
        except ClientAbsentError:
            return  # it sends the result again when it is back, and is told then


def _recordings(spec: JobSpec) -> tuple[Expected, ...]:
    if spec.record is None:
        return ()
    return tuple(Expected(kind.value, *FILES[kind]) for kind in spec.record.kinds)
