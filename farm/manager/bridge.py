"""One end of a bridge: the messages of a socket, carried between two coordinators.

At most `WINDOW_BYTES` of each direction are on their way: who sends waits until the other end has
taken some. So nothing piles up between the two, however slow either is.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from farm.errors import StoreUnavailableError
from farm.manager.crossing import AnyParcel, End, Opened, Piece, Took
from farm.stores.ports.routes import CoordinatorId

WINDOW_BYTES = 512 * 1024
PIECE_BYTES = 128 * 1024
_BESIDE = 256
"""What a piece counts for, beside its own bytes."""
_LARGEST = 32 * 1024 * 1024
_WHY = 100
_LOST = 1011
"""The code of a WebSocket whose server could not go on."""

Post = Callable[[AnyParcel, bytes], Awaitable[bool]]
"""Raises StoreUnavailableError."""
Spawn = Callable[[Coroutine[Any, Any, str | None]], "asyncio.Task[str | None]"]
"""Owns what is being sent, whatever becomes of who sends it."""


class BridgeOverError(ConnectionResetError):
    """Nothing can be sent any more; the text says why."""


@dataclass(frozen=True, slots=True)
class _Part:
    piece: Piece
    content: bytes

    @property
    def size(self) -> int:
        return len(self.content) + _BESIDE


class Bridge:
    """Messages in order both ways, texts and bytes, until either side ends it.

    Nothing of them is left out: what can't be carried ends the bridge, at either end.
    """

    def __init__(
        self, bridge_id: str, peer: CoordinatorId, post: Post, spawn: Spawn, now: float
    ) -> None:
        """`post` hands a parcel to the `peer`, `spawn` has a task; `now` is the loop's time."""
        self.bridge_id = bridge_id
        self.peer = peer
        self.heard_at = now
        self.end: End | None = None
        """How it ended; None as long as it has not."""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post = post
        self._spawn = spawn
        self._sending = asyncio.Lock()
        self._stirred = asyncio.Event()
        self._inbox: deque[_Part] = deque()
        self._held = 0
        self._to_tell = 0
        self._on_the_way = 0
        self._sent_seq = 0
        self._seen_seq = 0
        self._told_end = False

    # For who uses it

    async def accept(self) -> None:
        """Say that it is served. Raises BridgeOverError."""
        await self._hand(Opened(bridge_id=self.bridge_id))

    async def send(self, message: str | bytes) -> None:
        """Send a message; waits while the other end takes nothing.

        Who is cancelled while it waits leaves the message to be sent whole: others may use the
        bridge, too.

        Raises:
            BridgeOverError: If it is over, or ends meanwhile.
        """
        why = await asyncio.shield(self._spawn(self._send_whole(message)))
        if why is not None:
            raise BridgeOverError(why)

    async def _send_whole(self, message: str | bytes) -> str | None:
        """Send a message; return why it was not."""
        content, text = (message.encode(), True) if isinstance(message, str) else (message, False)
        async with self._sending:
            try:
                for part, more in _parts(content):
                    await self._room_for(len(part) + _BESIDE)
                    self._sent_seq += 1
                    piece = Piece(
                        bridge_id=self.bridge_id, seq=self._sent_seq, text=text, more=more
                    )
                    await self._hand(piece, part)
            except BridgeOverError as error:
                return str(error)
        return None

    async def messages(self) -> AsyncIterator[str | bytes]:
        """Yield what the other end sends; what was sent before the end is yielded, too."""
        parts: list[bytes] = []
        size = 0
        while (part := await self._next()) is not None:
            parts.append(part.content)
            size += len(part.content)
            if size > _LARGEST:
                self.lose("a message is too large")
                return
            if not part.piece.more:
                whole = b"".join(parts)
                parts, size = [], 0
                yield whole.decode() if part.piece.text else whole

    async def close(self, code: int = 1000, why: str = "") -> None:
        """End it once what was sent before is on its way; nothing, where it has ended."""
        self._over(End(bridge_id=self.bridge_id, code=code, why=why[:_WHY]))
        await self.tell_end()

    def cut(self) -> None:
        """End it now, whatever is on its way."""
        self.lose("it was cut")

    # For who keeps them

    def lose(self, why: str) -> None:
        """It can't go on, and who uses it is to know."""
        self._over(End(bridge_id=self.bridge_id, code=_LOST, why=why[:_WHY], lost=True))

    async def tell_end(self) -> None:
        """Tell the other end that it is over; it finds that out by silence otherwise."""
        async with self._sending:  # behind what is just being sent
            if self.end is not None and not self._told_end:
                self._told_end = True
                with contextlib.suppress(StoreUnavailableError):
                    await self._post(self.end, b"")

    def hear(self, parcel: Opened | Piece | Took | End, content: bytes, now: float) -> None:
        """Take what the other end says."""
        self.heard_at = now
        match parcel:
            case Opened():
                if not self.opened.done():
                    self.opened.set_result(None)
            case Piece():
                self._take(_Part(parcel, content))
            case Took(size=size):
                self._on_the_way -= size
                self._stir()
            case End():
                self._told_end = True
                self._over(parcel)

    def _take(self, part: _Part) -> None:
        if self.end is not None:
            return
        self._seen_seq += 1
        self._held += part.size
        if part.piece.seq != self._seen_seq:
            self.lose("something was lost on the way")
        elif self._held > WINDOW_BYTES + PIECE_BYTES:
            self.lose("more was sent than there is room for")
        else:
            self._inbox.append(part)
            self._stir()

    def _over(self, end: End) -> None:
        if self.end is None:
            self.end = end
            if not self.opened.done():
                self.opened.set_exception(BridgeOverError(end.why))
                self.opened.exception()  # looked at, so that nobody is warned
            self._stir()

    def _stir(self) -> None:
        stirred, self._stirred = self._stirred, asyncio.Event()
        stirred.set()

    async def _room_for(self, size: int) -> None:
        while self.end is None and self._on_the_way + size > WINDOW_BYTES:
            await self._stirred.wait()
        self._on_the_way += size

    async def _next(self) -> _Part | None:
        while not self._inbox:
            if self.end is not None:
                return None
            await self._stirred.wait()
        part = self._inbox.popleft()
        self._held -= part.size
        self._to_tell += part.size
        if self._to_tell > WINDOW_BYTES // 4 and self.end is None:
            told, self._to_tell = self._to_tell, 0
            with contextlib.suppress(BridgeOverError):
                await self._hand(Took(bridge_id=self.bridge_id, size=told))
        return part

    async def _hand(self, parcel: AnyParcel, content: bytes = b"") -> None:
        if self.end is None:
            try:
                if not await self._post(parcel, content):
                    self.lose(f"coordinator {self.peer} is not there")
            except StoreUnavailableError as error:
                self.lose(error.detail)
        if self.end is not None:
            raise BridgeOverError(self.end.why)


def _parts(content: bytes) -> Iterator[tuple[bytes, bool]]:
    for start in range(0, max(len(content), 1), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES], start + PIECE_BYTES < len(content)
