"""Wakes inside one process."""

import asyncio


class MemoryWakes:
    """A number that grows with each change, and those who wait for it to grow."""

    def __init__(self) -> None:
        self._generation = 0
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Wake everybody who waits."""
        self._generation += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def generation(self) -> int:
        """See `Wakes.generation`."""
        return self._generation

    async def changed_since(self, generation: int) -> None:
        """See `Wakes.changed_since`."""
        while self._generation <= generation:
            await self._changed.wait()
