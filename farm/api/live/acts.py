"""What viewers in control want of the job in a tab, done as everybody else's wishes are."""

from collections.abc import Awaitable, Callable, Mapping

from farm.api.live.places import Place
from farm.core.model import ClientId
from farm.errors import FarmError
from farm.jobs.ids import random_id
from farm.jobs.service import JobService
from farm.manager.delivery import to_wire_token
from farm.protocol import messages as wire

_KINDS: Mapping[str, wire.Intervention] = {
    "pause": "pause",
    "resume": "resume",
    "take_over": "takeover",
    "hand_back": "hand_back",
}


class JobActs:
    """Implements `farm.api.live.session.Acts`."""

    def __init__(
        self, jobs: JobService, tell: Callable[[ClientId, wire.ToAgent], Awaitable[None]]
    ) -> None:
        self._jobs = jobs
        self._tell = tell

    async def __call__(self, place: Place, action: str, by: str) -> str | None:
        """Do it; return None, or why it was not done."""
        if place.job_id is None or place.command_id is None:
            return "no job runs in this tab"
        try:
            if action == "stop":
                await self._jobs.cancel(place.namespace, place.job_id)
            else:
                await self._tell(
                    place.client_id,
                    wire.Intervene(
                        intervention_id=random_id("int"),
                        command_id=place.command_id,
                        token=to_wire_token(place.token),
                        kind=_KINDS[action],
                        by=by,
                    ),
                )
        except FarmError as error:
            return error.detail
        return None
