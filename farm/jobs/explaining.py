"""Why jobs wait, in the words that their namespace is told (P6, P16)."""

from farm.core.decide import Verdict
from farm.core.model import Request
from farm.jobs.ports import Waiting


def waiting_for(request: Request, verdict: Verdict) -> Waiting:
    """Return what a miss means to who waits; of agents of other namespaces it says nothing."""
    told = verdict.without_strangers()
    reasons = sorted({reason.value for reason in told.clients.values()})
    return Waiting(
        reason="no_agent" if told.reason is None else told.reason.value,
        remedy=told.remedy,
        detail=f"{len(told.clients)} agents looked at: {', '.join(reasons) or 'none'}",
        pool=told.pool,
        census=told.census,
        request=request,
    )
