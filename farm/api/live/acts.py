"""What viewers in control want of the job in a tab, done as everybody else's wishes are."""

from collections.abc import Mapping

from farm.api.live.places import Place, Places
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

    def __init__(self, jobs: JobService, places: Places) -> None:
        self._jobs = jobs
        self._places = places

    async def __call__(self, place: Place, action: str, by: str) -> str | None:
        """Do it; return None, or why it was not done."""
        if place.job_id is None:
            return "no job runs in this tab"
        try:
            # The job may be at another attempt by now, in a tab that this viewer may not see.
            if not await self._places.holds(place):
                return "the task is over"
            if action == "stop":
                await self._jobs.cancel(place.namespace, place.job_id, by=by)
                return None
            wanted = Wanted(kind=_KINDS[action], by=by)
            done = await self._jobs.intervene(place.namespace, place.job_id, wanted)
        except FarmError as error:
            return error.detail
        if done.outcome == "applied":
            return None
        return done.detail or done.outcome.replace("_", " ")
