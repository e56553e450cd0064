"""The farm's end of a link by requests alone; see `farm.protocol.polling`."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from farm.api.request_state import Principal
from farm.api.sockets import Closing
from farm.errors import ConflictError
from farm.protocol.polling import LONGEST_WAIT_S, Exchange, Exchanged

_IN_HAND = 64
"""So many messages may wait on either side; then whoever sends has to."""
_ANSWER_BYTES = 1024 * 1024


class PollSocket:
    """The farm's end of one session."""

    transport = "longpoll"

    def __init__(self, bearer: Principal, *, silence_s: float) -> None:
        self.bearer = bearer
        self._silence_s = silence_s
        self._inbox: deque[str] = deque()
        self._taken = 0
        self._outbox: deque[str] = deque()
        self._acked = 0
        """The number of the last message that the agent is known to have."""
        self._requests = 0
        self._ended = False
        self._stirred = asyncio.Event()
        self._silence: asyncio.TimerHandle | None = None

    # The link's side

    async def texts(self) -> AsyncIterator[str]:
        """See `Socket.texts`; what has come before the end is yielded too."""
        while True:
            await self._until(lambda: bool(self._inbox) or self._ended)
            if not self._inbox:
                return
            text = self._inbox.popleft()
            self._stir()
            yield text

    async def send(self, text: str) -> None:
        """See `Socket.send`."""
        await self._until(lambda: len(self._outbox) < _IN_HAND or self._ended)
        if self._ended:
            raise ConnectionResetError("the session has ended")
        self._outbox.append(text)
        self._stir()

    async def close(self, why: Closing = Closing.IS_OVER) -> None:
        """See `Socket.close`; what was sent before can still be fetched."""
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._stir()

    def _stir(self) -> None:
        stirred, self._stirred = self._stirred, asyncio.Event()
        stirred.set()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._stirred.wait()

    # The agent's side

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Know that the agent is there, for as long as its request takes."""
        self._requests += 1
        if self._silence is not None:
            self._silence.cancel()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self.begin_silence()

    def begin_silence(self) -> None:
        """End the session unless a request comes in time."""
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(self._silence_s, self._end)

    async def exchange(self, said: Exchange) -> Exchanged:
        """Take what the agent sends, and give what there is for it, now or in a while.

        Raises:
            ConflictError: If messages are missing between those that came and these.
        """
        self._take(said)
        self._acknowledge(said.ack)
        self._stir()
        if said.messages:
            await self._until(lambda: len(self._inbox) < _IN_HAND or self._ended)
        if said.wait_s is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(said.wait_s, LONGEST_WAIT_S)):
                    await self._until(lambda: bool(self._outbox) or self._ended)
        messages = () if said.wait_s is None else tuple(self._next())
        return Exchanged(
            seq=self._acked + 1,
            messages=messages,
            ack=self._taken,
            closed=self._ended and len(messages) == len(self._outbox),
        )

    def _take(self, said: Exchange) -> None:
        if said.messages and said.seq > self._taken + 1:
            raise ConflictError(f"message {self._taken + 1} is missing", has=self._taken)
        if self._ended:
            return
        new = said.messages[self._taken + 1 - said.seq :]
        self._inbox.extend(new)
        self._taken += len(new)

    def _acknowledge(self, ack: int) -> None:
        while self._outbox and self._acked < ack:
            self._outbox.popleft()
            self._acked += 1

    def _next(self) -> Iterator[str]:
        size = 0
        for text in self._outbox:
            if size and size + len(text) > _ANSWER_BYTES:
                return
            size += len(text)
            yield text
