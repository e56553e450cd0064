from typing import Any

import pytest

from farm.core.admission import Bounds, Claim, Enrolment, RefusedFor, reject
from farm.core.model import ClientId, Namespace

SPOKEN = range(1, 3)
A, B = Namespace("a"), Namespace("b")


def claim(**changes: Any) -> Claim:
    values: dict[str, Any] = {
        "client_id": ClientId("agent"),
        "protocol": 1,
        "namespaces": (A,),
        "task_queue": "default",
        "node": None,
    }
    return Claim(**(values | changes))


def enrolment(**changes: Any) -> Enrolment:
    values: dict[str, Any] = {"token_id": "tok", "namespaces": frozenset({A, B})}
    return Enrolment(**(values | changes))


def test_what_an_unbounded_token_does_not_bound_may_be_claimed() -> None:
    wide = claim(namespaces=(A, B), task_queue="fast", node="rack-1", metadata={"x": [1]})
    assert reject(wide, enrolment(), SPOKEN) is None


@pytest.mark.parametrize(
    ("changes", "reason", "named"),
    [
        ({"protocol": 3}, RefusedFor.PROTOCOL, "1 to 2"),
        ({"protocol": 0}, RefusedFor.PROTOCOL, "1 to 2"),
        ({"metadata": {"a": float("nan")}}, RefusedFor.METADATA, "metadata.a is nan"),
        ({"metadata": {"a": "x" * 65_536}}, RefusedFor.METADATA, "metadata is 65544 characters"),
        ({"client_id": ClientId("..")}, RefusedFor.CLIENT_ID, "client_id is '..'"),
        ({"client_id": ClientId("a\nb")}, RefusedFor.CLIENT_ID, "client_id is 'a\\nb'"),
        ({"task_queue": "q" * 201}, RefusedFor.TASK_QUEUE, "201 characters long: 200 at most"),
        ({"task_queue": "a\x1b[31m"}, RefusedFor.TASK_QUEUE, "task_queue is 'a\\x1b[31m'"),
        ({"node": "n" * 201}, RefusedFor.NODE, "201 characters long: 200 at most"),
        ({"node": "n\to"}, RefusedFor.NODE, "node is 'n\\to'"),
        ({"max_concurrency": 0}, RefusedFor.CAPACITY, "max_concurrency is 0"),
        ({"max_concurrency": 1_000_001}, RefusedFor.CAPACITY, "max_concurrency is at most 1000000"),
        ({"namespaces": ()}, RefusedFor.NAMESPACE, "names no namespace"),
        ({"namespaces": (A, Namespace("c"))}, RefusedFor.NAMESPACE, "namespaces 'a', 'b', not 'c'"),
    ],
)
def test_a_claim_is_refused_for_good_and_says_what_is_wrong(
    changes: dict[str, Any], reason: RefusedFor, named: str
) -> None:
    refusal = reject(claim(**changes), enrolment(), SPOKEN)
    assert refusal is not None
    assert (refusal.reason, refusal.retry) == (reason, False)
    assert named in refusal.detail


def test_a_queue_of_letters_of_any_script_and_spaces_is_let_in() -> None:
    assert reject(claim(task_queue="sp ace/☃", node="Zürich 1"), enrolment(), SPOKEN) is None


def test_no_queue_and_no_node_are_judged_as_the_default_queue_and_as_none() -> None:
    bounds = Bounds(task_queues=frozenset({"default"}), nodes=frozenset({"rack-1"}))
    assert reject(claim(task_queue="", node=""), enrolment(bounds=bounds), SPOKEN) is None


BOUNDS: dict[str, Any] = {
    "bounds": Bounds(
        task_queues=frozenset({"fast"}),
        nodes=frozenset({"rack-1"}),
        metadata={"region": ["eu", 1], "free": None},
    ),
    "own_metadata": frozenset({"records"}),
}
WITHIN: dict[str, Any] = {
    "task_queue": "fast",
    "node": "rack-1",
    "metadata": {"region": "eu", "free": {"any": "thing"}, "records": True},
}


@pytest.mark.parametrize(
    "changes",
    [{}, {"node": None}, {"metadata": {}}, {"metadata": {"region": 1}}],
    ids=["all", "no node", "no metadata", "another value"],
)
def test_what_is_within_the_bounds_of_a_token_is_let_in(changes: dict[str, Any]) -> None:
    assert reject(claim(**(WITHIN | changes)), enrolment(**BOUNDS), SPOKEN) is None


@pytest.mark.parametrize(
    ("changes", "reason", "named"),
    [
        ({"task_queue": "default"}, RefusedFor.TASK_QUEUE, "task queue 'fast', not 'default'"),
        ({"node": "rack-2"}, RefusedFor.NODE, "'rack-1', not 'rack-2'"),
        ({"metadata": {"gpu": True}}, RefusedFor.METADATA, "metadata 'gpu'"),
        ({"metadata": {"region": "us"}}, RefusedFor.METADATA, "metadata 'region' be \"eu\" or 1"),
        ({"metadata": {"region": 1.0}}, RefusedFor.METADATA, "metadata 'region' be \"eu\" or 1"),
        ({"metadata": {"region": True}}, RefusedFor.METADATA, "metadata 'region' be \"eu\" or 1"),
    ],
)
def test_what_is_claimed_beyond_the_bounds_of_a_token_is_refused_by_name(
    changes: dict[str, Any], reason: RefusedFor, named: str
) -> None:
    refusal = reject(claim(**(WITHIN | changes)), enrolment(**BOUNDS), SPOKEN)
    assert refusal is not None
    assert (refusal.reason, refusal.retry) == (reason, False)
    assert named in refusal.detail


def test_the_policy_is_looked_at_before_the_namespaces() -> None:
    refusal = reject(claim(protocol=9, namespaces=(Namespace("c"),)), enrolment(), SPOKEN)
    assert refusal is not None
    assert refusal.reason is RefusedFor.PROTOCOL
