"""What an attempt says of itself while it runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from farm.protocol.failures import Failure
from farm.protocol.messages.words import Message
from farm.protocol.recordings import RecordingKind

_LAST_MOMENT = 253_402_300_799
"""The end of the year 9999, after which no date can be written."""


class Started(Message):
    """The first step is about to begin."""

    kind: Literal["started"] = "started"
    window_id: str | None = None
    context_id: str


class StepStarted(Message):
    """A step begins."""

    kind: Literal["step_started"] = "step_started"
    index: int
    verb: str
    label: str


class StepEnded(Message):
    """A step is over; `skipped` where an optional one failed."""

    kind: Literal["step_ended"] = "step_ended"
    index: int
    ms: float
    skipped: Failure | None = None


class EffectBegun(Message):
    """A step (or an observed request) is about to change the outside world.

    A declared one is executed only after the farm has said `stored`.
    """

    kind: Literal["effect_begun"] = "effect_begun"
    effect_id: str
    """Unique in the attempt."""
    index: int | None = None
    effect: Literal["once", "idempotent"]
    observed: bool = False
    """Seen as an unsafe request of the page, not declared by a step."""
    method: str | None = None
    url: str | None = None
    """Without query and fragment."""


class EffectDone(Message):
    """The effect is known to have finished."""

    kind: Literal["effect_done"] = "effect_done"
    effect_id: str


class Items(Message):
    """Records of one page of results."""

    kind: Literal["items"] = "items"
    dataset: str
    first: int
    """The number of the first of them in the data set of this attempt, from 0."""
    items: tuple[dict[str, Any], ...]


class Notice(Message):
    """Something worth knowing that fails nothing: a denied request, a dialog, a popup closed."""

    kind: Literal["notice"] = "notice"
    code: str
    detail: str
    index: int | None = None


class ControlMoved(Message):
    """Who has control of the tab has changed, or is about to once the step in progress is over."""

    kind: Literal["pausing", "paused", "resumed", "taking_over", "taken_over", "handed_back"]
    by: str = ""
    """Who did it; empty where a step of the job did."""
    detail: str = ""
    """What the person is asked to do, where a step asks."""


class HumanAct(Message):
    """A person did something in the page while in control: what kind of thing, and never what.

    Several of one kind within a second are one.
    """

    kind: Literal["human_act"] = "human_act"
    act: Literal["pointer", "key", "wheel", "touch", "paste", "drop"]
    by: str = ""


class Recorded(Message):
    """A recording that was asked for is over."""

    kind: Literal["recorded"] = "recorded"
    recording: RecordingKind
    state: Literal["ready", "discarded", "failed"]
    """`ready`: handed in. `discarded`: there was no failure to keep it for."""
    detail: str = ""
    """Why it failed, or ended before the attempt."""


AttemptEvent = Annotated[
    Started
    | StepStarted
    | StepEnded
    | EffectBegun
    | EffectDone
    | Items
    | Notice
    | Recorded
    | ControlMoved
    | HumanAct,
    Field(discriminator="kind"),
]


class Entry(Message):
    """One event of an attempt with its number, counted from 1 without gaps."""

    seq: int = Field(ge=1)
    at: float = Field(ge=0, le=_LAST_MOMENT, allow_inf_nan=False)
    """Seconds since the Unix epoch, by the agent's clock."""
    event: AttemptEvent
