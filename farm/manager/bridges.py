"""Sockets that come to one coordinator and are served by another."""

import asyncio
import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, assert_never

import structlog
from pydantic import ValidationError

from farm.errors import ClientAbsentError, FarmError, NotFoundError, StoreUnavailableError
from farm.manager.bridge import Bridge, BridgeOverError
from farm.manager.crossing import AnyParcel, End, Open, Opened, Piece, Pulse, Took, parcels
from farm.protocol.channels import FrameError, pack, unpack
from farm.stores.ports.parcels import Parcels
from farm.stores.ports.routes import CoordinatorId

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_OPEN_S = 5.0
_CLOSE_S = 2.0
_PAUSE_S = 0.2
_PULSES_PER_SILENCE = 4
_AT_ONCE = 100
"""Of so many bridges one pulse tells."""
_MARK = 12

Serve = Callable[[str, Bridge], Awaitable[None]]
"""(what was said of it, its end here) -> when it has been served; accepts it first, or raises
FarmError."""


def mark_of(coordinator: CoordinatorId) -> str:
    """Return a short mark by which what a coordinator has named is known to be its own.

    Twelve characters that may be in a URL; they tell nothing of its name.
    """
    digest = hashlib.sha256(coordinator.encode()).digest()
    return urlsafe_b64encode(digest).decode()[:_MARK]


