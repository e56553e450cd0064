"""Namespaces: which there are, who may make them, and where their work is done."""

from collections.abc import Callable, Sequence

import structlog

from farm.clock import Clock
from farm.core.admission import Refusal
from farm.core.model import Namespace
from farm.core.namespaces import Minting, NamespaceRecord, Origin, decide
from farm.core.tiers import NodePlacement, Pinned, Prefer, Unplaced
from farm.errors import ConflictError, NotFoundError
from farm.manager.refusals import Tell
from farm.stores.ports.namespaces import NamespaceStore

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class NamespaceBook:
    """The namespaces of the farm, and the gate that agents pass.

    Args:
        store: Where they are written down.
        clock: The time.
        minting: Whether an agent, or a token, of a namespace that is not there makes it.
        own: Namespaces of the farm itself, which are written down nowhere.
        tell: Hears of new ones and of changed placements.
        moved: Called when the work of a namespace may now be done elsewhere.
    """

    def __init__(
        self,
        store: NamespaceStore,
        clock: Clock,
        *,
        minting: Minting = "closed",
        own: frozenset[Namespace] = frozenset(),
        tell: Tell = lambda *_: None,
        moved: Callable[[Namespace], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._minting = minting == "open"
        self._own = own
        self._tell = tell
        self._moved = moved

    async def missing(
        self, namespaces: tuple[Namespace, ...], node: str | None
    ) -> tuple[Namespace, ...] | Refusal:
        """See `NamespaceGate.missing`."""
        wanted = self._written(namespaces)
        known = await self._store.namespaces(wanted) if wanted else ()
        return decide(known, wanted, node, self._minting)

    async def mint(self, namespaces: tuple[Namespace, ...], node: str | None) -> Refusal | None:
        """See `NamespaceGate.mint`."""
        wanted = self._written(namespaces)
        minted = await self._store.admit(wanted, node, minting=self._minting, now=self._clock())
        if isinstance(minted, Refusal):
            return minted
        for record in minted.new:
            self._announce(record)
        return None

    def _written(self, namespaces: Sequence[Namespace]) -> Sequence[Namespace]:
        return [name for name in namespaces if name not in self._own]

    async def all(self) -> Sequence[NamespaceRecord]:
        """Return them, by name."""
        return await self._store.namespaces()

    async def names(self) -> Sequence[Namespace]:
        """Return what they are called, in order."""
        return [record.name for record in await self._store.namespaces()]

    async def create(
        self, name: Namespace, origin: Origin = Origin.EXPLICIT
    ) -> tuple[NamespaceRecord, bool]:
        """Make one whatever the policy; return it, and whether it is new.

        Raises:
            ConflictError: If it is one of the farm's own.
        """
        if name in self._own:
            raise ConflictError(f"the namespace {name} is the farm's own", namespace=name)
        record, new = await self._store.create(name, origin, now=self._clock())
        if new:
            self._announce(record)
        return record, new

    async def require(self, names: Sequence[Namespace]) -> None:
        """Return when these are there, as the policy has it.

        Raises:
            NotFoundError: If one is not, and may not be made by the way.
        """
        known = {record.name for record in await self._store.namespaces(names)}
        for name in names:
            if name in known:
                continue
            if not self._minting:
                raise NotFoundError(
                    f"there is no namespace {name}: `farm namespaces create` makes one",
                    namespace=name,
                )
            await self.create(name)

    async def place(self, name: Namespace, placement: NodePlacement) -> NamespaceRecord:
        """Say where the work of a namespace may be done, from the next dispatch on.

        Raises:
            NotFoundError: If there is no such namespace.
        """
        record, changed = await self._store.place(name, placement)
        if changed:
            kind, labels = in_words(placement)
            log.info("namespace.placed", namespace=name, placement=kind, labels=labels)
            self._tell("placement_changed", name, {"placement": kind, "labels": labels})
            self._moved(name)
        return record

    def _announce(self, record: NamespaceRecord) -> None:
        log.info("namespace.created", namespace=record.name, origin=record.origin.value)
        self._tell("namespace_created", record.name, {"origin": record.origin.value})


def in_words(placement: NodePlacement) -> tuple[str, list[str]]:
    """Return what a placement is called, and its labels."""
    match placement:
        case Unplaced():
            return "unplaced", []
        case Prefer(labels=labels):
            return "prefer", sorted(labels)
        case Pinned(labels=labels):
            return "pinned", sorted(labels)
