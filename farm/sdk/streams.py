"""Reading what a farm streams: lines without a limit on their length, and server-sent events."""

from collections.abc import AsyncIterator
from dataclasses import dataclass


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream without their ends; the last one may lack its end."""
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" not in chunk:
            continue
        whole, _, tail = bytes(rest).rpartition(b"\n")
        rest = bytearray(tail)
        for line in whole.split(b"\n"):
            yield line.removesuffix(b"\r")
    if rest:
        yield bytes(rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One server-sent event."""

    event: str
    data: str
    id: str | None


async def server_sent(chunks: AsyncIterator[bytes]) -> AsyncIterator[Sent]:
    """Yield the events of a `text/event-stream`; comments and unfinished events are dropped."""
    event, data, id_ = "message", list[str](), None
    async for raw in lines(chunks):
        line = raw.decode("utf-8", errors="replace")
        if line == "":
            if data:
                yield Sent(event=event, data="\n".join(data), id=id_)
            event, data, id_ = "message", [], None
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                event = value
            case "data":
                data.append(value)
            case "id":
                id_ = value
            case _:
                pass
