"""Rows to values, and JSON as it is stored."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from sqlalchemy import Row

from farm.core.admission import UNBOUNDED, Bounds
from farm.core.control import Control
from farm.core.job_states import AttemptState, JobState
from farm.core.model import ClientId, ContextId, Instant, Namespace, Token
from farm.stores.records import (
    Artifact,
    ArtifactState,
    Attempt,
    Effect,
    Item,
    Job,
    JobEvent,
    TokenRecord,
)

AnyRow: TypeAlias = Row[*tuple[Any, ...]]

# ASCII, since text from a page may hold halves of surrogate pairs, which no database takes.
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def to_json(value: Mapping[str, Any]) -> str:
    """Encode an object."""
    return _ENCODER.encode(value if isinstance(value, dict) else dict(value))


def to_json_or_none(value: Mapping[str, Any] | None) -> str | None:
    """Encode an object, or None as NULL."""
    return None if value is None else to_json(value)


def from_json(text: str) -> Mapping[str, Any]:
    """Decode an object that `to_json` made."""
    decoded: dict[str, Any] = json.loads(text)
    return decoded


def from_json_or_none(text: str | None) -> Mapping[str, Any] | None:
    """Decode an object, or NULL as None."""
    return None if text is None else from_json(text)


def to_job(row: AnyRow) -> Job:
    """Make a job of a row of `jobs`."""
    return Job(
        job_id=row.job_id,
        namespace=Namespace(row.namespace),
        name=row.name,
        state=JobState(row.state),
        spec=from_json(row.spec),
        match_key=row.match_key,
        idempotency_key=row.idempotency_key,
        max_attempts=row.max_attempts,
        attempts=row.attempts,
        free_losses=row.free_losses,
        cancel_requested=row.cancel_requested,
        control=Control(row.control),
        control_by=row.control_by,
        asked=row.asked,
        failure=from_json_or_none(row.failure),
        created_at=Instant(row.created_at),
        not_before=Instant(row.not_before),
        started_at=_instant(row.started_at),
        finished_at=_instant(row.finished_at),
        item_count=row.item_count,
        artifact_count=row.artifact_count,
    )


def to_attempt(row: AnyRow) -> Attempt:
    """Make an attempt of a row of `attempts` with its job's `job_id`."""
    return Attempt(
        attempt_id=row.attempt_id,
        job_id=row.job_id,
        number=row.number,
        state=AttemptState(row.state),
        client_id=ClientId(row.client_id),
        epoch=row.epoch,
        context_id=ContextId(row.context_id),
        token=Token(store_epoch=row.token_epoch, counter=row.token_counter),
        command_id=row.command_id,
        began=row.began,
        last_seq=row.last_seq,
        failure=from_json_or_none(row.failure),
        started_at=Instant(row.started_at),
        ended_at=_instant(row.ended_at),
        item_count=row.item_count,
    )


def to_effect(row: AnyRow) -> Effect:
    """Make an effect of a row of `effects` with its attempt's `attempt_id`."""
    return Effect(
        effect_id=row.effect_id,
        attempt_id=row.attempt_id,
        step_index=row.step_index,
        effect=row.effect,
        observed=row.observed,
        method=row.method,
        url=row.url,
        begun_at=Instant(row.begun_at),
        done_at=_instant(row.done_at),
    )


def to_event(job_id: str, row: AnyRow) -> JobEvent:
    """Make a line of history of a row of `events`."""
    return JobEvent(
        job_id=job_id,
        seq=row.seq,
        type=row.type,
        attempt_id=row.attempt_id,
        at=Instant(row.at),
        data=from_json(row.data),
    )


def to_item(attempt_id: str, attempt_number: int, row: AnyRow) -> Item:
    """Make an item of a row of `items`."""
    return Item(
        attempt_id=attempt_id,
        attempt_number=attempt_number,
        dataset=row.dataset,
        index=row.position,
        data=from_json(row.data),
    )


def to_artifact(row: AnyRow) -> Artifact:
    """Make an artifact of a row of `artifacts` with its `job_id` and `attempt_id`."""
    return Artifact(
        job_id=row.job_id,
        attempt_id=row.attempt_id,
        name=row.name,
        size=row.size,
        sha256=row.sha256,
        media_type=row.media_type,
        key=row.key,
        created_at=Instant(row.created_at),
        recording=row.recording,
        state=ArtifactState(row.state),
        detail=row.detail,
    )


def to_token(row: AnyRow) -> TokenRecord:
    """Make a token of a row of `tokens`."""
    return TokenRecord(
        token_id=row.token_id,
        sha256=row.sha256,
        scope=row.scope,
        namespace=Namespace(row.namespace),
        name=row.name,
        created_at=Instant(row.created_at),
        revoked_at=_instant(row.revoked_at),
        bounds=_to_bounds(row.bounds),
    )


def bounds_to_text(bounds: Bounds) -> str | None:
    """Turn the bounds of a token into a column; None where there are none."""
    sets = {
        "namespaces": bounds.namespaces,
        "task_queues": bounds.task_queues,
        "nodes": bounds.nodes,
    }
    said: dict[str, Any] = {name: sorted(one) for name, one in sets.items() if one is not None}
    if bounds.metadata is not None:
        said["metadata"] = bounds.metadata
    return to_json(said) if said else None


def _to_bounds(text: str | None) -> Bounds:
    if text is None:
        return UNBOUNDED
    said = from_json(text)
    sets = {
        name: frozenset(said[name])
        for name in ("namespaces", "task_queues", "nodes")
        if name in said
    }
    return Bounds(**sets, metadata=said.get("metadata"))


def _instant(value: float | None) -> Instant | None:
    return None if value is None else Instant(value)
