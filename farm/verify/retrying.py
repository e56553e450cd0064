"""Point 9: a job of two attempts, of which the second must not be followed by a third."""

import asyncio
import json
from typing import Any

from farm.core.commands import Answer
from farm.core.job_states import AttemptState, JobState
from farm.errors import CollaboratorMissingError, NotFoundError
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from farm.stores.records import Attempt
from farm.verify.client import ProbeClient
from farm.verify.outcomes import Seen, UnprovenError, demand
from farm.verify.stage import VERIFY, Stage

_PATIENCE_S = 30.0
_LOOK_S = 0.05
_MAX_ATTEMPTS = 3
"""One more than there are to be: what stops the job is not that its attempts are used up."""
_EFFECT = "order"


async def a_retry_waits_for_evidence(stage: Stage, seen: Seen) -> None:
    """Prove point 9: what failed cleanly is tried again, what may have happened once is not."""
    probe = await stage.probe(9, "worker", tabs=1)
    body = json.dumps(_job(stage, probe)).encode()
    job, _ = await stage.farm.jobs.submit(VERIFY, body, "application/json", {}, None)
    first = await _run(probe)
    await _said(probe, first, _started(first))
    states = [attempt.state for attempt in await stage.farm.ledger.attempts(job.job_id)]
    demand(states == [AttemptState.RUNNING], f"while one attempt runs the attempts are {states}")
    demand(probe.runs.empty(), "a second attempt was sent while the first was running")
    await probe.say(_failed(first))

    second = await _run(probe)
    attempts = await stage.farm.ledger.attempts(job.job_id)
    demand(len(attempts) == 2, f"there are {len(attempts)} attempts, not 2")
    ended = attempts[0].ended_at
    demand(
        attempts[0].state is AttemptState.FAILED
        and ended is not None
        and ended <= attempts[1].started_at,
        "the second attempt began before the first was known to have ended",
    )
    seen(
        f"job {job.job_id}: attempt 1 failed before any effect, its page gone; attempt 2 began"
        f" {attempts[1].started_at - (ended or 0):.1f} s after that was known"
    )
    await _said(probe, second, _started(second), _begun())
    await probe.begin_new_life()
    lost = await _ended(stage, job.job_id)
    found = await stage.farm.ledger.job(VERIFY, job.job_id)
    demand(lost.state is AttemptState.LOST, f"attempt 2, whose browser ended, is {lost.state}")
    demand(
        found.state is JobState.UNCERTAIN,
        f"a job whose effect `once` began and is not known to be done is {found.state}",
    )
    effects = await stage.farm.ledger.effects(job.job_id, attempt_id=lost.attempt_id)
    demand(
        [(e.effect_id, e.done_at) for e in effects] == [(_EFFECT, None)],
        f"the ledger does not have the effect as begun: {effects}",
    )
    demand(probe.runs.empty(), "the effect was ordered a second time")
    seen(
        f"attempt 2 was lost after its effect `once` began: the job is {found.state}, with"
        f" {found.attempts} of {found.max_attempts} attempts used, and was not tried again"
    )
    await _evidence(stage, second, seen)


def _job(stage: Stage, probe: ProbeClient) -> dict[str, Any]:
    return {
        "name": "farm verify",
        "timeout": {"job": "45s"},
        "retry": {"max_attempts": _MAX_ATTEMPTS},
        "on_uncertain": "hold",
        "requires": {"metadata": dict(stage.only(probe)), "client_type": "browser"},
        "steps": [
            {"goto": "https://farm-verify.invalid/"},
            {"click": {"selector": "#order", "effect": "once"}},
        ],
    }


async def _run(probe: ProbeClient) -> wire.Command:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            run = await probe.runs.get()
    except TimeoutError:
        raise UnprovenError(f"the farm sent no run within {_PATIENCE_S:g} s") from None
    await probe.say(wire.Ack(command_id=run.command_id))
    return run


def _attempt_id(run: wire.Command) -> str:
    if not isinstance(run.body, wire.RunPlan):
        raise TypeError("only runs are kept with the runs")
    return run.body.plan.attempt_id


def _started(run: wire.Command) -> wire.Started:
    return wire.Started(context_id=str(run.context_id))


def _begun() -> wire.EffectBegun:
    return wire.EffectBegun(effect_id=_EFFECT, index=1, effect="once")


async def _said(probe: ProbeClient, run: wire.Command, *events: wire.AttemptEvent) -> None:
    """Tell what happened, and return when the farm has stored it."""
    if run.token is None:
        raise UnprovenError("the run came without a token")
    entries = tuple(
        wire.Entry(seq=number, at=0.0, event=event) for number, event in enumerate(events, start=1)
    )
    await probe.say(
        wire.Events(
            command_id=run.command_id,
            attempt_id=_attempt_id(run),
            token=run.token,
            entries=entries,
        )
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await probe.until(lambda: probe.stored(run.command_id) >= len(entries))
    except TimeoutError:
        raise UnprovenError("the farm did not confirm what happened in an attempt") from None


def _failed(run: wire.Command) -> wire.Result:
    return wire.Result(
        command_id=run.command_id,
        attempt_id=_attempt_id(run),
        token=run.token,
        seq=1,
        outcome="failed",
        failure=Failure(reason=Reason.NAVIGATION_FAILED, detail="nobody is there", step_index=0),
        page_gone=True,
    )


async def _ended(stage: Stage, job_id: str) -> Attempt:
    """Return the second attempt when it has ended."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE_S
    while (last := (await stage.farm.ledger.attempts(job_id))[1]).state is AttemptState.RUNNING:
        if loop.time() > until:
            raise UnprovenError("the farm did not take the attempt for lost")
        await asyncio.sleep(_LOOK_S)
    return last


async def _evidence(stage: Stage, run: wire.Command, seen: Seen) -> None:
    try:
        known = await stage.farm.app_node.answers(VERIFY, run.command_id)
    except (CollaboratorMissingError, NotFoundError) as error:
        raise UnprovenError(f"the evidence of the run: {error.detail}") from None
    demand(known.send_attempted is Answer.YES, "the evidence does not say that a run was sent")
    demand(known.result_retained is Answer.NO, "the evidence has a result that never came")
    demand(known.repeat_is_safe is Answer.NO, "the evidence takes it for safe to repeat")
    seen(
        f"its command: send attempted {known.send_attempted}, acknowledged {known.acknowledged},"
        f" result {known.result_retained}, safe to repeat {known.repeat_is_safe}"
    )