class Bridges:
    """The ends of all bridges that are at one coordinator.

    Args:
        parcels: The boxes that they share.
        silence_s: A bridge of whose other end nothing was heard for so long is lost; the time in
            which this process stood still is not counted.
    """

    def __init__(self, parcels: Parcels, *, silence_s: float = 5.0) -> None:
        self._parcels = parcels
        self._silence_s = silence_s
        self._open: dict[str, Bridge] = {}
        self._serves: dict[str, Serve] = {}
        self._group: asyncio.TaskGroup | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def mark(self) -> str:
        """What this coordinator marks as its own."""
        return mark_of(self._parcels.coordinator)

    def count(self) -> int:
        """Count those that are open."""
        return len(self._open)

    def serve(self, purpose: str, serve: Serve) -> None:
        """Have those that others open for a purpose served so."""
        self._serves[purpose] = serve

    async def run(self) -> None:
        """Carry and serve, until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            self._group.create_task(self._read(), name="read parcels")
            self._group.create_task(self._pulse(), name="pulse of bridges")

    async def marked(self, mark: str) -> CoordinatorId | None:
        """Return which other coordinator has a mark. Raises StoreUnavailableError."""
        return next(
            (
                one
                for one in await self._parcels.there()
                if mark_of(one) == mark and one != self._parcels.coordinator
            ),
            None,
        )

    @asynccontextmanager
    async def to(self, peer: CoordinatorId, purpose: str, said: str) -> AsyncIterator[Bridge]:
        """Open a bridge to where a socket is served; it is closed with the block.

        Raises:
            NotFoundError: If it is not served there; says why.
            ClientAbsentError: If that coordinator says nothing.
        """
        bridge = self._new(f"br_{secrets.token_hex(12)}", peer)
        try:
            opening = Open(
                bridge_id=bridge.bridge_id,
                sender=self._parcels.coordinator,
                purpose=purpose,
                said=said,
            )
            await self._opened(bridge, opening)
            yield bridge
        finally:
            await self._close(bridge)

    async def _opened(self, bridge: Bridge, opening: Open) -> None:
        try:
            if await self._post(bridge.peer, opening):
                async with asyncio.timeout(_OPEN_S):
                    await asyncio.shield(bridge.opened)
                return
            why = "is not there"
        except TimeoutError:
            why = "does not answer"
        except StoreUnavailableError as error:
            why = f"is out of reach: {error.detail}"
        except BridgeOverError as error:
            if bridge.end is not None and not bridge.end.lost:
                raise NotFoundError(str(error)) from error
            why = f"is lost: {error}"
        raise ClientAbsentError(f"coordinator {bridge.peer} {why}")

    async def close(self, why: str) -> None:
        """End all; those that are served here have a moment to end by themselves."""
        if self._serving:
            await asyncio.wait(self._serving, timeout=_CLOSE_S)
        for bridge in list(self._open.values()):
            bridge.lose(why)
            await self._close(bridge)

    def _new(self, bridge_id: str, peer: CoordinatorId) -> Bridge:
        async def post(parcel: AnyParcel, content: bytes) -> bool:
            return await self._post(peer, parcel, content)

        now = asyncio.get_running_loop().time()
        bridge = self._open[bridge_id] = Bridge(bridge_id, peer, post, self._spawn, now)
        return bridge

    def _spawn(self, sending: Coroutine[Any, Any, str | None]) -> "asyncio.Task[str | None]":
        if self._group is None:
            sending.close()
            raise BridgeOverError("nothing is carried yet")
        return self._group.create_task(sending, name="send over a bridge")

    async def _close(self, bridge: Bridge) -> None:
        self._open.pop(bridge.bridge_id, None)
        await bridge.close()

    async def _post(self, to: CoordinatorId, parcel: AnyParcel, content: bytes = b"") -> bool:
        return await self._parcels.post(to, pack(parcel.model_dump_json(), content))

    # Those that others open

    async def _served(self, opening: Open, bridge: Bridge) -> None:
        try:
            serve = self._serves.get(opening.purpose)
            if serve is None:
                raise NotFoundError(f"nobody here serves {opening.purpose!r}")
            await serve(opening.said, bridge)
        except FarmError as error:
            await bridge.close(why=error.detail)
        except (ConnectionError, TimeoutError) as error:
            log.info("bridge.broken", purpose=opening.purpose, reason=str(error))
        except Exception:
            log.exception("bridge.failed", purpose=opening.purpose)
            bridge.lose("it could not be served")
        finally:
            await self._close(bridge)

    # The loops

    async def _read(self) -> None:
        while True:
            try:
                for parcel in await self._parcels.receive():
                    self._unpack(parcel)
            except StoreUnavailableError as error:
                log.warning("bridges.store_unavailable", reason=error.detail)
                await asyncio.sleep(_PAUSE_S)

    def _unpack(self, parcel: bytes) -> None:
        try:
            head, content = unpack(parcel)
            self._hear(parcels.validate_json(head), bytes(content))
        except (FrameError, ValidationError) as error:
            log.warning("bridges.unreadable", kind=type(error).__name__)

    def _hear(self, said: AnyParcel, content: bytes) -> None:
        now = asyncio.get_running_loop().time()
        match said:
            case Open(bridge_id=bridge_id, sender=sender):
                if self._group is not None and bridge_id not in self._open:
                    bridge = self._new(bridge_id, CoordinatorId(sender))
                    task = self._group.create_task(self._served(said, bridge), name="bridge")
                    self._serving.add(task)
                    task.add_done_callback(self._serving.discard)
            case Pulse(bridges=bridges):
                for known in map(self._open.get, bridges):
                    if known is not None:
                        known.heard_at = now
            case Opened() | Piece() | Took() | End():
                known = self._open.get(said.bridge_id)
                if known is not None:
                    known.hear(said, content, now)
            case _:
                assert_never(said)

    async def _pulse(self) -> None:
        loop, pause_s = asyncio.get_running_loop(), self._silence_s / _PULSES_PER_SILENCE
        while True:
            due = loop.time() + pause_s
            await asyncio.sleep(pause_s)
            # While this process stood still it heard nobody, whatever they said.
            stood_still_s = max(0.0, loop.time() - due)
            for bridge in self._open.values():
                bridge.heard_at += stood_still_s
            for peer in {bridge.peer for bridge in self._open.values()}:
                await self._tell(peer)
            now = loop.time()
            for bridge in self._open.values():
                if now - bridge.heard_at > self._silence_s:
                    bridge.lose(f"nothing was heard of coordinator {bridge.peer}")

    async def _tell(self, peer: CoordinatorId) -> None:
        """Tell another coordinator which bridges to it are open here."""
        shared = [bridge for bridge in self._open.values() if bridge.peer == peer]
        try:
            for start in range(0, len(shared), _AT_ONCE):
                ids = tuple(bridge.bridge_id for bridge in shared[start : start + _AT_ONCE])
                if not await self._post(peer, Pulse(bridges=ids)):
                    for bridge in shared:
                        bridge.lose(f"coordinator {peer} is not there")
        except StoreUnavailableError as error:
            log.warning("bridges.store_unavailable", reason=error.detail)
