"""How a request reaches the farm, and what becomes of an answer that is none."""

import io
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, ValidationError

from farm.protocol.problems import Problem
from farm.sdk.errors import FarmApiError, FarmUnreachableError

QUIET_S = 60.0
"""With nothing heard for this long a connection is broken; the farm's heartbeat is 15 s."""
_CHUNK = 64 * 1024

Body = TypeVar("Body", bound=BaseModel)
Query = Mapping[str, str | int | float | None]


class Transport:
    """A farm's address, a token, and the connections there are to it."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections; the next request makes one anew."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(
        self,
        model: type[Body],
        method: str,
        path: str,
        *,
        query: Query | None = None,
        data: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        quiet_s: float = QUIET_S,
    ) -> Body:
        """Send one request, and read the answer as what it must be; see `open`."""
        async with self.open(
            method, path, query=query, data=data, headers=headers, quiet_s=quiet_s
        ) as response:
            return await parsed(model, response)

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        data: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        quiet_s: float = QUIET_S,
        accept: tuple[int, ...] = (),
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request; what goes wrong while the answer is read is translated too.

        Raises:
            FarmApiError: If the answer is a problem, and its status not in `accept`.
            FarmUnreachableError: If there is no answer, or it breaks off.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession()
        sent = dict(headers or {})
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            async with self._session.request(
                method,
                self.url + path,
                params={k: str(v) for k, v in (query or {}).items() if v is not None},
                data=io.BytesIO(data) if isinstance(data, bytes) else data,
                headers=sent,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=quiet_s),
            ) as response:
                if response.status >= 300 and response.status not in accept:
                    raise FarmApiError(response.status, await _problem(response))
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise FarmUnreachableError(
                f"no answer from {self.url}: {str(error) or type(error).__name__}"
            ) from error


def chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the bytes of an answer as they come."""
    return aiter(response.content.iter_any())


async def parsed(model: type[Body], response: aiohttp.ClientResponse) -> Body:
    """Read an answer as what it must be."""
    try:
        return model.model_validate_json(await response.read())
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(map(str, wrong["loc"])) or "its answer"
        raise FarmUnreachableError(
            f"{response.url} does not answer as a farm: {place}: {wrong['msg']}"
        ) from error


async def _problem(response: aiohttp.ClientResponse) -> Problem:
    """Read the problem, or make one of whatever a stranger on the way answered."""
    body = await response.content.read(_CHUNK)
    try:
        return Problem.model_validate_json(body)
    except ValidationError:
        return Problem(
            type="about:blank",
            title=response.reason or "Error",
            status=max(400, response.status),
            detail=f"{response.method} {response.url.path} was answered by {response.status}",
        )


def path_of(*segments: str) -> str:
    """Return the path of a resource; what is in a segment stays in it."""
    return "/v1/" + "/".join(quote(segment, safe="") for segment in segments)
