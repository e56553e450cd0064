"""What comes of asking for a context."""

from dataclasses import dataclass

from farm.core.decide import Verdict
from farm.core.model import Request
from farm.core.reservation import Reservation
from farm.core.sites import Site
from farm.manager.handle import ContextHandle
from farm.protocol.plan import BrowserOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    """A context is held; release the handle when done."""

    handle: ContextHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAcquired:
    """Nothing would do, and why."""

    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """Room reserved for a context that is still to be created; `complete` or `abandon` it."""

    request: Request
    reservation: Reservation
    options: BrowserOptions
    timeout_s: float
    """How long its assignment will hold without being renewed."""

    @property
    def site(self) -> Site:
        """Where."""
        return self.reservation.site
