"""What viewers in control want of the job in a tab, done as everybody else's wishes are."""

from farm.api.live.places import Place
from farm.errors import FarmError
from farm.jobs.service import JobService


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
                await self._jobs.cancel(place.namespace, place.job_id)
                return None
        except FarmError as error:
            return error.detail
        return f"{action} is not known"
