"""What must be so when the storm is over."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from farm.protocol.resources import AgentView, JobDetail
from tests.simulated.site import Done, twice

_ENDED = ("succeeded", "failed", "timed_out", "cancelled")
ONCE = "once"
"""How the names of jobs begin whose effect must not happen twice."""


def flaws(
    jobs: Sequence[JobDetail], expected: int, done: Sequence[Done], agents: Sequence[AgentView]
) -> list[str]:
    """Return everything that is not as it must be."""
    return [
        *_jobs(jobs, expected),
        *_effects(jobs, done),
        *(f"{a.client_id} has lost {a.used_slots} slots" for a in agents if a.used_slots != 0),
    ]


def _jobs(jobs: Sequence[JobDetail], expected: int) -> Iterable[str]:
    if len({job.id for job in jobs}) != expected:
        yield f"{len(jobs)} jobs are there, and {expected} were accepted"
    for name, times in Counter(job.name for job in jobs).items():
        if times > 1:
            yield f"{name} was accepted {times} times"
    for job in jobs:
        yield from _job(job)


def _job(job: JobDetail) -> Iterable[str]:
    if job.state == "uncertain":
        if not any(e.effect == "once" and e.done_at is None for e in job.effects):
            yield f"{job.name} is uncertain, and no effect of it is"
    elif job.state not in _ENDED:
        yield f"{job.name} is {job.state}"
    if running := [attempt.id for attempt in job.history if attempt.ended_at is None]:
        yield f"{job.name} is {job.state}, and these attempts run: {running}"


def _effects(jobs: Sequence[JobDetail], done: Sequence[Done]) -> Iterable[str]:
    by_id = {job.id: job for job in jobs}
    happened = Counter(one.job for one in done)
    for (job_id, step), times in twice(list(done)).items():
        job = by_id.get(job_id)
        if job is None or job.name.startswith(ONCE):
            yield f"step {step} of {job and job.name} was done {times} times"
    for job in jobs:
        if job.state == "succeeded" and not happened[job.id]:
            yield f"{job.name} succeeded, and nothing was done"


def left_over(folders: Iterable[Path]) -> list[str]:
    """Return the command lines of processes that name one of these folders."""
    names = [str(folder) for folder in folders]
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            line = " ".join(one.cmdline())
            said = f"{line} {one.environ().get('TMPDIR', '')}"
            if any(name in said for name in names) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(line)
    return found


def impossible(agents: Iterable[AgentView], metrics: str) -> list[str]:
    """Return what was seen at one moment that can never be."""
    found = [
        f"{agent.client_id} uses {agent.used_slots} of {agent.capacity.max_concurrency} slots"
        for agent in agents
        if not 0 <= agent.used_slots <= (agent.capacity.max_concurrency or 0)
    ]
    lines = (line for line in metrics.splitlines() if not line.startswith("#"))
    return [*found, *(line for line in lines if line.rpartition(" ")[2].startswith("-"))]
