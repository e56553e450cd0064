"""The disconnect policy (P10): what an agent holds is released at once, after a while, or not."""

from dataclasses import dataclass

import structlog

from farm.clock import Clock
from farm.core.model import ClientId, Instant, LinkId, Namespace
from farm.errors import StoreUnavailableError
from farm.manager.manager import WorkerContextManager

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    namespace: Namespace
    client_id: ClientId
    link: LinkId
    due_at: Instant


class Disconnects:
    """Releases what agents hold whose link has closed and that have not come back.

    Args:
        manager: Releases it.
        clock: The time.
        grace_s: How long an agent may take to come back; None leaves everything as it is until the
            agent is given up as gone.
    """

    def __init__(
        self, manager: WorkerContextManager, clock: Clock, *, grace_s: float | None
    ) -> None:
        self._manager = manager
        self._clock = clock
        self._grace_s = grace_s
        self._closed: list[_Closed] = []

    async def closed(self, namespace: Namespace, client_id: ClientId, link: LinkId) -> None:
        """Note that a link has closed; without grace release what its agent holds."""
        if self._grace_s is None:
            return
        due_at = Instant(self._clock() + self._grace_s)
        self._closed.append(
            _Closed(namespace=namespace, client_id=client_id, link=link, due_at=due_at)
        )
        if self._grace_s == 0:
            try:
                await self.sweep()
            except StoreUnavailableError as error:
                log.warning("disconnect.not_released", client_id=client_id, reason=error.detail)

    async def sweep(self) -> None:
        """Release what is due. Of an agent that has come back on another link, nothing is.

        Raises:
            StoreUnavailableError: If the store can't be reached; what is left is tried again.
        """
        now = self._clock()
        for one in [one for one in self._closed if one.due_at <= now]:
            await self._manager.on_client_disconnect(one.namespace, one.client_id, link=one.link)
            if one in self._closed:
                self._closed.remove(one)
