"""The rows of the ledger, as values. Times are seconds since the Unix epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from farm.core.admission import UNBOUNDED, Bounds
from farm.core.control import Control
from farm.core.job_states import AttemptState, JobState
from farm.core.model import ClientId, ContextId, Instant, Namespace, Token
from farm.stores.identity_records import NewBorrowing


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be accepted."""

    job_id: str
    namespace: Namespace
    name: str
    spec: Mapping[str, Any]
    """The whole job as checked, in JSON terms; what is run is made from this."""
    body_hash: str
    """Over the canonical JSON of `spec`: tells a repeated body from another one."""
    idempotency_key: str | None
    match_key: str
    """Jobs with one match key ask for the same kind of worker."""
    max_attempts: int
    borrowing: NewBorrowing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as the ledger has it."""

    job_id: str
    namespace: Namespace
    name: str
    state: JobState
    spec: Mapping[str, Any]
    match_key: str
    idempotency_key: str | None
    max_attempts: int
    attempts: int
    """Attempts that count against `max_attempts`."""
    free_losses: int
    """Attempts lost before they began, which do not count (P13)."""
    cancel_requested: bool
    control: Control
    control_by: str
    """Who has it, or has paused; empty where nobody has, or a step of the job has asked."""
    asked: str
    """What a step of the job asks a person to do; empty while none does."""
    failure: Mapping[str, Any] | None
    created_at: Instant
    not_before: Instant
    """A queued job is not started before this moment."""
    started_at: Instant | None
    finished_at: Instant | None
    item_count: int
    artifact_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What waits in the queue at one moment."""

    jobs: Sequence[Job]
    """Those that are next, at most as many as were asked for; there may be more if any is."""
    next_start: Instant | None
    """When the next of those that may not start yet may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """The queued jobs of one match key."""

    match_key: str
    count: int
    jobs: Sequence[Job]
    """The oldest of them, at most as many as were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try of a job on one context."""

    attempt_id: str
    job_id: str
    number: int
    state: AttemptState
    client_id: ClientId
    epoch: int
    context_id: ContextId
    token: Token
    command_id: str
    began: bool
    """The agent said that the first step was about to begin."""
    last_seq: int
    """The number of the last entry stored."""
    failure: Mapping[str, Any] | None
    started_at: Instant
    ended_at: Instant | None
    item_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A step or observed request that changes the outside world, begun and maybe finished."""

    effect_id: str
    attempt_id: str
    step_index: int | None
    effect: str
    """`once` or `idempotent`."""
    observed: bool
    method: str | None
    url: str | None
    begun_at: Instant
    done_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One line of a job's history; `seq` grows without gaps per job, from 1."""

    job_id: str
    seq: int
    type: str
    attempt_id: str | None
    at: Instant
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One record extracted."""

    attempt_id: str
    attempt_number: int
    dataset: str
    index: int
    """Counted from 0 per data set and attempt."""
    data: Mapping[str, Any]


class ArtifactState(StrEnum):
    """Whether a file is there. What is pending or failed has no bytes in the store."""

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One file produced; the bytes are in the artifact store under `key`."""

    job_id: str
    attempt_id: str
    name: str
    """Unique in the job; one safe path segment."""
    size: int
    sha256: str
    media_type: str
    key: str
    created_at: Instant
    recording: str | None = None
    """The kind of recording it is; None for any other file."""
    state: ArtifactState = ArtifactState.READY
    detail: str = ""
    """Why it failed, or ended early."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A recording that an attempt is to hand in."""

    recording: str
    name: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingEnd:
    """What an agent says of a recording that is over."""

    recording: str
    state: Literal["ready", "discarded", "failed"]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A bearer token; only its hash is kept."""

    token_id: str
    sha256: str
    scope: str
    """`admin` or `agent`."""
    namespace: Namespace
    name: str
    created_at: Instant
    revoked_at: Instant | None = None
    bounds: Bounds = UNBOUNDED
    """Of scope `agent` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled:
    """Who has control of a job from here on; see `Job`."""

    control: Control
    by: str = ""
    asked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one entry of an attempt adds to the ledger; several may be set."""

    seq: int
    event_type: str
    at: Instant
    data: Mapping[str, Any] = field(default_factory=dict)
    began: bool = False
    effect_begun: Effect | None = None
    effect_done: str | None = None
    """The effect_id that has finished."""
    items: tuple[Item, ...] = ()
    controlled: Controlled | None = None
    recording_end: RecordingEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job with what has happened to it."""

    job: Job
    attempts: Sequence[Attempt]
    effects: Sequence[Effect]
    events: Sequence[JobEvent]
    """The first ones; `Ledger.events` has those after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How an attempt ends and what becomes of its job, decided by the core."""

    attempt_id: str
    attempt_state: AttemptState
    job_state: JobState
    failure: Mapping[str, Any] | None
    counts: bool
    """The attempt counts against `max_attempts`; else it is a free loss."""
    not_before: Instant
    """With job_state QUEUED: when the next attempt may start."""
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    """(type, data) of the job events to add, in order."""
    falls_back_to: str | None = None
    """The match key under which the job waits for a worker of another kind: then neither an attempt
    nor a loss is counted, and the attempt's items and files are dropped."""
    records: bool = False
    """The attempt was to hand in recordings: those that have not come have failed."""
    rests_on: int | None = None
    """The number of the attempt's last entry when this was decided; None if it rests on none."""
