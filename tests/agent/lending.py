"""Who lends in tests."""

import json
from typing import Any

from agent.ports import BorrowRefused, Lender
from farm.protocol.failures import Reason
from farm.protocol.identities import Lent
from farm.protocol.messages import Token


class Purse:
    """A `Lender` that has what it was given, and keeps what comes back."""

    def __init__(self, **lent: Any) -> None:
        self.lent = Lent.model_validate(lent)
        self.saved: list[Any] = []
        self.refuses: Exception | None = None

    async def borrow(self) -> Lent:
        if self.refuses is not None:
            raise self.refuses
        return self.lent

    async def give_back(self, state: bytes) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.saved.append(json.loads(state))


class NoLoans:
    """`Loans` of a farm that has nothing."""

    def of(self, attempt_id: str, token: Token) -> Lender:
        purse = Purse()
        purse.refuses = BorrowRefused(Reason.IDENTITY_UNAVAILABLE, "nothing")
        return purse
