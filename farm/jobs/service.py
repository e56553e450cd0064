"""What people do with jobs: submit, cancel, decide."""

import asyncio
from collections.abc import Mapping
from typing import Literal

import structlog
from pydantic import ValidationError

from farm.clock import Clock
from farm.core.census import Declaration
from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.core.retry import Doubt
from farm.errors import ConflictError, InvalidInputError, NotFoundError
from farm.jobs.feed import JobFeed
from farm.jobs.files import JobSpec, browser_options, canonical_hash, match_key, parse
from farm.jobs.identities import IdentityBook
from farm.jobs.ids import JobIds
from farm.jobs.interventions import Done, Interventions, Wanted
from farm.jobs.neighbours import Neighbours
from farm.jobs.ports import Dispatcher
from farm.jobs.reading import JobReading
from farm.protocol.nearest import nearest
from farm.stores.identity_records import Mode, NewBorrowing
from farm.stores.ports.deployments import QueueCatalogue
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Job, NewJob

log = structlog.get_logger(__name__)

_SMALL = 4096
"""A job file of so many bytes is checked at once; a thread would take longer."""

Decision = Literal["succeeded", "failed", "retry"]

_DECIDED: Mapping[Decision, JobState] = {
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "retry": JobState.QUEUED,
}


class JobService(JobReading):
    """What a library offers of jobs, and the HTTP API: each call is for one namespace (P16).

    Writes to the ledger first; only then do the dispatcher and the watchers hear of it.
    """

    def __init__(
        self,
        ledger: Ledger,
        identities: IdentityBook,
        dispatcher: Dispatcher,
        feed: JobFeed,
        clock: Clock,
        interventions: Interventions,
        neighbours: Neighbours | None = None,
        *,
        queues: QueueCatalogue,
    ) -> None:
        super().__init__(ledger)
        self._identities = identities
        self._dispatcher = dispatcher
        self._interventions = interventions
        self._neighbours = neighbours
        self._feed = feed
        self._clock = clock
        self._queues = queues
        self._ids = JobIds()

    async def submit(
        self,
        namespace: Namespace,
        body: bytes,
        content_type: str | None,
        params: Mapping[str, object],
        idempotency_key: str | None,
    ) -> tuple[Job, bool]:
        """Accept a job file durably; return (job, duplicate).

        Raises:
            InvalidInputError: If the file cannot be accepted; `problems` points at the places.
            TooLargeError: If it is over the limit.
            ConflictError: If the idempotency key was used with another body.
        """
        if len(body) <= _SMALL:
            spec = parse(body, content_type=content_type, params=params)
        else:
            # It takes its time to check, and the agents' heartbeats must not wait for that.
            spec = await asyncio.to_thread(parse, body, content_type=content_type, params=params)
        await self._check_queue(namespace, spec.queue)
        key = _one_key(idempotency_key, spec.idempotency_key)
        # Where the key was written makes no other body of it.
        spec = spec.model_copy(update={"idempotency_key": key})
        now = self._clock()
        job_id = self._ids.next(now)
        borrowing = await self._borrowing(job_id, namespace, spec)
        if spec.proxy is not None:
            spec = spec.model_copy(update={"proxy": spec.proxy.bare})
        job, duplicate = await self._ledger.accept(
            NewJob(
                job_id=job_id,
                namespace=namespace,
                name=spec.name,
                spec=spec.model_dump(mode="json", by_alias=True),
                body_hash=canonical_hash(spec),
                idempotency_key=key,
                match_key=match_key(spec, namespace),
                max_attempts=spec.retry.max_attempts,
                borrowing=borrowing,
            ),
            now=now,
        )
        if not duplicate:
            log.info("job.accepted", job_id=job.job_id, namespace=namespace, name=job.name)
            self._dispatcher.wake()
            self._feed.publish(job.job_id, may_rest=False, queued=True)
        return job, duplicate

    async def _check_queue(self, namespace: Namespace, name: str) -> None:
        found = await self._queues.look_up(namespace, name)
        if found.declaration is not Declaration.UNDECLARED:
            return
        detail = f"no task queue {name} is declared"
        problem = {"pointer": "/queue", "detail": detail, "nearest": found.near}
        raise InvalidInputError("the job cannot be accepted", problems=(problem,))

    async def _borrowing(
        self, job_id: str, namespace: Namespace, spec: JobSpec
    ) -> NewBorrowing | None:
        """Return what the job will have of the farm; its proxy's credentials only sealed."""
        use = spec.identity
        if use is None and spec.proxy is None:
            return None
        if use is not None:
            await self._check_identity(namespace, use.name, spec)
        return NewBorrowing(
            identity=None if use is None else use.name,
            mode=Mode.CLONE if use is None else Mode(use.mode),
            secret=self._identities.seal_for_job(job_id, spec.proxy),
        )

    async def _check_identity(self, namespace: Namespace, name: str, spec: JobSpec) -> None:
        try:
            saved = await self._identities.store.identity(namespace, name)
            browser_options(spec, saved.options)
        except NotFoundError:
            known = [one.name for one in await self._identities.store.identities(namespace)]
            detail = f"there is no identity {name}; farm identities put makes one"
            problem = {
                "pointer": "/identity/name",
                "detail": detail,
                "nearest": nearest(name, known),
            }
        except ValidationError as error:
            detail = f"with the options of the identity {name}: {error.errors()[0]['msg']}"
            problem = {"pointer": "/browser", "detail": detail}
        else:
            return
        raise InvalidInputError("the job cannot be accepted", problems=(problem,))

    def look_again(self) -> None:
        """Something has changed that queued jobs may wait for, here and at other coordinators."""
        self._dispatcher.look_anew()
        if self._neighbours is not None:
            self._neighbours.tell_anew()

    async def cancel(self, namespace: Namespace, job_id: str, *, by: str = "") -> Job:
        """Cancel a queued job at once, ask a running one to stop; `by` is who wants it.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If it has ended in another way.
        """
        job = await self._ledger.request_cancel(namespace, job_id, now=self._clock(), by=by)
        log.info("job.cancel_requested", job_id=job_id, state=job.state)
        if job.state is JobState.CANCELLING:
            self._dispatcher.cancel(job_id)
        self._feed.publish(job_id)
        return job

    async def intervene(self, namespace: Namespace, job_id: str, wanted: Wanted) -> Done:
        """Do to a job what a person wants; who wanted what, and what became of it, is recorded.

        A queued job may be paused, too: it is not begun until it is resumed.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If the job is neither queued nor running.
        """
        done = await self._in_queue(namespace, job_id, wanted)
        if done is None:
            job = await self._ledger.job(namespace, job_id)
            if job.state is not JobState.RUNNING:
                needed = "queued or running" if wanted.kind in {"pause", "resume"} else "running"
                detail = f"job {job_id} is {job.state}: for this it has to be {needed}"
                raise ConflictError(detail, job_id=job_id, state=job.state)
            done = await self._carry_out(job_id, wanted)
        log.info("job.intervention", job_id=job_id, kind=wanted.kind, outcome=done.outcome)
        said = {"text": wanted.text} if wanted.text else {}
        await self._ledger.add_event(
            job_id,
            "intervention",
            {
                "id": done.intervention_id,
                "kind": wanted.kind,
                "by": wanted.by,
                "outcome": done.outcome,
                **said,
            },
            attempt_id=done.attempt_id,
            now=self._clock(),
        )
        self._feed.publish(job_id)
        return done

    async def _carry_out(self, job_id: str, wanted: Wanted) -> Done:
        done = await self._interventions.carry_out(job_id, wanted)
        if done.attempt_id is not None or self._neighbours is None:
            return done
        attempts = await self._ledger.attempts(job_id)
        if not attempts:
            return done
        elsewhere = await self._neighbours.carry_out(attempts[-1].client_id, job_id, wanted)
        return elsewhere or done

    async def _in_queue(self, namespace: Namespace, job_id: str, wanted: Wanted) -> Done | None:
        if wanted.kind not in ("pause", "resume"):
            return None
        job = await self._ledger.hold_queued(
            namespace, job_id, paused=wanted.kind == "pause", by=wanted.by, now=self._clock()
        )
        if job is None:
            return None
        self._dispatcher.wake()
        self._feed.publish(job_id, may_rest=False, queued=True)
        return self._interventions.done_here()

    async def resolve(
        self, namespace: Namespace, job_id: str, decision: Decision, *, by: str = ""
    ) -> Job:
        """Decide what an uncertain job is; `by` is who decides.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If it is not uncertain.
        """
        to = _DECIDED[decision]
        job = await self._ledger.resolve(namespace, job_id, to, now=self._clock(), by=by)
        log.info("job.resolved", job_id=job_id, state=job.state)
        if to is JobState.QUEUED:
            self._dispatcher.wake()
        self._feed.publish(job_id, queued=to is JobState.QUEUED)
        return job

    async def retry(self, namespace: Namespace, job_id: str, *, by: str = "") -> Job:
        """Run a job again that has failed, timed out or been cancelled; `by` is who wants it.

        It is the same job, with new attempts. One that is queued or running is left as it is.

        Raises:
            NotFoundError: If there is no such job.
            ConflictError: If it has succeeded, is uncertain or is being cancelled, or if it might
                repeat an effect (P12): `reason` says so.
        """
        before = await self._ledger.job(namespace, job_id)
        doubt = Doubt(JobSpec.model_validate(before.spec).on_uncertain)
        job = await self._ledger.retry(namespace, job_id, doubt, now=self._clock(), by=by)
        log.info("job.retried", job_id=job_id, was=before.state, state=job.state)
        self._dispatcher.wake()
        self._feed.publish(job_id, may_rest=False, queued=True)
        return job


def _one_key(asked: str | None, written: str | None) -> str | None:
    """Return the idempotency key, which the request and the file may both give."""
    if asked is not None and not (1 <= len(asked) <= 200 and asked.isprintable()):
        raise InvalidInputError("an idempotency key has 1 to 200 printable characters")
    if None not in (asked, written) and asked != written:
        raise InvalidInputError(
            "the Idempotency-Key header and the body's idempotency_key differ",
            problems=({"pointer": "/idempotency_key", "detail": "differs from the header's"},),
        )
    return written if asked is None else asked
