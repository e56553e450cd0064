import pytest

from farm.core import verdicts
from farm.core.eligibility import Reason
from farm.core.model import ClientId
from farm.core.verdicts import Verdict

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


def test_a_namespace_is_told_nothing_of_agents_that_do_not_serve_it() -> None:
    ours = {ClientId("a"): Reason.DRAINING}
    there = Verdict(clients={**ours, ClientId("b"): Reason.OTHER_NAMESPACE}, contexts={})
    assert there.without_strangers().clients == ours


@pytest.mark.parametrize(
    ("reasons", "somebody"),
    [
        ((), False),
        ((Reason.OTHER_NAMESPACE, Reason.OTHER_QUEUE), False),
        ((Reason.OTHER_QUEUE, Reason.AT_CAPACITY), True),
        ((Reason.AT_CAPACITY,), True),
    ],
)
def test_somebody_is_there_where_one_would_do_that_is_full(
    reasons: tuple[Reason, ...], somebody: bool
) -> None:
    there = {ClientId(f"{n}"): reason for n, reason in enumerate(reasons)}
    assert Verdict(clients=there, contexts={}).somebody is somebody
