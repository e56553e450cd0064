"""One look through the queue, and what the next may take over from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from farm.core.model import Instant, Namespace
from farm.jobs.files import JobSpec
from farm.jobs.ports import Waiting
from farm.manager.outcomes import NotAcquired
from farm.stores.records import Job

_BELIEVED_S = 5.0
"""For so long a miss is believed while nothing changes: a wake may be lost, and time helps, too."""

State = tuple[int, int]
"""Grows with every change after which somebody may take a job: the registry's, and others."""


@dataclass(slots=True, kw_only=True)
class Pass:
    """From the first job of the queue to the last that anybody can take.

    Jobs of one match key ask for the same, so of those that nobody can take one is tried. While
    nothing changes, what nobody could take nobody can take now: the pass that follows begins with
    what this one missed, so that jobs that come to a full fleet do not have all of it read again.
    """

    since: State
    """Before the first of what was missed was tried."""
    believed_until: Instant
    turned_away_at: State
    """When those below were last turned away."""
    turned_away: dict[Namespace, Job] = field(default_factory=dict)
    """The first of each namespace that was so for want of room, in the order of their turns."""
    keys: set[str] = field(default_factory=set)
    """Of the jobs that nobody could take."""
    missed: dict[str, JobSpec] = field(default_factory=dict)
    """Those of them that were tried."""
    earlier: Mapping[str, JobSpec] = field(default_factory=dict)
    """Those that were tried in the pass before."""
    for_once: bool = False
    """Something was missed for a reason that may pass while nothing changes."""
    took_over: bool = False
    """It began with what another one had missed."""

    @classmethod
    def begin(cls, last: "Pass | None", state: State, now: Instant) -> "Pass":
        """Begin one, with what the last one missed, where that is to be believed."""
        believed = last is not None and not last.for_once and now < last.believed_until
        if last is not None and believed and last.since == state:
            return replace(last, turned_away={}, took_over=True)
        return cls(
            since=state,
            believed_until=Instant(now + _BELIEVED_S),
            turned_away_at=state,
            earlier={} if last is None else last.missed,
        )

    def is_over(self, state: State) -> bool:
        """Tell whether what it took over is to be believed no more: they are to have their turn."""
        return self.took_over and self.since != state

    def spec_of(self, job: Job) -> JobSpec:
        """Return what a job asks for, which is read once while it waits."""
        known = self.missed.get(job.job_id) or self.earlier.get(job.job_id)
        return known or JobSpec.model_validate(job.spec)

    def miss(self, job: Job, spec: JobSpec, why: NotAcquired | Waiting, *, for_once: bool) -> None:
        """Note that nobody can take a job; `for_once` for a reason that may pass by itself."""
        self.keys.add(job.match_key)
        self.missed[job.job_id] = spec
        # Who may have an identity, and with which options, is not said by the registry.
        self.for_once = self.for_once or for_once or spec.identity is not None
        if isinstance(why, NotAcquired) and why.verdict.somebody:
            self.turned_away.setdefault(job.namespace, job)

    def placed(self, job: Job) -> None:
        """Note that somebody has taken one."""
        self.keys.discard(job.match_key)
        self.missed.pop(job.job_id, None)
        self.turned_away.pop(job.namespace, None)
