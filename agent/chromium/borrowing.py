"""What a run has of the farm: put into its window before the first step, given back at the end."""

import asyncio
import json
from dataclasses import replace

import structlog
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import StorageState

from agent.chromium.tabs import Tab
from agent.ports import BorrowRefused, Lender, Outcome, StaleAssignment
from farm.protocol.failures import Failure, Reason
from farm.protocol.identities import Lent, ProxyRoute
from farm.protocol.identities import StorageState as KeptState
from farm.protocol.plan import Borrows

_log = structlog.get_logger(__name__)
_BROWSER_S = 20.0


class Borrowing:
    """The loan of one run. Nothing of it is logged, or told in a failure."""

    def __init__(self, tab: Tab, borrows: Borrows | None, lender: Lender | None) -> None:
        """Note what is to be borrowed, for the window of a tab; None is nothing."""
        self._tab = tab
        self._context = tab.page.context
        self._borrows = borrows
        self._lender = lender

    async def take(self) -> ProxyRoute | None:
        """Put the saved state into the window; return the proxy its pages are to go through.

        Raises:
            BorrowRefused: If the farm does not lend, or the browser does not take it.
            StaleAssignment: If the attempt has ended for the farm.
        """
        if self._borrows is None:
            return None
        if self._lender is None:
            raise BorrowRefused(Reason.IDENTITY_UNAVAILABLE, "nobody lends to this agent")
        lent: Lent = await self._lender.borrow()
        if lent.state is not None:
            await self._restore(lent.state)
        return lent.proxy

    async def give_back(self, outcome: Outcome) -> Outcome:
        """Save what the window holds, if it is to be; return how the run ended then.

        A success that could not be saved is none.
        """
        if self._lender is None or not self._is_saved(outcome):
            return outcome
        try:
            await self._lender.give_back(await self._state())
        except BorrowRefused as refused:
            return self._unsaved(outcome, refused.reason, refused.detail)
        except StaleAssignment:
            detail = "the attempt had ended before its identity was saved"
            return self._unsaved(outcome, Reason.STALE_ASSIGNMENT, detail)
        return outcome

    def _is_saved(self, outcome: Outcome) -> bool:
        save = "never" if self._borrows is None else self._borrows.save
        return save == "always" or (save == "on_success" and outcome.outcome == "succeeded")

    async def _restore(self, state: KeptState) -> None:
        # As Playwright writes it, and whatever it has added since.
        written: StorageState = json.loads(state.model_dump_json())
        try:
            async with asyncio.timeout(_BROWSER_S):
                await self._context.set_storage_state(written)
        except (Exception, TimeoutError) as error:  # noqa: BLE001 - Playwright's checks are no PlaywrightError
            detail = f"the browser does not take the saved state ({type(error).__name__})"
            raise BorrowRefused(Reason.IDENTITY_UNAVAILABLE, detail) from None

    async def _state(self) -> bytes:
        await self._tab.unhang()  # each page is asked for its storage
        try:
            async with asyncio.timeout(_BROWSER_S):
                state = await self._context.storage_state(indexed_db=True)
        except (PlaywrightError, TimeoutError) as error:
            detail = f"the browser does not give its state ({type(error).__name__})"
            raise BorrowRefused(Reason.IDENTITY_NOT_SAVED, detail) from None
        # A page may have stored halves of surrogate pairs, which are no text.
        return json.dumps(state, ensure_ascii=False).encode("utf-8", "replace")

    def _unsaved(self, outcome: Outcome, reason: Reason, detail: str) -> Outcome:
        _log.warning("identity.not_saved", reason=reason.value, detail=detail)
        if outcome.outcome != "succeeded":
            return outcome
        return replace(
            outcome, outcome="failed", failure=Failure(reason=reason, detail=detail[:2000])
        )
