"""Jobs: what is submitted, and what is told of them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from farm.protocol.extraction import Strict
from farm.protocol.failures import Failure
from farm.protocol.resources.words import AttemptState, JobState, Resource


class Submission(Strict):
    """A job file with values for its params: the body that SDK and command line send."""

    job: str
    """The text of the file, YAML or JSON."""
    params: dict[str, Any] = Field(default_factory=dict)
    """In the place of those that the file declares."""
    content_type: str | None = None
    """What the file is; by default its first character tells."""


SUBMISSION = "application/vnd.tabfarm.submission+json"
"""The content type of a `Submission`; any other body is the file itself."""


class WaitingView(Resource):
    """Why a queued job has not begun."""

    reason: str
    """Such as `requirements_not_met` or `at_capacity`."""
    remedy: str | None = None
    """What would let it begin."""
    detail: str = ""


class ProgressView(Resource):
    """What a running job is doing now."""

    step_index: int
    """Counted from 0."""
    step: str
    """The step's name or id, or its verb."""
    verb: str
    steps: int | None = None
    """How many steps the job has."""


class ControlView(Resource):
    """Who has control of a job, where automation has not, or is about to have it no more."""

    state: Literal["pausing", "paused", "taking_over", "human"]
    """`pausing` and `taking_over` become `paused` and `human` when the step in progress is over."""
    by: str = ""
    """Who has it, or has paused; empty where a step of the job has asked for a person."""
    asked: str = ""
    """What a step of the job asks a person to do."""


class StepTiming(Resource):
    """One step of an attempt."""

    index: int
    step: str
    verb: str
    started_at: AwareDatetime
    ms: float | None = None
    """How long it took; None while it runs, or where the attempt ended inside it."""
    skipped: Failure | None = None
    """Why an optional step was passed over."""


class AttemptView(Resource):
    """One try of a job."""

    id: str
    number: int
    """Counted from 1."""
    state: AttemptState
    command_id: str = ""
    """The command that ran it; `GET /v1/commands/{command_id}` has its evidence."""
    agent: str
    window: str | None = None
    context: str
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    failure: Failure | None = None
    item_count: int
    steps: tuple[StepTiming, ...] = ()


class EffectView(Resource):
    """A change of the outside world that an attempt began, and maybe finished."""

    id: str
    attempt_id: str
    step_index: int | None = None
    effect: Literal["once", "idempotent"]
    observed: bool
    """Seen as a request of the page, not declared by a step."""
    method: str | None = None
    url: str | None = None
    begun_at: AwareDatetime
    done_at: AwareDatetime | None = None


class NoticeView(Resource):
    """What failed nothing and is worth knowing: a text cut, a request denied, a popup closed."""

    code: str
    count: int
    """How many there were; an agent tells of the first twenty of a kind in an attempt."""
    detail: str
    """Of the last one, as are the members below."""
    attempt: int | None = None
    step_index: int | None = None
    at: AwareDatetime


class JobView(Resource):
    """A job, as lists show it."""

    id: str
    name: str
    namespace: str
    state: JobState
    at_rest: bool
    """The farm does nothing more by itself: the job has ended, or is uncertain."""
    attempts: int
    """Attempts that count against `max_attempts`."""
    max_attempts: int
    cancel_requested: bool = False
    control: ControlView | None = None
    """None while automation has control."""
    idempotency_key: str | None = None
    failure: Failure | None = None
    created_at: AwareDatetime
    not_before: AwareDatetime | None = None
    """A queued job does not begin before this moment."""
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    item_count: int
    artifact_count: int
    waiting: WaitingView | None = None
    progress: ProgressView | None = None


class JobDetail(JobView):
    """A job with its history."""

    history: tuple[AttemptView, ...] = ()
    """Every attempt, in order."""
    effects: tuple[EffectView, ...] = ()
    notices: tuple[NoticeView, ...] = ()
    """One a kind, the newest first; at most 50."""


class JobAccepted(JobView):
    """The answer to a submission."""

    duplicate: bool
    """The job was there already, under the same idempotency key and with the same body."""


class JobList(Resource):
    """One page of jobs, newest first."""

    items: tuple[JobView, ...]
    next_cursor: str | None = None
    """Give it as `cursor` to get the next page; None on the last one."""


class EventView(Resource):
    """One line of a job's history."""

    seq: int
    """Grows without gaps per job, from 1."""
    type: str
    at: AwareDatetime
    attempt_id: str | None = None
    data: dict[str, Any] = Field(default={})
