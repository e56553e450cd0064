"""Short ways to say what a test puts into a ledger."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from farm.core.job_states import AttemptState, JobState
from farm.core.model import ClientId, ContextId, Instant, Namespace, Token
from farm.stores.ports.ledger import Ledger
from farm.stores.records import (
    Artifact,
    Attempt,
    Effect,
    Evidence,
    Expected,
    Finish,
    Item,
    Job,
    NewJob,
    RecordingEnd,
    TokenRecord,
)

NS = Namespace("default")
OTHER = Namespace("other")
T0 = Instant(1_000.0)
TOKEN = Token(store_epoch=1, counter=1)


def at(seconds: float) -> Instant:
    return Instant(T0 + seconds)


def new_job(job_id: str = "j1", **changes: Any) -> NewJob:
    values: dict[str, Any] = {
        "job_id": job_id,
        "namespace": NS,
        "name": "a job",
        "spec": {"steps": [{"type": "goto", "url": "http://shop.test/"}]},
        "body_hash": "hash",
        "idempotency_key": None,
        "match_key": "any",
        "max_attempts": 2,
    }
    return NewJob(**(values | changes))


async def accepted(ledger: Ledger, job_id: str = "j1", **changes: Any) -> Job:
    job, _ = await ledger.accept(new_job(job_id, **changes), now=T0)
    return job


async def started(
    ledger: Ledger,
    job_id: str = "j1",
    attempt_id: str = "a1",
    *,
    token: Token = TOKEN,
    recordings: Sequence[Expected] = (),
    now: Instant = T0,
) -> Attempt | None:
    return await ledger.start_attempt(
        job_id,
        attempt_id=attempt_id,
        command_id=f"c-{attempt_id}",
        client_id=ClientId("agent-1"),
        epoch=3,
        context_id=ContextId("tab-1"),
        token=token,
        recordings=recordings,
        now=now,
    )


async def running(ledger: Ledger, job_id: str = "j1", attempt_id: str = "a1") -> Attempt:
    """A job accepted and begun."""
    await accepted(ledger, job_id)
    attempt = await started(ledger, job_id, attempt_id)
    assert attempt is not None
    return attempt


def finish(
    job_state: JobState = JobState.SUCCEEDED, attempt_id: str = "a1", **changes: Any
) -> Finish:
    ends = {
        JobState.SUCCEEDED: AttemptState.SUCCEEDED,
        JobState.CANCELLED: AttemptState.CANCELLED,
        JobState.TIMED_OUT: AttemptState.TIMED_OUT,
    }
    values: dict[str, Any] = {
        "attempt_id": attempt_id,
        "attempt_state": ends.get(job_state, AttemptState.FAILED),
        "job_state": job_state,
        "failure": None,
        "counts": True,
        "not_before": T0,
        "events": (("attempt_ended", {"state": job_state.value}),),
    }
    return Finish(**(values | changes))


def said(seq: int, event_type: str = "notice", **changes: Any) -> Evidence:
    return Evidence(seq=seq, event_type=event_type, at=at(seq), **changes)


def items(
    seq: int, count: int, *, first: int = 0, dataset: str = "items", attempt_id: str = "a1"
) -> Evidence:
    rows = tuple(
        Item(
            attempt_id=attempt_id,
            attempt_number=1,
            dataset=dataset,
            index=index,
            data={"title": f"{dataset} {index}"},
        )
        for index in range(first, first + count)
    )
    return said(seq, "items", items=rows, data={"count": count})


def effect(effect_id: str = "e1", attempt_id: str = "a1", **changes: Any) -> Effect:
    values: dict[str, Any] = {
        "effect_id": effect_id,
        "attempt_id": attempt_id,
        "step_index": 2,
        "effect": "once",
        "observed": False,
        "method": None,
        "url": None,
        "begun_at": at(1),
        "done_at": None,
    }
    return Effect(**(values | changes))


def artifact(name: str = "a.png", job_id: str = "j1", attempt_id: str = "a1") -> Artifact:
    return Artifact(
        job_id=job_id,
        attempt_id=attempt_id,
        name=name,
        size=12,
        sha256="0" * 64,
        media_type="image/png",
        key=f"{job_id}/{name}",
        created_at=at(4),
    )


TRACE, HAR = Expected("trace", "trace.zip", "application/zip"), Expected("har", "a.har", "a/b")


def recorded(recording: str = "trace", attempt_id: str = "a1") -> Artifact:
    one = artifact("other-name", attempt_id=attempt_id)
    return replace(one, recording=recording, size=34)


def over(seq: int, recording: str, state: Any, detail: str = "") -> Evidence:
    end = RecordingEnd(recording=recording, state=state, detail=detail)
    return said(seq, "recorded", recording_end=end)


def token_record(token_id: str = "t1", **changes: Any) -> TokenRecord:
    values: dict[str, Any] = {
        "token_id": token_id,
        "sha256": f"sha-{token_id}",
        "scope": "agent",
        "namespace": NS,
        "name": "an agent",
        "created_at": T0,
    }
    return TokenRecord(**(values | changes))
