"""HTTP bodies: what `/v1` takes and gives. Times are RFC 3339 with an offset."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel

from farm.protocol.extraction import Strict
from farm.protocol.failures import Failure

JobState = Literal[
    "queued",
    "running",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
    "timed_out",
    "uncertain",
]
AttemptState = Literal["running", "succeeded", "failed", "cancelled", "timed_out", "lost"]
Scope = Literal["admin", "agent"]


class Resource(BaseModel):
    """Something the farm tells; unknown keys are ignored, so that older clients survive."""

    model_config = ConfigDict(frozen=True, extra="ignore")


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


class InterventionBody(Strict):
    """Who intervenes; the body may be left out."""

    by: str | None = Field(default=None, min_length=1, max_length=100)
    """A name for people; by default that of the token."""


class MessageBody(InterventionBody):
    """What people at the browser are to read."""

    text: str = Field(min_length=1, max_length=500)


class InterventionView(Resource):
    """What became of an intervention that was applied."""

    id: str
    kind: Literal["pause", "resume", "message", "takeover", "hand_back"]
    by: str
    outcome: Literal["applied"] = "applied"
    job: JobView
    """As it is now; a pause or a take-over takes effect when the step in progress is over."""


class ResolveBody(Strict):
    """What an uncertain job is decided to be."""

    as_: Literal["succeeded", "failed", "retry"] = Field(alias="as")


class EventView(Resource):
    """One line of a job's history."""

    seq: int
    """Grows without gaps per job, from 1."""
    type: str
    at: AwareDatetime
    attempt_id: str | None = None
    data: dict[str, Any] = {}


class ArtifactView(Resource):
    """One file a job produced."""

    name: str
    """Unique in the job; one safe path segment."""
    size: int
    sha256: str
    media_type: str
    attempt_id: str
    created_at: AwareDatetime
    recording: str | None = None
    """The kind of recording it is; None for a file that a step or a failure has left."""
    state: Literal["pending", "ready", "failed"] = "ready"
    """Only what is ready can be fetched; a recording is pending while its attempt runs."""
    detail: str = ""
    """Why a recording failed, or ended before its attempt did."""


class ArtifactList(Resource):
    """The files of a job, in order."""

    items: tuple[ArtifactView, ...]


class ArtifactStored(Resource):
    """The answer to an upload."""

    name: str
    """As kept; differs from the one asked for where that was unsafe or taken."""


class FileStored(Resource):
    """A file that jobs may give to pages."""

    reference: str
    """What the step `upload` names it by: `file_…/name`."""
    name: str
    """As kept; differs from the one asked for where that was unsafe."""
    size: int
    sha256: str


class CapacityView(Resource):
    """What an agent may hold."""

    max_concurrency: int | None = None
    max_windows: int
    max_tabs_per_window: int
    max_flows: int


class AgentView(Resource):
    """One agent."""

    client_id: str
    client_type: str
    present: bool
    """Heard of lately, on a link that is open."""
    draining: bool
    """It takes nothing new."""
    draining_because: str | None = None
    """Why, such as `low_disk: …`; null where it has been asked to, or does not say."""
    epoch: int
    browser: str | None = None
    namespaces: tuple[str, ...]
    metadata: dict[str, Any]
    capacity: CapacityView
    used_slots: int
    windows: int
    prepared: int = 0
    """How many of the windows were opened before anybody asked, and wait to be lent."""
    contexts: int
    seen_at: AwareDatetime


class AgentList(Resource):
    """The agents, by client_id."""

    items: tuple[AgentView, ...]


class AssignmentView(Resource):
    """What a worker has been lent to."""

    task_id: str
    since: AwareDatetime
    expires_at: AwareDatetime
    job_id: str | None = None
    """None where the task is not a job's attempt."""
    job: str | None = None
    """The job's name."""
    attempt: int | None = None
    progress: ProgressView | None = None


