"""A run that nobody can pause, take over or keep out of, and that has no disk to put files on."""

import asyncio
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from pathlib import Path

from agent.ports import Handed, UploadRefused


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


class NoFiles:
    """Implements `agent.ports.Files` where nothing catches what pages hand out."""

    def expecting(self) -> AbstractContextManager[asyncio.Future[Handed]]:
        """Wait for ever; the step's time ends it."""
        return nullcontext(asyncio.get_running_loop().create_future())

    async def folder(self) -> Path:
        """Refuse: there is none."""
        raise UploadRefused("internal", "this run has no place for files")
