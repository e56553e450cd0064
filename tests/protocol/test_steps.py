from typing import get_args

from farm.protocol.steps import VERBS, Step


def test_every_step_is_in_the_union_and_has_the_name_it_is_written_by() -> None:
    union, *_ = get_args(Step)
    assert set(VERBS.values()) == set(get_args(union))
    assert {model.model_fields["type"].default: model for model in VERBS.values()} == VERBS
