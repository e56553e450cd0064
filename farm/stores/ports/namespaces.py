"""Where namespaces are written down."""

from collections.abc import Sequence
from typing import Protocol

from farm.core.admission import Refusal
from farm.core.model import Instant, Namespace
from farm.core.namespaces import Minted, NamespaceRecord, Origin
from farm.core.tiers import NodePlacement


class NamespaceStore(Protocol):
    """Durable. Each method is one transaction, which any coordinator may do."""

    async def admit(
        self, namespaces: Sequence[Namespace], node: str | None, *, minting: bool, now: Instant
    ) -> Minted | Refusal:
        """Let an agent of a node serve namespaces; make those that are missing, if minting.

        A refusal has made none. Of many who ask at once for one that is missing, one is told that
        it is new.
        """
        ...

    async def create(
        self, name: Namespace, origin: Origin, *, now: Instant
    ) -> tuple[NamespaceRecord, bool]:
        """Make a namespace unless it is there; return it, and whether it is new."""
        ...

    async def namespaces(
        self, among: Sequence[Namespace] | None = None
    ) -> Sequence[NamespaceRecord]:
        """Return all of them, or those among some, by name."""
        ...

    async def place(
        self, name: Namespace, placement: NodePlacement
    ) -> tuple[NamespaceRecord, bool]:
        """Say where its work may be done; return it, and whether that is a change.

        Raises:
            NotFoundError: If there is no such namespace.
        """
        ...

    async def placement(self, namespace: Namespace) -> NodePlacement:
        """Return where its work may be done; one that is not written down is unplaced."""
        ...
