"""Artifacts in a bucket of an S3-compatible store: an object a file, there once it is complete.

A small file is one request. A larger one is sent in parts as it is written, and is put together by
`commit`. Parts of which nothing becomes are deleted; those of a process that was killed, or of a
store that did not answer then, are seen by nobody and are for the bucket's own rule to delete.
"""

import asyncio
import hashlib
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore import delete_async, get_async, open_writer_async, put_async
from obstore import list as listed
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from farm.core.model import Instant
from farm.errors import NotFoundError, StoreUnavailableError
from farm.stores.artifacts.rules import (
    MARK,
    folder_of,
    is_key,
    new_key,
    require_key,
    require_size,
)

if TYPE_CHECKING:
    from obstore import Bytes, ObjectMeta

_CHUNK = 256 * 1024
_PART = 5 * 1024 * 1024
"""The least that S3 takes for a part that is not the last."""
_MAX_PARTS = 10_000
_AT_ONCE = 2
"""So many parts are under way while another is filled; they are all of a file that is in memory."""
_RETRIES = 3
_CONNECT_S = 5.0


def connect(url: str, *, answer_s: float, allow_http: bool = False) -> S3Store:
    """Name a bucket; nothing is sent yet.

    Requests that may be sent twice are, a few times, where the store fails or is not reached. The
    endpoint, the region and the credentials are those of the environment: `AWS_ENDPOINT_URL`,
    `AWS_REGION`, `AWS_ACCESS_KEY_ID` and so on.

    Args:
        url: `s3://bucket/prefix`; all keys are below the prefix.
        answer_s: A request that has heard nothing for so long has failed.
        allow_http: Speak HTTP without TLS where the endpoint says so.
    """
    return S3Store.from_url(
        url,
        client_options={
            "allow_http": allow_http,
            "connect_timeout": timedelta(seconds=min(_CONNECT_S, answer_s)),
            "read_timeout": timedelta(seconds=answer_s),
            # A file is read for as long as whoever wants it takes.
            "timeout": timedelta(days=1),
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=answer_s)},
    )


class BucketArtifacts:
    """The `ArtifactStore` port over a bucket. How much room there is only the store knows.

    Args:
        bucket: See `connect`.
        max_bytes: How large one file may be.
        answer_s: What has not been answered for so long is given up, whatever the client thinks.
    """

    def __init__(self, bucket: S3Store, *, max_bytes: int, answer_s: float) -> None:
        self._bucket = bucket
        self._max_bytes = max_bytes
        self._answer_s = answer_s

    async def check(self) -> None:
        """Write, read and delete an object. Raises StoreUnavailableError if one can't be."""
        name = f".check-{secrets.token_hex(8)}"
        async with _answering(self._answer_s):
            await put_async(self._bucket, name, name.encode())
            read = await self._content(name)
            await delete_async(self._bucket, name)
        if read != name.encode():
            raise StoreUnavailableError("the bucket does not give back what was written to it")

    @asynccontextmanager
    async def create(self, job_id: str) -> AsyncIterator["BucketFile"]:
        """Begin a file of a job."""
        file = BucketFile(self._bucket, new_key(job_id), self._max_bytes, self._answer_s)
        try:
            yield file
        finally:
            await file.discard()

    async def remove(self, job_id: str) -> None:
        """Remove every file of a job. Raises StoreUnavailableError."""
        async for page in self._pages(job_id):
            await self._delete([one["path"] for one in page])

    async def discard(self, key: str) -> None:
        """Remove one file. Raises StoreUnavailableError."""
        if is_key(key):
            await self._delete([key])

    async def remove_old(self, job_id: str, *, before: Instant) -> int:
        """Remove a job's files that were made before a moment of the store's clock."""
        removed = 0
        async for page in self._pages(job_id):
            old = [one["path"] for one in page if one["last_modified"].timestamp() < before]
            await self._delete(old)
            removed += len(old)
        return removed

    async def size(self, job_id: str) -> int:
        """Return how many bytes a job's files have. Raises StoreUnavailableError."""
        return sum([sum(one["size"] for one in page) async for page in self._pages(job_id)])

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield a file's bytes, in pieces of about 256 KiB. Raises NotFoundError."""
        require_key(key)
        async with _answering(self._answer_s):
            try:
                chunks = (await get_async(self._bucket, key)).stream(min_chunk_size=_CHUNK)
            except FileNotFoundError:
                raise NotFoundError(f"no artifact {key}") from None
            chunk = await anext(chunks, b"")
        while chunk:
            yield chunk
            async with _answering(self._answer_s):
                chunk = await anext(chunks, b"")

    async def number(self) -> int:
        """Return the bucket's number, which whoever comes first leaves there."""
        async with _answering(self._answer_s):
            try:
                return int(await self._content(MARK))
            except FileNotFoundError:
                with suppress(AlreadyExistsError):
                    new = str(secrets.randbits(62)).encode()
                    await put_async(self._bucket, MARK, new, mode="create")
                return int(await self._content(MARK))

    async def _pages(self, job_id: str) -> AsyncIterator[Sequence["ObjectMeta"]]:
        """Yield what a job has, up to a thousand at once."""
        pages = listed(self._bucket, prefix=folder_of(job_id), chunk_size=1_000)
        while True:
            async with _answering(self._answer_s):
                page = await anext(pages, None)
            if not page:
                return
            yield page

    async def _delete(self, keys: Sequence[str]) -> None:
        if keys:
            async with _answering(self._answer_s):
                await delete_async(self._bucket, keys)

    async def _content(self, name: str) -> bytes:
        content: Bytes = await (await get_async(self._bucket, name)).bytes_async()
        return bytes(content)


