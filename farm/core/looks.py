"""The clients of a reading as they are for a request, each looked at once, whoever asks."""

from collections.abc import Iterable, Iterator, Sequence

from farm.core.eligibility import BEFORE_NODE, Reason, Reasons, rejections
from farm.core.model import Client, Request, Snapshot
from farm.core.tiers import Tier, at, is_within


class Looks:
    """What was found of each client: whether it may do, and everything for which it will not.

    The tiers in which a request is tried differ by node alone, so they share what is found, and so
    do the choice, the census and the reasons. Nobody is looked at before that is asked for.

    Args:
        request: What is asked for, whatever node it names.
        snapshot: Where.
    """

    def __init__(self, request: Request, snapshot: Snapshot) -> None:
        self._anywhere = at(request, None)
        self.snapshot = snapshot
        self._found: list[Reasons] = []
        self._fitting: list[Client] = []
        """Those that may do, but for their node."""
        self._identity_is_open: bool | None = None

    @classmethod
    def of(cls, request: Request, read: "Snapshot | Looks") -> "Looks":
        """Return the looks at a snapshot, or those there are."""
        return read if isinstance(read, Looks) else cls(request, read)

    def further(self, most: int) -> bool:
        """Look at so many more; tell whether there are others still."""
        seen, clients = len(self._found), self.snapshot.clients
        for client in clients[seen : seen + most]:
            found = self.at(client)
            self._found.append(found)
            if not found:
                self._fitting.append(client)
        return len(self._found) < len(clients)

    def at(self, client: Client) -> Reasons:
        """Look at one, of the snapshot or not; its node does not count."""
        read = self.snapshot
        return rejections(
            self._anywhere, client, now=read.taken_at, window_s=read.presence_window_s
        )

    def each(self, walked: Sequence[Tier]) -> Iterable[tuple[Client, Reasons]]:
        """Return every client with all that keeps it from doing in the tiers; none if it may."""
        self.further(len(self.snapshot.clients))
        found = zip(self.snapshot.clients, self._found, strict=True)
        if None in walked:
            return found
        return ((c, said if is_within(c, walked) else elsewhere(said)) for c, said in found)

    def fitting(self, node: Tier) -> Iterator[Client]:
        """Yield those that may do in one tier, and look no further than is asked for."""
        at, more = 0, True
        while more or at < len(self._fitting):
            if at == len(self._fitting):
                more = self.further(1)
                continue
            client, at = self._fitting[at], at + 1
            if node in (None, client.node):
                yield client

    def identity_is_open(self) -> bool:
        """Tell whether a window of the request's identity is somewhere, or is being opened."""
        if self._identity_is_open is None:
            identity, clients = self._anywhere.identity, self.snapshot.clients
            self._identity_is_open = identity is not None and any(
                identity in client.opening_identities
                or any(window.identity == identity for window in client.windows.values())
                for client in clients
            )
        return self._identity_is_open


def elsewhere(found: Reasons) -> Reasons:
    """Return what keeps a client from doing that is on none of the nodes, besides."""
    before = tuple(reason for reason in found if reason in BEFORE_NODE)
    return *before, Reason.OTHER_NODE, *found[len(before) :]
