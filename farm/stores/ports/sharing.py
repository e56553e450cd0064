"""What coordinators ask of a ledger that they share: whose a job and an attempt is."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from farm.core.model import ClientId, Token
from farm.stores.records import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an attempt that runs stands with a coordinator."""

    client_id: ClientId
    mine: bool
    cancel_requested: bool
    """Of its job."""


class SharedLedger(Protocol):
    """The life of this coordinator among those that share its ledger, and what it owns there.

    A life ends when its lease, which it renews, is over by the database's clock; nothing is written
    under it any more, and what it owned is an orphan. An attempt has one owner: who has started it,
    or has taken it over since. To anybody else the ledger refuses its evidence and its end
    (`NotOwnerError`). All methods raise StoreUnavailableError.
    """

    def alive(self) -> bool:
        """Tell whether the life is not over, as far as that is known here."""
        ...

    async def lapsed(self) -> None:
        """Renew the lease; return when the life is over."""
        ...

    async def begin_again(self) -> None:
        """End the life, if it is not over, and begin another."""
        ...

    async def claim(self, job_id: str) -> bool:
        """Keep others from placing a queued job; False if another, living one keeps it."""
        ...

    async def give_up_claim(self, job_id: str) -> None:
        """Let others place it, if it is claimed by this life and still queued."""
        ...

    async def keep_claims(self, job_ids: Collection[str]) -> None:
        """Let others place all that this life has claimed but these.

        A claim may be there that its coordinator knows nothing of: of one that could not be given
        up, or was made without the answer that it was.
        """
        ...

    async def take_over(
        self, attempt_id: str, *, client_id: ClientId, token: Token, command_id: str
    ) -> Attempt | None:
        """Own an attempt from here on, whoever has it; None if none such runs."""
        ...

    async def adopt(self, attempt_id: str) -> bool:
        """Own an orphan; of many who ask one does."""
        ...

    async def disown(self, attempt_id: str) -> None:
        """Make an attempt of this life's an orphan."""
        ...

    async def orphans(
        self, *, for_s: float, client_id: ClientId | None = None
    ) -> Sequence[Attempt]:
        """Return what runs, of one agent or of all, and has had no owner for so long."""
        ...

    async def standing(self, attempt_ids: Collection[str]) -> Mapping[str, Standing]:
        """Tell of these attempts, and of all that this life owns, how they stand; if they run."""
        ...

    async def agreed_on(self, name: str, number: int) -> int:
        """Return what the living have agreed on under a name: this, where there are no others."""
        ...

    async def note_agent(self, client_id: ClientId, token_id: str) -> None:
        """Remember with which token an agent was let in."""
        ...

    async def token_of_agent(self, client_id: ClientId) -> str | None:
        """Return with which token an agent was last let in, by whichever coordinator."""
        ...
