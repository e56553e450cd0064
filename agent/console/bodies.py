"""The bytes of an answer: decoded as they come, and never more of them than there may be."""

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from agent.steps.failed import StepFailed
from farm.protocol.failures import Reason

ACCEPTED = "gzip, deflate"
"""What we ask for; each can be decoded a bounded part at a time."""
_PART = 64 * 1024


class _Coding(Protocol):
    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what some more bytes mean, in parts of bounded size."""
        ...


class _Identity:
    def decode(self, data: bytes) -> Iterator[bytes]:
        yield data


class _Zlib:
    """gzip, or deflate in either of the two ways in which servers understand it."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if gzip else None

    def decode(self, data: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            wrapped = data[:1] and data[0] & 0x0F == 8
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        while data:
            yield self._inflate.decompress(data, _PART)
            data = self._inflate.unconsumed_tail
            if self._inflate.eof and self._gzip and self._inflate.unused_data[:2] == b"\x1f\x8b":
                # Several members one after the other are one body.
                data = self._inflate.unused_data
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)


async def read(chunks: AsyncIterator[bytes], encoding: str, *, most: int, url: str) -> bytes:
    """Return the whole body, its content coding undone.

    Args:
        chunks: The body as it was sent.
        encoding: The Content-Encoding.
        most: How many bytes it may have, as sent and decoded.
        url: For the failure's text.

    Raises:
        StepFailed: `navigation_failed`, if it is longer, or encoded in a way we did not ask for,
            or broken.
    """
    codings = [_coding(name.strip().lower(), url) for name in encoding.split(",") if name.strip()]
    content = bytearray()
    sent = 0
    async for chunk in chunks:
        sent += len(chunk)
        for part in _through(chunk, codings[::-1], url):
            content += part
            if max(sent, len(content)) > most:
                raise StepFailed(
                    Reason.NAVIGATION_FAILED, f"{url} has more than {most} bytes"[:2000]
                )
    return bytes(content)


def _through(data: bytes, codings: list[_Coding], url: str) -> Iterator[bytes]:
    if not codings:
        yield data
        return
    first, *others = codings
    try:
        for part in first.decode(data):
            yield from _through(part, others, url)
    except zlib.error as error:
        raise StepFailed(
            Reason.NAVIGATION_FAILED, f"{url} can't be decoded: {error}"[:2000]
        ) from None


def _coding(name: str, url: str) -> _Coding:
    match name:
        case "identity":
            return _Identity()
        case "gzip" | "x-gzip":
            return _Zlib(gzip=True)
        case "deflate":
            return _Zlib(gzip=False)
        case _:
            raise StepFailed(
                Reason.NAVIGATION_FAILED, f"{url} comes encoded as {name}, not asked for"[:2000]
            )
