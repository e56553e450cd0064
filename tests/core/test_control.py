"""What the ledger makes of who has control."""

from typing import get_args

import pytest

from farm.core.control import AFTER, Control, in_queue
from farm.protocol.messages import ControlMoved


def test_everything_an_attempt_tells_of_control_has_its_meaning() -> None:
    kinds = get_args(ControlMoved.model_fields["kind"].annotation)
    assert set(AFTER) == set(kinds)
    assert set(AFTER.values()) == set(Control)


@pytest.mark.parametrize(
    ("control", "becomes"),
    [
        (Control.AUTOMATION, Control.AUTOMATION),
        (Control.PAUSING, Control.PAUSED),
        (Control.PAUSED, Control.PAUSED),
        (Control.TAKING_OVER, Control.AUTOMATION),
        (Control.HUMAN, Control.AUTOMATION),
    ],
)
def test_a_pause_outlives_its_attempt_and_a_persons_control_does_not(
    control: Control, becomes: Control
) -> None:
    assert in_queue(control) is becomes
