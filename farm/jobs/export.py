"""Records as JSON lines and as CSV.

A record gets `_attempt` where every attempt's are asked for, and `_dataset` where it is of a data
set other than `items` and no single one is asked for; a field of that name of its own wins.
"""

import asyncio
import csv
import io
import json
import re
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import IO, Any, TypeVar

from farm.stores.records import Item

DEFAULT_DATASET = "items"
T = TypeVar("T")
_BATCH_BYTES = 64 * 1024
_SPOOL_BYTES = 8 * 1024 * 1024
"""A result larger than this waits on disk while its columns are found."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a spreadsheet take a cell for a formula (OWASP, CSV injection), full width too."""
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")


async def records(
    items: AsyncIterator[Item], *, with_attempt: bool, with_dataset: bool
) -> AsyncGenerator[Mapping[str, Any], None]:
    """Yield what is exported of each item."""
    async with _closing(items) as stream:
        async for item in stream:
            origin: dict[str, Any] = {}
            if with_attempt:
                origin["_attempt"] = item.attempt_number
            if with_dataset and item.dataset != DEFAULT_DATASET:
                origin["_dataset"] = item.dataset
            yield {**origin, **item.data}


async def json_lines(
    records: AsyncIterator[Mapping[str, Any]],
) -> AsyncGenerator[bytes, None]:
    """Yield the records as JSON lines, UTF-8, some at a time."""
    batch = bytearray()
    async with _closing(records) as stream:
        async for record in stream:
            batch += json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            if len(batch) >= _BATCH_BYTES:
                yield bytes(batch)
                batch.clear()
    if batch:
        yield bytes(batch)


async def csv_lines(
    records: AsyncIterator[Mapping[str, Any]],
) -> AsyncGenerator[bytes, None]:
    """Yield the records as CSV, UTF-8, with a header line.

    The columns are the fields of all records in the order in which they are first seen, so the
    whole result is read before the first byte is given. Nested values have columns such as
    `seller.name`; lists are JSON. Without records there is nothing, not even a header.
    """
    columns: dict[str, None] = {}
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
        async with _closing(records) as stream:
            async for batch in json_lines(_flattened(stream, columns)):
                await asyncio.to_thread(spool.write, batch)
        if not columns:
            return
        await asyncio.to_thread(spool.seek, 0)
        yield _rows([[guarded(name) for name in columns]])
        while lines := await asyncio.to_thread(_some_lines, spool):
            rows = (json.loads(line) for line in lines)
            yield _rows([[cell(row.get(name)) for name in columns] for row in rows])


def flatten(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (column, value) of a record; nested records become dotted columns."""
    for name, value in record.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def cell(value: object) -> str:
    """Write one value as a CSV cell that no spreadsheet takes for a formula."""
    match value:
        case None:
            return ""
        case str():
            return guarded(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def guarded(text: str) -> str:
    """Put a single quote before a text that a spreadsheet would take for a formula."""
    if text.startswith(_FORMULA) and not _PLAIN_NUMBER.fullmatch(text):
        return f"'{text}"
    return text


async def _flattened(
    records: AsyncIterator[Mapping[str, Any]], columns: dict[str, None]
) -> AsyncIterator[Mapping[str, Any]]:
    async for record in records:
        flat = dict(flatten(record))
        columns.update(dict.fromkeys(flat))
        yield flat


def _some_lines(spool: IO[bytes]) -> list[bytes]:
    return spool.readlines(_BATCH_BYTES)


def _rows(rows: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


@asynccontextmanager
async def _closing(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """End a generator with the block that reads it, and not when its memory is collected."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
