"""Strategies choose among idle candidates, and nothing they do takes a worker by itself."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.model import Namespace
from farm.errors import StrategyError
from farm.manager import (
    Candidate,
    CompositeStrategy,
    LeastBusyStrategy,
    RoundRobinStrategy,
    ScoringStrategy,
    WorkerContextManager,
)
from farm.manager.strategies import ask
from tests.core.test_selection import candidate, lists
from tests.manager.floor import NS, Floor

TABS = ("W1.a", "W2.a", "W3.a")


async def lent(manager: WorkerContextManager, times: int, namespace: str = NS) -> list[str]:
    """Acquire and give back so often; return what was lent."""
    found: list[str] = []
    for n in range(times):
        handle = await manager.acquire(namespace, f"t{n}")
        assert handle is not None
        found.append(handle.assignment.context_id)
        await handle.release()
    return found


class Tidy:
    """Says of what is released that it is clean, at once."""

    def __init__(self, floor: Floor) -> None:
        self.floor = floor

    async def agent(self, name: str, *tabs: str, **changes: Any) -> None:
        agent = await self.floor.agent(name, *tabs, **changes)
        receive = agent.receive

        async def tidy(message: Any) -> None:
            await receive(message)
            await agent.report()

        assert agent.client.link is not None
        await self.floor.node.attach(agent.client_id, agent.client.link, tidy)


async def test_round_robin_goes_through_the_candidates_in_order_of_client_and_context(
    floor: Floor,
) -> None:
    await Tidy(floor).agent("b", "W1.a")
    await Tidy(floor).agent("a", "W3.a", "W2.a")
    manager = floor.manager(dispatch_strategy=RoundRobinStrategy())
    assert await lent(manager, 7) == [*["W2.a", "W3.a", "W1.a"] * 2, "W2.a"]


async def test_each_namespace_takes_turns_of_its_own(floor: Floor) -> None:
    both = (NS, Namespace("other"))
    await Tidy(floor).agent("a", *TABS, namespaces=both)
    manager = floor.manager(dispatch_strategy=RoundRobinStrategy())
    assert await lent(manager, 2) == ["W1.a", "W2.a"]
    assert await lent(manager, 1, "other") == ["W1.a"]
    assert await lent(manager, 1) == ["W3.a"]


async def test_managers_over_one_registry_take_turns_together(floor: Floor) -> None:
    await Tidy(floor).agent("a", *TABS)
    one, two = (floor.manager(dispatch_strategy=RoundRobinStrategy()) for _ in range(2))
    assert await lent(one, 1) + await lent(two, 1) + await lent(one, 1) == list(TABS)


async def test_with_the_scope_of_a_process_each_manager_counts_for_itself(floor: Floor) -> None:
    await Tidy(floor).agent("a", *TABS)
    one, two = (
        floor.manager(dispatch_strategy=RoundRobinStrategy(scope="process")) for _ in range(2)
    )
    assert await lent(one, 2) == ["W1.a", "W2.a"]
    assert await lent(two, 1) == ["W1.a"]


async def test_where_the_registry_counts_no_turns_the_strategy_does() -> None:
    strategy = RoundRobinStrategy()
    candidates = [candidate("a", tab) for tab in "123"]
    chosen = [await ask(strategy, candidates, None) for _ in range(4)]
    assert [c.context_id for c in chosen if c] == ["1", "2", "3", "1"]


async def test_the_client_with_the_fewest_assignments_is_preferred(floor: Floor) -> None:
    await floor.agent("a", *TABS)
    await floor.agent("b", "X1.a", "X2.a", "X3.a")
    manager = floor.manager(dispatch_strategy=LeastBusyStrategy())
    clients: Counter[str] = Counter()
    for n in range(6):
        handle = await manager.acquire(NS, f"t{n}")
        assert handle is not None
        clients[handle.assignment.client_id] += 1
        assert abs(clients["a"] - clients["b"]) <= 1


async def test_the_highest_score_is_had_and_of_equals_the_first(floor: Floor) -> None:
    await floor.agent("a", *TABS)
    scores = {"W1.a": 1.0, "W2.a": 2.0, "W3.a": 2.0}
    strategy = ScoringStrategy(lambda c: scores[c.context_id])
    manager = floor.manager(dispatch_strategy=strategy)
    handle = await manager.acquire(NS, "t")
    assert handle is not None
    assert handle.assignment.context_id == "W2.a"


def _raises(_: Candidate) -> float:
    raise KeyError("no score for this one")


@pytest.mark.parametrize(
    ("scorer", "said"),
    [(_raises, "KeyError"), (lambda _: float("nan"), "not a number"), (lambda _: "9", "TypeError")],
    ids=["raises", "nan", "text"],
)
async def test_a_scorer_that_fails_is_named_to_its_caller_and_takes_no_worker(
    floor: Floor, scorer: Callable[[Candidate], Any], said: str
) -> None:
    await floor.agent("a", *TABS)
    manager = floor.manager(dispatch_strategy=ScoringStrategy(scorer))
    with pytest.raises(StrategyError, match=f"ScoringStrategy.*{said}") as raised:
        await manager.acquire(NS, "t")
    assert raised.value.__cause__ is not None
    assert await floor.used() == 0


class Never:
    def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
        return None


class Last:
    def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
        return candidates[-1]


class Later:
    def choose(self, candidates: Sequence[Candidate]) -> Awaitable[Candidate | None]:
        async def choice() -> Candidate:
            return candidates[-1]

        return choice()


@pytest.mark.parametrize("own", [Last(), Later()], ids=["sync", "async"])
async def test_a_callers_own_strategy_is_as_good_in_place_of_the_managers(
    floor: Floor, own: Last | Later
) -> None:
    await floor.agent("a", *TABS)
    manager = floor.manager(dispatch_strategy=Never())
    assert await manager.acquire(NS, "t") is None
    handle = await manager.acquire(NS, "t", strategy=own)
    assert handle is not None
    assert handle.assignment.context_id == "W3.a"


async def test_a_strategy_that_chooses_what_it_was_not_given_is_refused(floor: Floor) -> None:
    class Stranger:
        def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
            return candidate("elsewhere", "1")

    await floor.agent("a", *TABS)
    with pytest.raises(StrategyError, match="Stranger"):
        await floor.manager(dispatch_strategy=Stranger()).acquire(NS, "t")
    assert await floor.used() == 0


async def test_a_strategy_sees_only_idle_candidates_and_affinitys_before_the_others(
    floor: Floor,
) -> None:
    seen: list[list[str]] = []

    class Watching(Never):
        def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
            seen.append([c.context_id for c in candidates])
            return None

    await floor.agent("a", *TABS)
    await floor.agent("b", "X1.a", "X2.a")
    manager = floor.manager()
    assert await manager.acquire(NS, "first") is not None
    await manager.acquire(NS, "t", affinity_client_id="b", strategy=Watching())
    assert seen == [["X1.a", "X2.a"], ["W2.a", "W3.a"]]


async def test_who_was_not_chosen_is_said_not_to_have_been(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager(dispatch_strategy=Never())
    assert await manager.acquire(NS, "t") is None
    (miss,) = manager.misses(NS)
    assert [reason.value for reason in miss.contexts.values()] == ["not_chosen"]


@given(lists)
async def test_a_chain_takes_the_first_choice_that_is_made(candidates: list[Candidate]) -> None:
    chain = CompositeStrategy(Never(), CompositeStrategy(), Later(), RoundRobinStrategy())
    assert await ask(chain, candidates, None) == candidates[-1]
    assert await ask(CompositeStrategy(Never(), Never()), candidates, None) is None


async def test_a_chain_passes_the_turns_on_and_names_the_one_that_fails() -> None:
    async def turns(_: Namespace) -> int:
        return 1

    candidates = [candidate("a", tab) for tab in "123"]
    chosen = await ask(CompositeStrategy(Never(), RoundRobinStrategy()), candidates, turns)
    assert chosen is candidates[1]
    with pytest.raises(StrategyError, match="ScoringStrategy raised KeyError"):
        await ask(CompositeStrategy(ScoringStrategy(_raises)), candidates, turns)


BUILT_IN = [
    RoundRobinStrategy(),
    LeastBusyStrategy(),
    ScoringStrategy(lambda c: float(c.context_id)),
    CompositeStrategy(Never(), LeastBusyStrategy()),
]


@given(lists, st.sampled_from(BUILT_IN))
async def test_whatever_is_built_in_chooses_one_of_those_given(
    candidates: list[Candidate], strategy: Any
) -> None:
    assert await ask(strategy, candidates, None) in candidates
