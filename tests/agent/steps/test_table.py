"""The table of verbs, which needs no browser."""

from agent.steps.verbs import VERBS
from farm.protocol import steps


def test_every_verb_of_the_wire_has_its_row() -> None:
    assert set(VERBS) == set(steps.VERBS.values())


def test_every_acting_verb_begins_its_effect_itself_as_late_as_it_can() -> None:
    late: set[type[steps.StepBase]] = {verb for verb, row in VERBS.items() if row.begins_effect}
    assert {verb for verb in VERBS if verb.acts} <= late
    assert steps.Fill in late
    assert steps.Type in late
