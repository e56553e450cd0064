"""What viewers in control want of the job in a tab, done as everybody else's wishes are."""

from collections.abc import Mapping

from farm.api.live.places import Place
from farm.errors import FarmError
from farm.jobs.interventions import Wanted
from farm.jobs.service import JobService
from farm.protocol import messages as wire

_KINDS: Mapping[str, wire.Intervention] = {
    "pause": "pause",
    "resume": "resume",
    "take_over": "takeover",
    "hand_back": "hand_back",
}


class JobActs:
    """Implements `farm.api.live.session.Acts`."""

    def __init__(self, jobs: JobService) -> None:
        self._jobs = jobs

    async def __call__(self, place: Place, action: str, by: str) -> str | None:
        """Do it; return None, or why it was not done."""
        if place.job_id is None:
            return "no job runs in this tab"
        try:
            if action == "stop":
                await self._jobs.cancel(place.namespace, place.job_id, by=by)
            else:
                wanted = Wanted(kind=_KINDS[action], by=by)
                done = await self._jobs.intervene(place.namespace, place.job_id, wanted)
                return None if done.outcome == "applied" else done.detail or done.outcome
        except FarmError as error:
            return error.detail
        return None
