"""What a run says, until the farm has it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agent.machine import Event
from agent.machine import events as ev
from agent.ports import StaleAssignment, Uploads
from farm.protocol import messages as wire
from farm.protocol.recordings import RecordingKind


class RunEvidence:
    """Implements `agent.ports.Evidence` for one run.

    Numbers events as the machine does: each run has one writer, and the queue keeps its order.
    """

    def __init__(
        self,
        start: ev.StartRun,
        *,
        post: Callable[[Event], None],
        uploads: Uploads,
        wall_clock: Callable[[], float],
    ) -> None:
        self._start = start
        self._post = post
        self._uploads = uploads
        self._wall_clock = wall_clock
        self.begun = False
        """The browser has been asked to run; it closes the tab if that is cancelled."""
        self._seq = 0
        self._stored = 0
        self._disowned = False
        self._moved = asyncio.Event()

    async def note(self, event: wire.AttemptEvent) -> None:
        """See `Evidence.note`."""
        if isinstance(event, wire.Started):
            event = event.model_copy(update={"window_id": self._start.window_id})
        self._tell(event, urgent=False)

    async def settle(self, event: wire.AttemptEvent) -> None:
        """See `Evidence.settle`."""
        self._tell(event, urgent=True)
        wanted = self._seq
        while self._stored < wanted:
            if self._disowned:
                raise StaleAssignment
            self._moved.clear()
            await self._moved.wait()

    async def upload(
        self,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        """See `Evidence.upload`."""
        if self._disowned:
            raise StaleAssignment
        return await self._uploads.upload(
            self._start.plan.attempt_id,
            self._start.token,
            name,
            content,
            media_type,
            recording=recording,
        )

    async def fetch(self, reference: str, into: Path, max_bytes: int) -> Path:
        """See `Evidence.fetch`."""
        if self._disowned:
            raise StaleAssignment
        plan, token = self._start.plan, self._start.token
        return await self._uploads.fetch(plan.attempt_id, token, reference, into, max_bytes)

    def begin(self) -> None:
        """Say that the first step is about to begin; from here on the attempt counts (P13)."""
        self.begun = True
        started = wire.Started(window_id=self._start.window_id, context_id=self._start.context_id)
        self._tell(started, urgent=False)

    def stored(self, seq: int) -> None:
        """Everything up to `seq` is durable."""
        self._stored = max(self._stored, seq)
        self._moved.set()

    def disown(self) -> None:
        """Nothing more will be stored."""
        self._disowned = True
        self._moved.set()

    def _tell(self, event: wire.AttemptEvent, *, urgent: bool) -> None:
        self._seq += 1
        self._post(ev.Noted(self._start.command_id, event, self._wall_clock(), urgent))
