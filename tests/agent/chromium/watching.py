"""A channel whose other end is the test: it asks for pictures, looks at them, and acts."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from PIL import Image

from agent.ports import ChannelClosed
from tests.agent.chromium.rig import Rig
from tests.patience import PATIENCE_S

Pixel = tuple[int, int, int]


class ChannelEnd:
    """Implements `agent.ports.Channel`."""

    def __init__(self) -> None:
        self._to_tab: asyncio.Queue[tuple[str | bytes, memoryview | None] | None] = asyncio.Queue()
        self._news = asyncio.Condition()
        self.said: list[dict[str, Any]] = []
        self.pictures: list[tuple[dict[str, Any], bytes]] = []
        self.takes = True
        """Whether pictures are answered as soon as they have come."""

    async def send(self, message: str, payload: bytes | None = None) -> None:
        """See `Channel.send`."""
        said = json.loads(message)
        async with self._news:
            if payload is None:
                self.said.append(said)
            else:
                self.pictures.append((said, payload))
            self._news.notify_all()
        if payload is not None and self.takes:
            self.says(op="took", seq=said["seq"])

    async def receive(self) -> AsyncIterator[tuple[str | bytes, memoryview | None]]:
        """See `Channel.receive`."""
        while (frame := await self._to_tab.get()) is not None:
            yield frame

    # What the test does

    def says(self, payload: bytes | None = None, **message: Any) -> None:
        self._to_tab.put_nowait(
            (json.dumps(message), None if payload is None else memoryview(payload))
        )

    def does(self, payload: bytes | None = None, by: str = "anna", **act: Any) -> None:
        self.says(op="input", act=act, by=by, payload=payload)

    def close(self) -> None:
        self._to_tab.put_nowait(None)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(condition)

    async def hears(self, op: str, **members: Any) -> dict[str, Any]:
        """Return the first message of a kind with these members, taking it and those before."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            for number, said in enumerate(self.said):
                if said["op"] == op and members.items() <= said.items():
                    found.append(said)
                    del self.said[: number + 1]
                    return True
            return False

        await self.until(look)
        return found[0]

    async def sees(self, pixel: Pixel, at: tuple[float, float] = (0.5, 0.5)) -> None:
        """Wait for a picture that has this colour, or nearly, at a place."""
        await self.until(lambda: self.pictures and near(self.pixel(at), pixel))

    def pixel(self, at: tuple[float, float] = (0.5, 0.5)) -> Pixel:
        picture = self.picture()
        return picture.getpixel((int(at[0] * picture.width), int(at[1] * picture.height)))  # type: ignore[return-value]

    def picture(self) -> Image.Image:
        return Image.open(io.BytesIO(self.pictures[-1][1])).convert("RGB")


def near(one: Pixel, other: Pixel) -> bool:
    return all(abs(a - b) < 40 for a, b in zip(one, other, strict=True))


@asynccontextmanager
async def watched(rig: Rig, context_id: str = "c") -> AsyncIterator[ChannelEnd]:
    """Watch a tab for as long as the block lasts; watching ends without an error."""
    end = ChannelEnd()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(rig.browser.watch(context_id, end), name="watch")
        try:
            yield end
        finally:
            end.close()


class DeadEnd(ChannelEnd):
    """Takes nothing any more."""

    async def send(self, message: str, payload: bytes | None = None) -> None:
        """See `Channel.send`."""
        raise ChannelClosed("it is over")
