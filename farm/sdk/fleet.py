"""Part of `FarmClient`: agents, what they have, deployments, and what happens in the farm."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from farm.protocol.resources import (
    AgentList,
    AgentView,
    ClusterEventView,
    ClusterGap,
    ClusterSnapshot,
    DeploymentList,
    DeploymentView,
    LeftList,
    LeftView,
    WindowList,
    WindowView,
    WorkerList,
    WorkerView,
)
from farm.sdk.errors import FarmUnreachableError
from farm.sdk.streams import Sent, server_sent
from farm.sdk.transport import Transport, chunks, path_of

Told = ClusterSnapshot | ClusterEventView | ClusterGap


class FleetCalls:
    """Part of `FarmClient`."""

    _farm: Transport
    _reconnect_s: float

    async def agents(self) -> tuple[AgentView, ...]:
        """Return the agents."""
        return (await self._farm.call(AgentList, "GET", "/v1/agents")).items

    async def workers(self) -> tuple[WorkerView, ...]:
        """Return the contexts work can run in, and what they are lent to."""
        return (await self._farm.call(WorkerList, "GET", "/v1/workers")).items

    async def windows(self) -> tuple[WindowView, ...]:
        """Return the browser windows."""
        return (await self._farm.call(WindowList, "GET", "/v1/windows")).items

    async def drain_agent(self, client_id: str, *, deadline_s: float | None = None) -> LeftView:
        """Let an agent finish what it runs, and leave."""
        body = json.dumps({"deadline_s": deadline_s}).encode()
        return await self._farm.call(
            LeftView, "POST", path_of("agents", client_id, "drain"), data=body
        )

    async def drain_agents(
        self,
        *,
        all: bool = False,
        deployment: str | None = None,
        node: str | None = None,
        queue: str | None = None,
        deadline_s: float | None = None,
    ) -> tuple[LeftView, ...]:
        """Do so with all, or with those of a deployment, node or queue."""
        asked = {"all": all, "deployment": deployment, "node": node, "queue": queue}
        body = json.dumps({**asked, "deadline_s": deadline_s}).encode()
        found = await self._farm.call(LeftList, "POST", "/v1/agents/drain", data=body)
        return found.items

    async def remove_agent(self, client_id: str) -> LeftView:
        """Take an agent off the register; it may dial again."""
        return await self._farm.call(LeftView, "DELETE", path_of("agents", client_id))

    async def deployments(self) -> tuple[DeploymentView, ...]:
        """Return the deployments that are declared."""
        return (await self._farm.call(DeploymentList, "GET", "/v1/deployments")).items

    async def declare_deployment(
        self, name: str, queues: Sequence[str] = ("default",)
    ) -> DeploymentView:
        """Declare a deployment, or declare it otherwise."""
        body = json.dumps({"queues": list(queues)}).encode()
        return await self._farm.call(DeploymentView, "PUT", path_of("deployments", name), data=body)

    async def withdraw_deployment(self, name: str) -> None:
        """Declare a deployment no more."""
        async with self._farm.open("DELETE", path_of("deployments", name)):
            pass

    async def cluster_events(
        self, *, after: int | None = None, follow: bool = True
    ) -> AsyncIterator[Told]:
        """Yield what there is and then what happens, for ever.

        A broken connection is made again, and goes on where it was.

        Raises:
            FarmUnreachableError: If there is no farm to begin with, or the farm stays away for
                longer than `reconnect_s`.
        """
        loop = asyncio.get_running_loop()
        broken_at: float | None = None
        connected = False
        while True:
            try:
                async for sent in self._told(after, follow=follow):
                    connected, broken_at = True, None
                    if sent.id is not None:
                        after = int(sent.id)
                    yield _parsed(sent)
            except FarmUnreachableError:
                broken_at = loop.time() if broken_at is None else broken_at
                if not connected or loop.time() - broken_at > self._reconnect_s:
                    raise
            if not follow:
                return
            await asyncio.sleep(0.5)

    async def _told(self, after: int | None, *, follow: bool) -> AsyncIterator[Sent]:
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        query = {"follow": None if follow else "false"}
        async with self._farm.open("GET", "/v1/events", query=query, headers=headers) as response:
            async for sent in server_sent(chunks(response)):
                yield sent


def _parsed(sent: Sent) -> Told:
    match sent.event:
        case "snapshot":
            return ClusterSnapshot.model_validate_json(sent.data)
        case "gap":
            return ClusterGap.model_validate_json(sent.data)
        case _:
            return ClusterEventView.model_validate_json(sent.data)