class WorkerView(Resource):
    """One context: a place that work can run."""

    label: str
    """The name people see on it and in logs, such as `W1 · T1`."""
    context_id: str
    client_id: str
    window_id: str | None = None
    owner: str
    """`worker`, or `user` for what a person has opened outside all workers' windows."""
    state: str
    clean: bool
    live: str | None = None
    """What it is watched as, at `/v1/live/{live}`, while it is lent."""
    opener: str | None = None
    """The context whose task has opened it, and with which it goes."""
    assignment: AssignmentView | None = None


class LiveLinkCreate(Strict):
    """What is to be watched, and how."""

    context: str | None = Field(default=None, max_length=512)
    """The `live` of a worker; None is the wall of all."""
    mode: Literal["view", "control"] = "view"
    name: str = Field(default="viewer", pattern=r"^[\w .-]{1,40}$")
    """What others call whoever comes by this link; it is completed, so that no two have one."""
    lasts_s: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    """None is as the farm is set."""


class LiveLinkCreated(Resource):
    """A link, which is shown this once."""

    path: str
    """To be opened with a browser at the farm's address; secret until `expires_at`."""
    context: str | None
    mode: str
    name: str
    expires_at: AwareDatetime


class WorkerList(Resource):
    """The contexts, by agent."""

    items: tuple[WorkerView, ...]


class BoundsView(Resource):
    """Where a window is on its screen, in pixels."""

    left: int
    top: int
    width: int
    height: int


class WindowView(Resource):
    """One browser window."""

    window_id: str
    client_id: str
    identity: str | None = None
    """None is anonymous."""
    owner: str
    """`worker`, or `user` for one that a person has opened."""
    bounds: BoundsView | None = None
    """Where it is known: in browsers with windows."""
    prepared: bool = False
    """Opened before anybody asked, and not lent yet."""
    contexts: tuple[str, ...]


class WindowList(Resource):
    """The windows, by agent."""

    items: tuple[WindowView, ...]


class MissView(Resource):
    """Why a task was last given no worker."""

    task_id: str
    at: AwareDatetime
    times: int
    """How often in a row, since it is remembered."""
    reason: str
    """What is nearest to a success, such as `at_capacity`; `no_agent` where nobody is there."""
    remedy: str
    counts: dict[str, int]
    """How many agents had which reason."""
    clients: dict[str, str]
    """The reason of each agent, of the first hundred."""


class MissList(Resource):
    """The tasks that were last given no worker, the latest first."""

    items: tuple[MissView, ...]


class TokenCreate(Strict):
    """Ask for a token."""

    scope: Scope
    name: str = Field(default="", max_length=100)


class TokenCreated(Resource):
    """A new token; `token` is shown this once and kept nowhere."""

    id: str
    scope: Scope
    name: str
    namespace: str
    created_at: AwareDatetime
    token: str


class ReadyView(Resource):
    """The self-test's last outcome."""

    ready: bool
    reason: str | None = None
    """Told only to those who have a token."""
    checked_at: AwareDatetime | None = None


PointOutcome = Literal["pass", "fail", "not_proven"]


class PointView(Resource):
    """One point of a verification, settled."""

    kind: Literal["point"] = "point"
    number: int
    """From 1 to 9, as the list of what a deployment's verification proves has them."""
    claim: str
    outcome: PointOutcome
    reason: str | None = None
    """Why it does not pass."""
    evidence: tuple[str, ...]
    """What was done and seen, in order."""
    seconds: float


class VerifyEnd(Resource):
    """The last line of a verification."""

    kind: Literal["end"] = "end"
    left_behind: tuple[str, ...]
    """What could not be taken away again; empty where all was."""
    seconds: float


class VerifyLine(RootModel[PointView | VerifyEnd]):
    """One line of what `POST /v1/verify` answers."""

    root: PointView | VerifyEnd = Field(discriminator="kind")
