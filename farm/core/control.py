"""Who has control of a job's tab, as the ledger keeps it; its agent decides, and says so."""

from collections.abc import Mapping
from enum import StrEnum


class Control(StrEnum):
    """Who has control, or is about to have it."""

    AUTOMATION = "automation"
    PAUSING = "pausing"
    """Automation, until the step in progress is over."""
    PAUSED = "paused"
    """Nobody: the next step waits; of a queued job, it is not begun."""
    TAKING_OVER = "taking_over"
    """Automation, until the step in progress is over; then a person."""
    HUMAN = "human"


HELD: frozenset[Control] = frozenset({Control.PAUSED, Control.HUMAN})
"""Where automation does nothing, and the job's time stands still."""

AFTER: Mapping[str, Control] = {
    "pausing": Control.PAUSING,
    "paused": Control.PAUSED,
    "resumed": Control.AUTOMATION,
    "taking_over": Control.TAKING_OVER,
    "taken_over": Control.HUMAN,
    "handed_back": Control.AUTOMATION,
}
"""What an attempt tells, and who has control after it."""


def in_queue(control: Control) -> Control:
    """Return what is left of it when the attempt is over and the job waits for another one.

    Who paused it still wants it to wait. What a person had in hand is gone with its page.
    """
    paused = control in (Control.PAUSING, Control.PAUSED)
    return Control.PAUSED if paused else Control.AUTOMATION
