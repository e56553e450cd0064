"""Connections to Redis, and what its failures mean to a caller."""

import contextlib
from collections.abc import Iterator

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from farm.errors import StoreUnavailableError
from farm.stores.cancelling import cancellations_kept

FORGOTTEN = "FORGOTTEN"
"""How an error begins that our scripts raise where the store epoch is not the caller's."""

_UNAVAILABLE = (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,
    TryAgainError,
    OSError,
)
# Those that redis-py has no class for.
_UNAVAILABLE_CODES = (FORGOTTEN, "BUSY", "MISCONF", "NOREPLICAS", "UNKILLABLE")


def connect(
    url: str, *, timeout_s: float = 5.0, connections: int = 32, decode: bool = True
) -> Redis:
    """Return a client as the registry needs it; connections are made at the first use.

    Nothing is sent twice: after a lost connection nobody knows whether a step was done, and one
    that takes a place or gives it back must not be done again unasked.

    Args:
        url: `redis://`, `rediss://` or `unix://`, with the password if there is one.
        timeout_s: How long connecting, a reply, or waiting for a connection may take.
        connections: How many there may be at once; who needs one more waits.
        decode: Replies are texts; else bytes.
    """
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=timeout_s,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        decode_responses=decode,
        # JSON may hold half a surrogate pair; what was put in comes out.
        encoding_errors="surrogatepass",
    )
    return Redis.from_pool(pool)


@contextlib.contextmanager
def store_errors() -> Iterator[None]:
    """Turn failures of Redis into StoreUnavailableError; what is our mistake stays as it is.

    A cancellation gets through.
    """
    with cancellations_kept(), _translated():
        yield


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except _UNAVAILABLE as error:
        raise StoreUnavailableError(f"Redis did not answer: {error}") from error
    except ResponseError as error:
        code = str(error).split(" ", 1)[0]
        if code not in _UNAVAILABLE_CODES:
            raise
        raise StoreUnavailableError(f"Redis refused: {error}", code=code) from error
