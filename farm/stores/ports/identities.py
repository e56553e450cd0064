"""Where saved identities are kept, and who has them."""

from collections.abc import Sequence
from typing import Protocol

from farm.core.model import Instant, Namespace, Token
from farm.stores.identity_records import Borrowed, Change, SavedIdentity, Sealed, SealedState, Use


class IdentityStore(Protocol):
    """Durable, and in one with the attempts: a running attempt is the lease of its identity.

    So a lease ends with its attempt, however that ends, and survives what the attempt survives. A
    `Ledger` starts no attempt that would break one.
    """

    async def identities(self, namespace: Namespace) -> Sequence[SavedIdentity]:
        """Return those of a namespace, by name."""
        ...

    async def identity(self, namespace: Namespace, name: str) -> SavedIdentity:
        """Return one. Raises NotFoundError, also for one of another namespace."""
        ...

    async def change(
        self, namespace: Namespace, name: str, change: Change, *, now: Instant
    ) -> tuple[SavedIdentity, bool]:
        """Make an identity, or change it; return it, and whether it is new.

        Raises:
            ConflictError: If a running attempt has it for itself.
        """
        ...

    async def delete(self, namespace: Namespace, name: str) -> None:
        """Forget an identity.

        Raises:
            NotFoundError: If there is none of this name.
            ConflictError: If a running attempt has it, in whichever mode but as a clone.
        """
        ...

    async def users(self, namespace: Namespace, name: str) -> Sequence[Use]:
        """Return the running attempts that have an identity, the oldest first."""
        ...

    async def borrowed(self, attempt_id: str, token: Token) -> Borrowed | None:
        """Return what a running attempt has of the farm; None under another token, or after it."""
        ...

    async def save_state(
        self, attempt_id: str, token: Token, state: SealedState, *, now: Instant
    ) -> int | None:
        """Keep the state that an attempt leaves, whole or not at all; return the new version.

        None where the attempt runs no more, `token` is not its own, or it has no identity for
        itself: the state that was there stays.
        """
        ...

    async def sealed(self) -> Sequence[Sealed]:
        """Return everything that is sealed."""
        ...

    async def reseal(self, old: Sealed, sealed: bytes) -> bool:
        """Put another sealed text in the place of one; False where that has changed meanwhile."""
        ...


class Sealer(Protocol):
    """Makes unreadable what is kept, and readable again."""

    def seal(self, plain: bytes, *, bound_to: str) -> bytes:
        """Seal under the present key. It opens only with the same `bound_to`."""
        ...

    def open(self, sealed: bytes, *, bound_to: str) -> bytes:
        """Open what any known key has sealed.

        Raises:
            UnreadableError: If its key is not known, or it is not what was sealed.
        """
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Tell whether it was sealed under the present key."""
        ...
