"""Which agents do not answer, and which are gone. Only facts, and no clock of its own (P2, P3).

A coordinator asks each agent whose link it holds, once a round, down the way that commands go; the
agent's runtime answers. One answer proves both directions. What could not be asked is nobody's
silence. All times follow from the window of the heartbeats: four rounds to a window, and three
questions without an answer are a loss, so that who ceases to answer is kept out within a window.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from farm.core.model import Client, ClientId, Instant
from farm.core.pools import Exclusion

ROUNDS_PER_WINDOW = 4
LOST_AFTER = 3
"""So many questions in a row that nothing came back to."""


def round_s(window_s: float) -> float:
    """Return the seconds from one round to the next."""
    return window_s / ROUNDS_PER_WINDOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What has come of asking one agent on one link."""

    proven: bool = False
    """It has answered once."""
    asked: tuple[int, ...] = ()
    """The rounds whose question is open, the oldest first; no more than can matter."""


def asked(line: Line, number: int) -> Line:
    """Return the line after the question of this round has been sent."""
    return replace(line, asked=(*line.asked, number)[-LOST_AFTER - 1 :])


def answered(line: Line, number: int) -> Line | None:
    """Return the line after an answer to the question of this round; None where none is open.

    What was asked before it needs no answer any more.
    """
    if number not in line.asked:
        return None
    return Line(proven=True, asked=tuple(one for one in line.asked if one > number))


def exclusion(line: Line, number: int) -> Exclusion | None:
    """Say why the agent is not to be chosen in this round, or None; its own question is not due."""
    if sum(one < number for one in line.asked) >= LOST_AFTER:
        return Exclusion.REACHABILITY_LOST
    return None if line.proven else Exclusion.OPENING_PROBATION


def union(published: Iterable[Mapping[ClientId, Exclusion]]) -> dict[ClientId, Exclusion]:
    """Return the exclusions of all; of two of one agent the loss, which the other does not heal."""
    found: dict[ClientId, Exclusion] = {}
    for excluded in published:
        for client_id, kind in excluded.items():
            if found.get(client_id) is not Exclusion.REACHABILITY_LOST:
                found[client_id] = kind
    return found


def marked(
    clients: tuple[Client, ...], excluded: Mapping[ClientId, Exclusion]
) -> tuple[Client, ...]:
    """Return the clients with their exclusions; of who is not there nothing is said."""
    if not excluded:
        return clients
    return tuple(
        replace(client, excluded=excluded[client.client_id])
        if client.client_id in excluded
        else client
        for client in clients
    )


def is_gone(client: Client, *, now: Instant, after_s: float, window_s: float) -> bool:
    """Tell whether an agent has been silent for so long that it is to be given up.

    Silence nominates, and any frame of its runtime acquits. That its link is open is known of a
    frozen process, too, so it postpones this by one window and no more.
    """
    silent_s = now - client.seen_at
    return silent_s > after_s + (0.0 if client.link is None else window_s)
