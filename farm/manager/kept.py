"""What is read of a namespace now and then, and believed in between."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import structlog

from farm.clock import Clock
from farm.core.model import Instant, Namespace
from farm.errors import StoreUnavailableError

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

KEPT_S = 5.0
"""For so long what was read is believed without another look."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known(Generic[T]):
    value: T
    until: Instant


class Kept(Generic[T]):
    """What was last read of each namespace; it goes on while nothing can be read.

    Args:
        read: Reads it; raises StoreUnavailableError if it can't.
        clock: The time.
        what: Names it in the log.
    """

    def __init__(
        self, read: Callable[[Namespace], Awaitable[T]], clock: Clock, *, what: str
    ) -> None:
        self._read = read
        self._clock = clock
        self._what = what
        self._known: dict[Namespace, _Known[T]] = {}

    async def of(self, namespace: Namespace) -> T | None:
        """Return what is known of a namespace; None where nothing is, and nothing can be read."""
        known = self._known.get(namespace)
        if known is not None and self._clock() < known.until:
            return known.value
        found = await self.afresh(namespace)
        return known.value if found is None and known is not None else found

    async def afresh(self, namespace: Namespace) -> T | None:
        """Read it, whatever is known; None where it can't be read."""
        try:
            value = await self._read(namespace)
        except StoreUnavailableError as error:
            known = namespace in self._known
            log.warning(f"{self._what}.unknown", known=known, reason=error.detail)
            return None
        self._known[namespace] = _Known(value=value, until=Instant(self._clock() + KEPT_S))
        return value

    def changed(self, namespace: Namespace) -> None:
        """Believe what is known of a namespace only while nothing else can be read."""
        if (known := self._known.get(namespace)) is not None:
            self._known[namespace] = replace(known, until=Instant(0.0))