class BucketFile:
    """A file being written.

    What has been asked of the store is never cut off, even where the task that asked is cancelled:
    nobody would know what has become of it, nor what may be asked next.
    """

    def __init__(self, bucket: S3Store, key: str, max_bytes: int, answer_s: float) -> None:
        self._bucket = bucket
        self._key = key
        self._max_bytes = max_bytes
        self._answer_s = answer_s
        self._size = 0
        self._sha256 = hashlib.sha256()
        self._asked: asyncio.Future[object] | None = None
        self._closing = False
        self._kept = False
        self._writer = open_writer_async(
            bucket,
            key,
            buffer_size=max(_PART, -(-max_bytes // _MAX_PARTS)),
            max_concurrency=_AT_ONCE,
        )

    async def write(self, chunk: bytes) -> None:
        """Append; waits where parts are under way. Raises TooLargeError, StoreUnavailableError."""
        self._size += len(chunk)
        require_size(self._size, self._max_bytes)
        self._sha256.update(chunk)
        await self._ask(self._writer.write(chunk))

    async def commit(self) -> tuple[str, int, str]:
        """Make it visible; return (key, size in bytes, sha256)."""
        self._closing = True
        await self._ask(self._writer.close())
        self._kept = True
        return self._key, self._size, self._sha256.hexdigest()

    async def discard(self) -> None:
        """Leave nothing where it was not committed, as far as the store answers; never raises."""
        if self._kept:
            return
        with suppress(StoreUnavailableError):
            async with _answering(self._answer_s):
                if self._asked is not None:
                    await asyncio.wait((self._asked,))
            if self._closing:
                await self._ask(delete_async(self._bucket, self._key))
            else:
                # There is no other way to say it: parts are deleted where a block has failed.
                await self._ask(self._writer.__aexit__(StoreUnavailableError, None, None))

    async def _ask(self, request: Awaitable[object]) -> None:
        """Wait for what goes on where the wait is cut off, and is then waited for by `discard`."""
        asked = asyncio.ensure_future(request)  # noqa: TID251 - the client's own future
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._asked = asked
        async with _answering(self._answer_s):
            await asyncio.shield(asked)


@asynccontextmanager
async def _answering(within_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(within_s):
            yield
    except TimeoutError:
        raise StoreUnavailableError(f"the bucket did not answer within {within_s:g} s") from None
    except (BaseError, OSError) as error:
        raise StoreUnavailableError(f"the bucket: {_said(error)}") from error


def _said(error: Exception) -> str:
    """Return what the store said, by its code, without what helps to mend the client."""
    said = str(error).partition("\n\nDebug source")[0]
    code = re.search("<Code>(.*?)</Code>", said)
    said = said.partition(": <?xml")[0].partition("\n")[0]
    return f"{said} ({code[1]})" if code else said
