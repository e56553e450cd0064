"""What attempts borrow of the farm, over HTTP, each under its own token."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import aiohttp
import structlog
from pydantic import ValidationError

from agent.ports import BorrowRefused, Lender, StaleAssignment
from farm.protocol.failures import Reason
from farm.protocol.identities import Lent
from farm.protocol.messages import Token

_FIRST_WAIT_S = 0.2
_TRIES = 7
"""Over some 13 s, in which a farm that was started anew is back, and linked to us again."""
_CALL_S = 15.0
_PASSING = (
    HTTPStatus.FORBIDDEN,  # also where our link has not come up again
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError)

T = TypeVar("T")
log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class HttpLoans:
    """Implements `agent.ports.Loans`."""

    def __init__(self, session: aiohttp.ClientSession, farm: Callable[[], str]) -> None:
        self._session = session
        self._farm = farm
        """Says where the farm is that the agent is linked to."""

    def of(self, attempt_id: str, token: Token) -> Lender:
        """See `Loans.of`."""
        return _HttpLender(self._session, self._farm, attempt_id, token)


class _HttpLender:
    """Implements `agent.ports.Lender`; dials again a few times where the farm is not there."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        farm: Callable[[], str],
        attempt_id: str,
        token: Token,
    ) -> None:
        self._session = session
        self._farm = farm
        self._attempt_id = attempt_id
        self._headers = {"X-Tabfarm-Token": f"{token.store_epoch}.{token.counter}"}

    @property
    def _url(self) -> str:
        return f"{self._farm()}/v1/attempts/{quote(self._attempt_id)}/identity"

    async def borrow(self) -> Lent:
        """See `Lender.borrow`."""
        return await self._tried(self._get, Reason.IDENTITY_UNAVAILABLE)

    async def give_back(self, state: bytes) -> None:
        """See `Lender.give_back`."""
        await self._tried(lambda: self._put(state), Reason.IDENTITY_NOT_SAVED)

    async def _get(self) -> Lent:
        async with self._session.get(self._url, headers=self._headers) as answer:
            await _check(answer, Reason.IDENTITY_UNAVAILABLE)
            try:
                return Lent.model_validate_json(await answer.read())
            except ValidationError:
                # Not with its text, which may quote what is secret.
                detail = "the farm's answer can't be understood"
                raise BorrowRefused(Reason.IDENTITY_UNAVAILABLE, detail) from None

    async def _put(self, state: bytes) -> None:
        headers = self._headers | {"Content-Type": "application/json"}
        async with self._session.put(self._url, data=state, headers=headers) as answer:
            await _check(answer, Reason.IDENTITY_NOT_SAVED)

    async def _tried(self, call: Callable[[], Awaitable[T]], reason: Reason) -> T:
        wait_s = _FIRST_WAIT_S
        for _ in range(_TRIES - 1):
            try:
                async with asyncio.timeout(_CALL_S):
                    return await call()
            except _FAILURES as error:
                log.warning("loan.failed", attempt_id=self._attempt_id, reason=str(error))
            await asyncio.sleep(wait_s)
            wait_s *= 2
        try:
            async with asyncio.timeout(_CALL_S):
                return await call()
        except _FAILURES as error:
            detail = f"the farm does not answer: {str(error) or type(error).__name__}"
            raise BorrowRefused(reason, detail) from error


async def _check(answer: aiohttp.ClientResponse, reason: Reason) -> None:
    if answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        raise BorrowRefused(Reason.IDENTITY_TOO_LARGE, await _said(answer))
    if answer.status == HTTPStatus.CONFLICT:
        raise StaleAssignment
    if answer.status in _PASSING:
        raise aiohttp.ClientError(f"the farm answered {answer.status}")
    raise BorrowRefused(reason, await _said(answer))


async def _said(answer: aiohttp.ClientResponse) -> str:
    try:
        return str((await answer.json(content_type=None))["detail"])
    except (aiohttp.ClientError, ValueError, LookupError, TypeError):
        return f"the farm answered {answer.status}"
