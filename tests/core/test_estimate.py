from farm.core.estimate import begins_within_s


def test_a_job_begins_once_those_before_it_have_had_their_turns() -> None:
    took = [1.0, 10.0, 12.0]
    assert begins_within_s(took, ahead=0, slots=1) == 10
    assert begins_within_s(took, ahead=1, slots=1) == 20
    assert begins_within_s(took, ahead=1, slots=2) == 10
    assert begins_within_s(took, ahead=5, slots=2) == 30


def test_of_too_little_nothing_is_said() -> None:
    assert begins_within_s([1.0, 2.0], ahead=0, slots=1) is None
    assert begins_within_s([1.0, 2.0, 3.0], ahead=0, slots=0) is None
