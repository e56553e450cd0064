"""What becomes of a job when one of its attempts has ended (P12, P13): a pure decision.

An effect marked `once` is never repeated unless it is known not to have happened:

- begun and not known to have finished: nobody can tell, so the job is uncertain, unless it says
  what to do then;
- finished: another attempt would do it again, so the job fails instead of being retried;
- `idempotent` effects and attempts without any may be repeated.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from farm.core.job_states import AttemptState, JobState


class Bar(StrEnum):
    """Why another attempt is not allowed."""

    EFFECT_UNCERTAIN = "effect_uncertain"
    """An effect was begun and is not known to have finished."""
    EFFECT_WOULD_REPEAT = "effect_would_repeat"
    """An effect was done, and would be done again."""


class Doubt(StrEnum):
    """What to do with a job whose effect may or may not have happened."""

    HOLD = "hold"
    FAIL = "fail"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectMark:
    """What the ledger knows of one effect."""

    once: bool
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ended."""

    state: AttemptState
    transient: bool
    """Another attempt may fare better."""
    began: bool
    """The first step was about to begin."""
    cancel_requested: bool = False
    falls_back: bool = False
    """It ended for a reason that a worker of another kind may not meet, and the job may run there.
    Its own kind would only meet it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How often a job may be tried."""

    attempts: int
    """Attempts that count, without the one that has just ended."""
    max_attempts: int
    free_losses: int
    max_free_losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What becomes of the job."""

    state: JobState
    counts: bool
    """The attempt counts against the budget."""
    why: str
    """A word for the job's history."""
    falls_back: bool = False
    """The next attempt is made by the other kind of worker, and what this one found is dropped."""


def after(
    ending: Ending, effects: Iterable[EffectMark], budget: Budget, on_uncertain: Doubt
) -> Next:
    """Decide what becomes of a job whose attempt has ended."""
    if ending.state is AttemptState.SUCCEEDED:
        return Next(state=JobState.SUCCEEDED, counts=True, why="succeeded")
    barred = bar(effects, on_uncertain)
    if barred is Bar.EFFECT_UNCERTAIN:
        held = on_uncertain is Doubt.HOLD
        state = JobState.UNCERTAIN if held else JobState.FAILED
        return Next(state=state, counts=True, why=barred)
    if ending.cancel_requested or ending.state is AttemptState.CANCELLED:
        return Next(state=JobState.CANCELLED, counts=True, why="cancelled")
    if ending.state is AttemptState.TIMED_OUT:
        return Next(state=JobState.TIMED_OUT, counts=True, why="timed_out")
    if barred is not None:
        return Next(state=JobState.FAILED, counts=True, why=barred)
    return _again(ending, budget)


def bar(effects: Iterable[EffectMark], on_uncertain: Doubt) -> Bar | None:
    """Tell what forbids another attempt after one with these effects (P12); None if nothing does.

    Those of the attempts before it need no second look: it would not have been begun.
    """
    once = [mark for mark in effects if mark.once]
    if on_uncertain is not Doubt.RETRY and any(not mark.done for mark in once):
        return Bar.EFFECT_UNCERTAIN
    if any(mark.done for mark in once):
        return Bar.EFFECT_WOULD_REPEAT
    return None


def _again(ending: Ending, budget: Budget) -> Next:
    if ending.falls_back:
        # No second try of the same, so it takes nothing of what there is of those.
        return Next(state=JobState.QUEUED, counts=False, why="falls_back", falls_back=True)
    if ending.state is AttemptState.LOST and not ending.began:
        if budget.free_losses < budget.max_free_losses:
            return Next(state=JobState.QUEUED, counts=False, why="lost_before_it_began")
        return Next(state=JobState.FAILED, counts=True, why="lost_too_often")
    if not ending.transient:
        return Next(state=JobState.FAILED, counts=True, why="permanent")
    if budget.attempts + 1 >= budget.max_attempts:
        return Next(state=JobState.FAILED, counts=True, why="attempts_exhausted")
    return Next(state=JobState.QUEUED, counts=True, why="retry")


def delay_s(job_id: str, tries: int, *, initial_s: float, max_s: float) -> float:
    """Return how long to wait before try number `tries` + 1: exponential, spread by the job's id.

    The spread is between half and the whole of the wait, and the same each time it is computed.
    """
    full = min(max_s, initial_s * 2.0 ** max(0, tries - 1))
    spread = blake2b(f"{job_id}/{tries}".encode(), digest_size=4).digest()
    return full * (0.5 + int.from_bytes(spread) / 2**33)
