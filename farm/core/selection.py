"""Choosing one of several candidates: the rules of the built-in strategies."""

from collections.abc import Sequence
from hashlib import blake2b

from farm.core.decide import Candidate


def in_turn(candidates: Sequence[Candidate], turn: int) -> Candidate:
    """Return the candidate whose turn it is, of those in order of client and context."""
    return sorted(candidates, key=lambda c: c.key)[turn % len(candidates)]


def least_busy(candidates: Sequence[Candidate]) -> Candidate:
    """Return a candidate of the client with the fewest assignments.

    Of clients that have equally few, the task's name decides: for one task always the same, over
    many tasks each as often as another.
    """
    return min(candidates, key=_busyness)


def _busyness(candidate: Candidate) -> tuple[int, bytes, str, str]:
    assigned = len(candidate.client.assignments)
    return assigned, _lot(candidate), *candidate.key


def _lot(candidate: Candidate) -> bytes:
    request = candidate.request
    key = "\0".join((request.namespace, request.task_id, candidate.client_id))
    return blake2b(key.encode(), digest_size=8).digest()
