"""What becomes of a job when an attempt has ended, by what the ledger has of both."""

from farm.core import retry
from farm.core.job_states import AttemptState, JobState
from farm.core.model import Instant
from farm.core.retry import Budget, Doubt, EffectMark, Ending, Next
from farm.jobs.endings import End
from farm.jobs.files import JobSpec, Place, falls_back_to, match_key
from farm.jobs.live import LiveAttempt
from farm.jobs.rules import AttemptRules
from farm.protocol.flows import FALLS_BACK
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Attempt, Finish, Job


class Deciding:
    """Asks the ledger what has happened, and `farm.core.retry` what follows from that."""

    def __init__(self, ledger: Ledger, rules: AttemptRules) -> None:
        self._ledger = ledger
        self._rules = rules

    async def finish(
        self,
        job: Job,
        attempt: Attempt,
        live: LiveAttempt | None,
        spec: JobSpec,
        end: End,
        now: Instant,
    ) -> Finish:
        """Return what the ledger is to keep of an end.

        Raises:
            StoreUnavailableError: If the ledger can't be asked.
        """
        failure = end.failure.model_dump(mode="json", exclude_none=True) if end.failure else None
        if end.state is AttemptState.SUCCEEDED:
            return Finish(
                attempt_id=attempt.attempt_id,
                attempt_state=end.state,
                job_state=JobState.SUCCEEDED,
                failure=None,
                counts=True,
                not_before=now,
                events=(("attempt_ended", {"state": end.state.value}),),
                records=spec.record is not None,
            )
        # The ledger is asked anew: the attempt may have begun, the job have been cancelled, since.
        attempt = await self._ledger.attempt(attempt.attempt_id)
        job = await self._ledger.job(job.namespace, job.job_id)
        effects = await self._ledger.effects(job.job_id, attempt_id=attempt.attempt_id)
        decision = retry.after(
            Ending(
                state=end.state,
                transient=end.transient,
                # What an agent took up counts as begun, though it had no time to say so.
                began=attempt.began or (live is not None and live.acknowledged),
                cancel_requested=job.cancel_requested,
                falls_back=_falls_back(spec, live, end),
            ),
            [EffectMark(once=e.effect == "once", done=e.done_at is not None) for e in effects],
            Budget(
                attempts=job.attempts,
                max_attempts=job.max_attempts,
                free_losses=job.free_losses,
                max_free_losses=self._rules.max_free_losses,
            ),
            Doubt(spec.on_uncertain),
        )
        if failure is not None and live is not None and live.progress is not None:
            failure = {
                "step_index": live.progress.step_index,
                "step": live.progress.step,
                **failure,
            }
        wait_s = retry.delay_s(
            job.job_id,
            job.attempts + job.free_losses + 1,
            initial_s=self._rules.retry_initial_s,
            max_s=self._rules.retry_max_s,
        )
        return Finish(
            attempt_id=attempt.attempt_id,
            attempt_state=end.state,
            job_state=decision.state,
            failure=failure,
            counts=decision.counts,
            not_before=Instant(now + wait_s) if _waits(decision) else now,
            events=(
                (
                    "attempt_ended",
                    {"state": end.state.value, "next": decision.why, "failure": failure},
                ),
            ),
            falls_back_to=(
                match_key(spec, job.namespace, Place.TAB) if decision.falls_back else None
            ),
            records=spec.record is not None,
            rests_on=attempt.last_seq,
        )


def _falls_back(spec: JobSpec, live: LiveAttempt | None, end: End) -> bool:
    """Tell whether an attempt failed in a flow, and a tab may not meet what it met."""
    if live is None or not live.in_flow or end.failure is None:
        return False
    return end.failure.reason in FALLS_BACK and falls_back_to(spec, Place.FLOW) is not None


def _waits(decision: Next) -> bool:
    return decision.state is JobState.QUEUED and not decision.falls_back
