"""Whose job is next: namespaces take turns, and within one the oldest job goes first.

So the backlog of one namespace is never longer than one job to another: while both have work, at
most one job of the one starts between two starts of the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TypeVar

from farm.core.model import Namespace

T = TypeVar("T")


def order_of_turns(
    oldest: Mapping[Namespace, int],
    last_turns: Mapping[Namespace, int],
    served: Sequence[Namespace] = (),
) -> list[Namespace]:
    """Return the namespaces that have work, whose turn it is first.

    Args:
        oldest: The number of the oldest job of each; who has waited longer is first where neither
            has had a turn.
        last_turns: The number of the last turn of each that has had one.
        served: Who has had a turn that has no number yet, in the order of these turns.
    """
    since = {namespace: place for place, namespace in enumerate(served, start=1)}
    return sorted(
        oldest,
        key=lambda namespace: (
            since.get(namespace, 0),
            last_turns.get(namespace, 0),
            oldest[namespace],
            namespace,
        ),
    )


def share_of(namespaces: int, at_most: int) -> int:
    """Return how many jobs each of the namespaces can have of so many."""
    return -(-at_most // max(1, namespaces))


def in_turns(lines: Sequence[Sequence[T]], at_most: int) -> list[T]:
    """Return the first of each line, then the second of each, and so on, at most so many."""
    return list(islice(_rounds(lines), at_most))


def _rounds(lines: Sequence[Sequence[T]]) -> Iterator[T]:
    for one_of_each in zip_longest(*([[entry] for entry in line] for line in lines)):
        for found in one_of_each:
            yield from found or ()
