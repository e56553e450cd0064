"""One job, for a person."""

from datetime import datetime

from farm.cli import output
from farm.protocol.resources import JobDetail, JobView


def show_job(job: JobDetail) -> None:
    """Write what is known about a job."""
    lines = [
        ("job", job.id),
        ("name", job.name),
        ("state", in_words(job) + (" (cancel requested)" if job.cancel_requested else "")),
        ("asked", job.control and (job.control.asked or None)),
        ("attempts", f"{job.attempts} of {job.max_attempts}"),
        ("created", _moment(job.created_at)),
        ("started", _moment(job.started_at)),
        ("finished", _moment(job.finished_at)),
        ("items", job.item_count),
        ("files", job.artifact_count),
        ("waiting", job.waiting and f"{job.waiting.reason} {job.waiting.detail}".strip()),
        ("remedy", job.waiting and job.waiting.remedy),
        ("doing", job.progress and f"step {job.progress.step_index + 1}, {job.progress.step}"),
        ("failure", job.failure and f"{job.failure.reason}: {job.failure.detail}"),
    ]
    for name, value in lines:
        if value is not None:
            output.write(f"{name + ':':10} {output.plain(value)}")
    _show_attempts(job)
    _show_effects(job)
    _show_notices(job)


def in_words(job: JobView, *, short: bool = False) -> str:
    """Say a job's state, and who has control of it: `running, paused by anna`."""
    if job.control is None:
        return job.state
    words = {"taking_over": "taking over", "human": "human control"}
    control = words.get(job.control.state, job.control.state)
    by = f" by {job.control.by}" if job.control.by and not short else ""
    return f"{job.state}, {control}{by}"


def _moment(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"


def _show_attempts(job: JobDetail) -> None:
    if not job.history:
        return
    output.write("")
    output.write_table(
        ("ATTEMPT", "STATE", "AGENT", "BEGAN", "ENDED", "ITEMS", "FAILURE"),
        (
            (
                attempt.number,
                attempt.state,
                attempt.agent,
                f"{attempt.started_at:%H:%M:%S}",
                attempt.ended_at and f"{attempt.ended_at:%H:%M:%S}",
                attempt.item_count,
                attempt.failure and f"{attempt.failure.reason}: {attempt.failure.detail}",
            )
            for attempt in job.history
        ),
    )


def _show_effects(job: JobDetail) -> None:
    if not job.effects:
        return
    output.write("")
    output.write_table(
        ("EFFECT", "STEP", "REQUEST", "BEGAN", "DONE"),
        (
            (
                effect.effect + (" (seen)" if effect.observed else ""),
                None if effect.step_index is None else effect.step_index + 1,
                f"{effect.method or ''} {effect.url or ''}".strip() or None,
                f"{effect.begun_at:%H:%M:%S}",
                f"{effect.done_at:%H:%M:%S}" if effect.done_at else "not known",
            )
            for effect in job.effects
        ),
    )


def _show_notices(job: JobDetail) -> None:
    if not job.notices:
        return
    output.write("")
    output.write_table(
        ("NOTICE", "TIMES", "ATTEMPT", "STEP", "LAST"),
        (
            (
                notice.code,
                notice.count,
                notice.attempt,
                None if notice.step_index is None else notice.step_index + 1,
                notice.detail,
            )
            for notice in job.notices
        ),
    )
