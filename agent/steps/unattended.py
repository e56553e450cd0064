"""A run that nobody can pause, take over or keep out of."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext


class Unattended:
    """Implements `agent.ports.Control` where nobody is there who could have it."""

    async def gate(self) -> None:
        """Return: automation has control."""

    async def ask(self, request: str) -> None:
        """Wait for ever, as nobody comes; the step's time ends it."""
        await asyncio.Event().wait()

    def acting(self) -> AbstractAsyncContextManager[None]:
        """Do nothing: input is not kept out."""
        return nullcontext()
