"""Eligibility and placement as pure functions over a snapshot (P3, P6).

A success looks only at what it needs; reasons are built only where nothing would do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from farm.core.census import census
from farm.core.eligibility import Reason, reject_client, reject_context
from farm.core.model import (
    Client,
    ClientId,
    Context,
    ContextId,
    Request,
    Snapshot,
)
from farm.core.placement import MUST_CREATE, Means
from farm.core.sites import Need, Site, in_order, site_on, tabs_in
from farm.core.tiers import Tier, among
from farm.core.verdicts import ContextKey, Verdict

_EVERYTHING = Means()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An idle context that will do, with what a strategy may look at. Told apart by its ids."""

    client_id: ClientId
    context_id: ContextId
    request: Request = field(compare=False, repr=False)
    client: Client = field(compare=False, repr=False)
    context: Context = field(compare=False, repr=False)

    @property
    def key(self) -> ContextKey:
        """The ids, in the order in which candidates are sorted."""
        return self.client_id, self.context_id


def each_candidate(request: Request, snapshot: Snapshot) -> Iterator[Candidate]:
    """Yield the idle contexts that will do, in the order in which to try them.

    The affinity client's come first. What is not asked for is not looked at.
    """
    if request.mode in MUST_CREATE:
        return
    for client in _one_after_another(request, snapshot):
        for context_id in sorted(client.contexts):
            context = client.contexts[context_id]
            if reject_context(request, client, context) is None:
                yield Candidate(
                    client_id=client.client_id,
                    context_id=context_id,
                    request=request,
                    client=client,
                    context=context,
                )


def candidates(request: Request, snapshot: Snapshot) -> list[Candidate]:
    """Return the idle contexts that will do, the affinity client's first, then in order of id."""
    found = each_candidate(request, snapshot)
    return sorted(found, key=lambda c: (c.client_id != request.affinity_client_id, c.key))


def sites(request: Request, snapshot: Snapshot, means: Means = _EVERYTHING) -> list[Site]:
    """Return where a context may be created, in the order in which to try them."""
    if not request.auto_provision:
        return []
    found = [
        site_on(request, client, snapshot.clients, means)
        for client in in_order(request, _eligible(request, snapshot))
    ]
    return [site for site in found if isinstance(site, Site)]


def explain(
    request: Request,
    snapshot: Snapshot,
    means: Means = _EVERYTHING,
    walked: Sequence[Tier] | None = None,
) -> Verdict:
    """Say for each client, and each context looked at, why it would not do.

    What would have done, and yet was not had, is said to have been lost to others. Each client is
    told of once, also where it was asked in several of the tiers `walked`; by default the request
    was tried as it is.
    """
    walked = (request.node,) if walked is None else walked
    clients: dict[ClientId, Reason] = {}
    contexts: dict[ContextKey, Reason] = {}
    fitting = Reason.MUST_BE_NEW if request.mode in MUST_CREATE else Reason.LOST_RACE
    for client in snapshot.clients:
        asked = among(request, walked, client)
        reason = _reject(asked, client, snapshot)
        if reason is not None:
            clients[client.client_id] = reason
            continue
        for context_id, context in client.contexts.items():
            contexts[client.client_id, context_id] = (
                reject_context(asked, client, context) or fitting
            )
        site = site_on(asked, client, snapshot.clients, means)
        clients[client.client_id] = site if isinstance(site, Reason) else Reason.LOST_RACE
    return Verdict(clients=clients, contexts=contexts, census=census(request, snapshot, walked))


def _reject(request: Request, client: Client, snapshot: Snapshot) -> Reason | None:
    return reject_client(
        request, client, now=snapshot.taken_at, window_s=snapshot.presence_window_s
    )


def _one_after_another(request: Request, snapshot: Snapshot) -> Iterator[Client]:
    """Yield the eligible clients; to find the first, the others are not looked at.

    Only who says how agents are to be filled has all of them compared.
    """
    if request.placement is not None:
        yield from in_order(request, _eligible(request, snapshot))
        return
    near = request.affinity_client_id
    if near is not None:
        yield from (
            c for c in snapshot.clients if c.client_id == near and _fits(request, c, snapshot)
        )
    yield from (c for c in snapshot.clients if c.client_id != near and _fits(request, c, snapshot))


def _fits(request: Request, client: Client, snapshot: Snapshot) -> bool:
    return _reject(request, client, snapshot) is None


def _eligible(request: Request, snapshot: Snapshot) -> list[Client]:
    return [c for c in snapshot.clients if _fits(request, c, snapshot)]


__all__ = [
    "Candidate",
    "ContextKey",
    "Need",
    "Site",
    "Verdict",
    "candidates",
    "each_candidate",
    "explain",
    "sites",
    "tabs_in",
]
