"""The rules behind the built-in strategies."""

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from farm.core import decide, selection
from farm.core.decide import Candidate
from farm.core.model import ClientId, Context, ContextId, Request, TaskId
from tests.core.test_decide import _assignment, client, request


def candidate(client_id: str, context_id: str, *, busy: int = 0, task: str = "t") -> Candidate:
    held = {ContextId(f"x{n}"): _assignment(client_id, f"x{n}") for n in range(busy)}
    return Candidate(
        client_id=ClientId(client_id),
        context_id=ContextId(context_id),
        request=replace(request(), task_id=TaskId(task)),
        client=client(client_id=ClientId(client_id), assignments=held),
        context=Context(context_id=ContextId(context_id)),
    )


lists = st.lists(
    st.builds(candidate, st.sampled_from("abc"), st.sampled_from("123"), busy=st.integers(0, 2)),
    min_size=1,
    unique_by=lambda c: c.key,
)


@given(lists, st.integers(0, 1_000))
def test_in_as_many_turns_as_there_are_candidates_each_has_one(
    candidates: list[Candidate], first: int
) -> None:
    n = len(candidates)
    chosen = [selection.in_turn(candidates, turn).key for turn in range(first, first + n)]
    assert sorted(chosen) == sorted(c.key for c in candidates)
    in_order = [selection.in_turn(candidates, turn).key for turn in range(n)]
    assert in_order == sorted(in_order)


@given(lists, st.randoms())
def test_the_least_busy_is_the_same_in_whatever_order_they_are_given(
    candidates: list[Candidate], chance: Random
) -> None:
    chosen = selection.least_busy(candidates)
    assert len(chosen.client.assignments) == min(len(c.client.assignments) for c in candidates)
    shuffled = list(candidates)
    chance.shuffle(shuffled)
    assert selection.least_busy(shuffled).key == chosen.key


def test_equally_busy_clients_are_chosen_equally_often_however_many_contexts_they_have() -> None:
    chosen = Counter(
        selection.least_busy(
            [candidate("a", "1", task=t), candidate("b", "1", task=t), candidate("b", "2", task=t)]
        ).client_id
        for t in map(str, range(1_000))
    )
    assert 430 < chosen[ClientId("a")] < 570


def test_candidates_are_told_apart_by_their_ids_alone() -> None:
    one, same = candidate("a", "1", busy=1), candidate("a", "1", busy=2)
    assert one == same
    assert len({one, same}) == 1
    assert decide.Candidate is Candidate
    assert isinstance(one.request, Request)
