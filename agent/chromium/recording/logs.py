"""The console and the network of an attempt's pages, a JSON object a line."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, Response, WebError
from playwright.async_api import Error as PlaywrightError

from agent.chromium.recording.recorder import Mine
from agent.clock import wall_clock
from agent.steps.urls import bare
from farm.protocol.recordings import RecordingKind

_TEXT = 4_000
"""So much of one message is kept."""
_IN_MEMORY = 16 * 1024 * 1024


class _Lines:
    """Lines up to a bound. The one that would go beyond it is not taken, nor any after it."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max = min(max_bytes, _IN_MEMORY)
        self._max_bytes = max_bytes
        self._lines = bytearray()
        self._full = False

    def add(self, entry: Mapping[str, Any]) -> None:
        said = {key: value for key, value in entry.items() if value is not None}
        line = json.dumps(said).encode() + b"\n"
        self._full = self._full or len(self._lines) + len(line) > self._max
        if not self._full:
            self._lines += line

    @property
    def size(self) -> int:
        return self._max_bytes if self._full else len(self._lines)

    async def write(self) -> Path:
        await asyncio.to_thread(self._path.write_bytes, self._lines)
        return self._path


class ConsoleLog:
    """What the pages say in their console, and the errors that they did not catch."""

    kind = RecordingKind.CONSOLE
    wants_window = False

    def __init__(self, context: BrowserContext, mine: Mine, path: Path, max_bytes: int) -> None:
        self._context = context
        self._mine = mine
        self._lines = _Lines(path, max_bytes)

    async def start(self) -> None:
        """See `Recorder`."""
        self._context.on("console", self._on_message)
        self._context.on("weberror", self._on_error)

    async def size(self) -> int:
        """See `Recorder`."""
        return self._lines.size

    async def stop(self) -> None:
        """See `Recorder`."""
        _forget(self._context, "console", self._on_message)
        _forget(self._context, "weberror", self._on_error)

    async def keep(self) -> Path:
        """See `Recorder`."""
        return await self._lines.write()

    def _on_message(self, message: ConsoleMessage) -> None:
        if not self._mine(message.page):
            return
        place = message.location
        self._lines.add(
            {
                "at": _time(wall_clock()),
                "type": message.type,
                "text": message.text[:_TEXT],
                "url": bare(place["url"]) or None,
                "line": place["lineNumber"],
                "column": place["columnNumber"],
            }
        )

    def _on_error(self, error: WebError) -> None:
        if self._mine(error.page):
            text = str(error.error)[:_TEXT]
            self._lines.add({"at": _time(wall_clock()), "type": "uncaught", "text": text})


class NetworkLog:
    """Each request of the pages as it ends: its address without query, and how it was answered."""

    kind = RecordingKind.NETWORK
    wants_window = False

    def __init__(self, context: BrowserContext, mine: Mine, path: Path, max_bytes: int) -> None:
        self._context = context
        self._mine = mine
        self._lines = _Lines(path, max_bytes)
        self._out: dict[Request, float] = {}
        self._answers: dict[Request, Response] = {}

    async def start(self) -> None:
        """See `Recorder`."""
        for event, listener in self._listeners():
            self._context.on(event, listener)  # type: ignore[call-overload]  # a table of them

    async def size(self) -> int:
        """See `Recorder`."""
        return self._lines.size

    async def stop(self) -> None:
        """See `Recorder`; what is still out is noted as such."""
        for event, listener in self._listeners():
            _forget(self._context, event, listener)
        for request in tuple(self._out):
            self._note(request, "no answer until the end of the recording")

    async def keep(self) -> Path:
        """See `Recorder`."""
        return await self._lines.write()

    def _listeners(self) -> tuple[tuple[str, Any], ...]:
        return (
            ("request", self._on_request),
            ("response", self._on_response),
            ("requestfinished", self._note),
            ("requestfailed", self._on_failed),
        )

    def _on_request(self, request: Request) -> None:
        self._out[request] = wall_clock()

    def _on_response(self, response: Response) -> None:
        self._answers[response.request] = response

    def _on_failed(self, request: Request) -> None:
        self._note(request, request.failure or "failed")

    def _note(self, request: Request, failure: str | None = None) -> None:
        began, answer = self._out.pop(request, None), self._answers.pop(request, None)
        if began is None or not self._mine(_page_of(request)):
            return
        self._lines.add(
            {
                "at": _time(began),
                "ms": round(1000 * (wall_clock() - began)),
                "method": request.method,
                "url": bare(request.url),
                "type": request.resource_type,
                "status": answer.status if answer is not None else None,
                "failure": failure,
            }
        )


def _page_of(request: Request) -> Page | None:
    try:
        return request.frame.page
    except PlaywrightError:
        return None  # a service worker's, or of a page that has never been


def _forget(context: BrowserContext, event: str, listener: Callable[..., None]) -> None:
    with contextlib.suppress(KeyError):  # stopped before
        context.remove_listener(event, listener)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
