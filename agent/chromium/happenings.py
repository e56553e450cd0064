"""What a page did beside its job, kept within bounds: a page may do it a million times."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from agent.ports import Denied, Evidence
from farm.protocol.messages import AttemptEvent, Notice

_EACH = 20
_DENIED = 10_000
_DETAIL = 500


class Happenings:
    """What the attempt tells beside its steps. Put in at once; `forward` hands it on."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[AttemptEvent] = asyncio.Queue()
        self._counts: Counter[str] = Counter()
        self._denied: list[Denied] = []

    def note(self, code: str, detail: str) -> None:
        """Keep a notice; the first twenty of each code are kept."""
        self._counts[code] += 1
        if self._counts[code] <= _EACH:
            self._events.put_nowait(Notice(code=code, detail=detail[:_DETAIL]))

    def deny(self, denied: Denied) -> None:
        """Keep what the egress proxy answered itself."""
        if len(self._denied) < _DENIED:
            self._denied.append(denied)
        code = denied.proxy or ("egress_unreachable" if denied.unreachable else "egress_denied")
        self.note(code, f"{denied.url}: {denied.reason}")

    def denied(self) -> Sequence[Denied]:
        """Return what has been denied so far, oldest first."""
        return self._denied

    def tell(self, event: AttemptEvent) -> None:
        """Keep an event of another kind, which its teller keeps within bounds."""
        self._events.put_nowait(event)

    async def forward(self, evidence: Evidence) -> None:
        """Hand it on as it comes, until cancelled."""
        while True:
            await evidence.note(await self._events.get())

    async def forward_rest(self, evidence: Evidence) -> None:
        """Hand on what is still here."""
        while not self._events.empty():
            await evidence.note(self._events.get_nowait())
