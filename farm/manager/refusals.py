"""Telling of agents that are refused, without telling the same for ever."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from farm.clock import Clock
from farm.core.admission import Claim, Enrolment, Refusal, RefusedFor
from farm.core.model import Instant, Namespace

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_MOST_SITES = 4096
"""More tokens than this are not in use at one time; the one refused longest ago is forgotten."""
_LINES_AT_ONCE = 10
_LINE_EVERY_S = 60.0

Tell = Callable[[str, Namespace, Mapping[str, Any]], None]
"""(kind, namespace, data) -> None: what has happened, told to one namespace."""


class AdmissionAudit:
    """Tells of refusals when they change: who is refused dials for ever.

    A site is the token that an agent came with, by whatever transport, and a change is another
    reason: what the refused party says of itself makes no line, and is not remembered. Who goes
    from one reason to another, and back, is told of `_LINES_AT_ONCE` times, and then as often as
    `_LINE_EVERY_S` allows. Each line says how many refusals went untold before it.
    """

    def __init__(self, tell: Tell, clock: Clock) -> None:
        self._tell = tell
        self._clock = clock
        self._sites: OrderedDict[str, _Site] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sites)

    def refused(self, claim: Claim, enrolment: Enrolment, refusal: Refusal) -> None:
        """Log a refusal, unless this site was refused for the same reason last."""
        now = self._clock()
        site = self._sites.setdefault(enrolment.token_id, _Site(at=now))
        self._sites.move_to_end(enrolment.token_id)
        if len(self._sites) > _MOST_SITES:
            self._sites.popitem(last=False)
        untold = site.untold
        if not site.is_news(refusal.reason, now):
            return
        log.warning(
            "agent.refused",
            token_id=enrolment.token_id,
            client_id=claim.client_id,
            namespaces=list(claim.namespaces),
            node=claim.node,
            reason=refusal.reason.value,
            detail=refusal.detail,
            dials_again=refusal.retry,
            untold=untold,
        )
        for namespace in sorted(enrolment.namespaces):
            told = {"reason": refusal.reason.value, "detail": refusal.detail, "untold": untold}
            self._tell("agent_refused", namespace, {"client_id": claim.client_id, **told})

    def admitted(self, enrolment: Enrolment) -> None:
        """Forget what this site was refused for last: the next refusal is news."""
        if (site := self._sites.get(enrolment.token_id)) is not None:
            site.reason = None


@dataclass(slots=True, kw_only=True)
class _Site:
    """What is remembered of one that was refused."""

    at: Instant
    """When its lines were counted last."""
    reason: RefusedFor | None = None
    """What it was last told to be refused for."""
    untold: int = 0
    lines: float = _LINES_AT_ONCE
    """How many more there may be now."""

    def is_news(self, reason: RefusedFor, now: Instant) -> bool:
        """Count a refusal; tell whether there is to be a line of it."""
        earned = max(0.0, now - self.at) / _LINE_EVERY_S
        self.lines, self.at = min(_LINES_AT_ONCE, self.lines + earned), now
        if reason is self.reason or self.lines < 1:
            self.untold += 1
            return False
        self.reason, self.untold = reason, 0
        self.lines -= 1
        return True
