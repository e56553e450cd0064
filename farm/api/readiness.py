"""Whether the farm can do its work: a self-test by a real page, not older than half a minute."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from farm.clock import Clock
from farm.core.model import Instant
from farm.errors import FarmError

Probe = Callable[[], Awaitable[str | None]]
"""One self-test: None if the farm can work, else why not. One whose agents are all busy can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of a self-test."""

    at: Instant
    reason: str | None
    """None is ready."""


class Readiness:
    """Answers from the last self-test while it is fresh; however many ask, one test runs.

    A test is that `store`, where given, raises nothing, and what `probe` says.
    """

    def __init__(
        self,
        probe: Probe,
        clock: Clock,
        *,
        store: Callable[[], Awaitable[None]] | None = None,
        max_age_s: float = 30.0,
        max_bad_age_s: float = 1.0,
        timeout_s: float = 20.0,
    ) -> None:
        self._probe = probe
        self._store = store
        self._clock = clock
        self._max_age_s = max_age_s
        self._max_bad_age_s = max_bad_age_s
        self._timeout_s = timeout_s
        self._last: Verdict | None = None
        self._testing = asyncio.Lock()

    def worked(self) -> None:
        """A job has succeeded, which says as much as a test."""
        self._last = Verdict(at=self._clock(), reason=None)

    def failed(self, reason: str) -> None:
        """The farm is known to be unable to work."""
        self._last = Verdict(at=self._clock(), reason=reason)

    async def verdict(self) -> Verdict:
        """Return the last outcome if it is fresh, else test now."""
        async with self._testing:
            last = self._last
            if last is not None and self._is_fresh(last):
                return last
            self._last = Verdict(at=self._clock(), reason=await self._test())
            return self._last

    def _is_fresh(self, last: Verdict) -> bool:
        limit = self._max_age_s if last.reason is None else self._max_bad_age_s
        return 0 <= self._clock() - last.at <= limit

    async def _test(self) -> str | None:
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._store is not None:
                    await self._store()
                return await self._probe()
        except TimeoutError:
            return f"the self-test took longer than {self._timeout_s:g} s"
        except FarmError as error:
            return error.detail
