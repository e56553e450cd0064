"""Eligibility and placement as pure functions over a snapshot (P3, P6).

A success looks only at what it needs; reasons are built only where nothing would do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from farm.core.census import census
from farm.core.eligibility import Reason, reject_context
from farm.core.looks import Looks
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
from farm.core.tiers import Tier
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


def each_candidate(request: Request, read: Snapshot | Looks) -> Iterator[Candidate]:
    """Yield the idle contexts that will do, in the order in which to try them.

    The affinity client's come first. What is not asked for is not looked at.
    """
    if request.mode in MUST_CREATE:
        return
    for client in _one_after_another(request, Looks.of(request, read)):
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


def candidates(request: Request, read: Snapshot | Looks) -> list[Candidate]:
    """Return the idle contexts that will do, the affinity client's first, then in order of id."""
    found = each_candidate(request, read)
    return sorted(found, key=lambda c: (c.client_id != request.affinity_client_id, c.key))


def sites(request: Request, read: Snapshot | Looks, means: Means = _EVERYTHING) -> list[Site]:
    """Return where a context may be created, in the order in which to try them."""
    if not request.auto_provision:
        return []
    looks = Looks.of(request, read)
    found = [
        site_on(request, client, means, identity_is_open=looks.identity_is_open())
        for client in in_order(request, list(looks.fitting(request.node)))
    ]
    return [site for site in found if isinstance(site, Site)]


def explain(
    request: Request,
    read: Snapshot | Looks,
    means: Means = _EVERYTHING,
    walked: Sequence[Tier] | None = None,
) -> Verdict:
    """Say for each client, and each context looked at, why it would not do.

    What would have done, and yet was not had, is said to have been lost to others. Each client is
    told of once, also where it was asked in several of the tiers `walked`; by default the request
    was tried as it is.
    """
    walked = (request.node,) if walked is None else walked
    looks = Looks.of(request, read)
    clients: dict[ClientId, Reason] = {}
    contexts: dict[ContextKey, Reason] = {}
    fitting = Reason.MUST_BE_NEW if request.mode in MUST_CREATE else Reason.LOST_RACE
    for client, found in looks.each(walked):
        if found:
            clients[client.client_id] = found[0]
            continue
        for context_id, context in client.contexts.items():
            contexts[client.client_id, context_id] = (
                reject_context(request, client, context) or fitting
            )
        site = site_on(request, client, means, identity_is_open=looks.identity_is_open())
        clients[client.client_id] = site if isinstance(site, Reason) else Reason.LOST_RACE
    return Verdict(clients=clients, contexts=contexts, census=census(request, looks, walked))


def _one_after_another(request: Request, looks: Looks) -> Iterator[Client]:
    """Yield the eligible clients; to find the first, the others are not looked at.

    Only who says how agents are to be filled has all of them compared.
    """
    if request.placement is not None:
        yield from in_order(request, list(looks.fitting(request.node)))
        return
    near = request.affinity_client_id
    if near is not None:
        known = (c for c in looks.snapshot.clients if c.client_id == near)
        yield from (c for c in known if request.node in (None, c.node) and not looks.at(c))
    yield from (c for c in looks.fitting(request.node) if c.client_id != near)


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
