"""Files that are handed in for jobs to give to pages: where they lie, how many, and for how long.

They have no entry in the ledger: each namespace has a folder of the artifact store.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable

from farm.clock import Clock
from farm.core.model import Instant, Namespace
from farm.errors import ArtifactStoreFullError
from farm.stores.ports.artifacts import ArtifactStore


def folder_of(namespace: Namespace) -> str:
    """Return what the store knows the files of a namespace by."""
    return f"files-{hashlib.sha256(namespace.encode()).hexdigest()[:32]}"


class HandedIn:
    """Bounds what is handed in.

    Args:
        store: Where the files are.
        clock: The time.
        max_bytes: The files of one namespace together.
        keep_s: A file is kept for so long; None is for ever.
    """

    def __init__(
        self, store: ArtifactStore, clock: Clock, *, max_bytes: int, keep_s: float | None
    ) -> None:
        self._store = store
        self._clock = clock
        self._max_bytes = max_bytes
        self._keep_s = keep_s

    async def require_room(self, namespace: Namespace, size: int) -> None:
        """Return if so many bytes may be handed in; several at one moment may go beyond the bound.

        Raises:
            ArtifactStoreFullError: If they may not.
        """
        used = await self._store.size(folder_of(namespace))
        if used + size > self._max_bytes:
            raise ArtifactStoreFullError(
                f"the files of the namespace have {used} of {self._max_bytes} bytes",
                used=used,
                most=self._max_bytes,
            )

    async def sweep(self, namespaces: Callable[[], Awaitable[Iterable[Namespace]]]) -> int:
        """Remove the files that have been kept long enough; return how many.

        Raises:
            StoreUnavailableError: If some are left.
        """
        if self._keep_s is None:
            return 0
        before = Instant(self._clock() - self._keep_s)
        return sum(
            [
                await self._store.remove_old(folder_of(namespace), before=before)
                for namespace in await namespaces()
            ]
        )
