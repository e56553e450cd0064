from farm.core import verdicts
from farm.core.eligibility import Reason

OF_CONTEXTS = {
    Reason.USER_OWNED,
    Reason.ASSIGNED,
    Reason.NOT_READY,
    Reason.NOT_CLEAN,
    Reason.OTHER_WINDOW,
    Reason.MUST_BE_NEW,
    Reason.NOT_CHOSEN,
}
"""Why a tab was passed over; every other reason is one for a whole client, or for both."""


def test_every_reason_of_a_client_has_a_rank_and_a_remedy() -> None:
    ranked = verdicts._NEAREST
    assert len(set(ranked)) == len(ranked)
    assert set(ranked) == set(Reason) - OF_CONTEXTS
    assert set(verdicts._REMEDY) == {*ranked, None}
    assert set(verdicts.BECAUSE) == set(ranked)
