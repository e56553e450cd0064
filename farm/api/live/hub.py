"""Every tab that somebody looks at, and how many may."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from farm.api.channels import AgentChannels
from farm.api.live.places import Place
from farm.api.live.viewers import Viewer
from farm.api.live.watched import NotWatchableError, Watched
from farm.protocol.live import Closed


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRules:
    """See `farm.config.LiveSettings`."""

    max_viewers: int
    max_viewers_per_tab: int
    grace_s: float


class Hub:
    """Every tab that somebody looks at."""

    def __init__(self, channels: AgentChannels, rules: HubRules) -> None:
        self._channels = channels
        self._rules = rules
        self._tabs: dict[str, Watched] = {}

    def count(self) -> int:
        """Count the viewers."""
        return sum(len(watched.viewers) for watched in self._tabs.values())

    @contextlib.asynccontextmanager
    async def looking(self, place: Place, viewer: Viewer) -> AsyncIterator[Watched]:
        """Have somebody look at a tab for as long as the block lasts.

        Raises:
            NotWatchableError: If the tab can't be shown, or too many look already.
        """
        watched = self._tabs.get(place.context)
        if watched is None or watched.place.token != place.token:
            watched = self._watch(place)
        self._check_room(watched)
        self._tabs[place.context] = watched
        watched.add(viewer)
        try:
            await watched.ready()
            yield watched
        finally:
            await watched.remove(viewer, self._rules.grace_s)
            if not watched.viewers:
                await watched.close()

    def _watch(self, place: Place) -> Watched:
        def over() -> None:
            if self._tabs.get(place.context) is watched:
                del self._tabs[place.context]

        return (watched := Watched(place, self._channels, over))

    def _check_room(self, watched: Watched) -> None:
        rules = self._rules
        if len(watched.viewers) >= rules.max_viewers_per_tab or self.count() >= rules.max_viewers:
            full = Closed(reason="unavailable", detail="as many look already as the farm allows")
            raise NotWatchableError(full)

    def close(self) -> None:
        """The farm stops: tell every viewer."""
        stops = Closed(reason="farm_stops", detail="the farm is stopping")
        for watched in list(self._tabs.values()):
            watched.end(stops)
