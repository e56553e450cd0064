"""The API over real stores; only the dispatcher is a stand-in."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry

from farm.api.agents import agent_route
from farm.api.app import build_app
from farm.api.auth import TokenBook
from farm.api.channels import AgentChannels
from farm.api.deps import Deps
from farm.api.live.elsewhere import HeldBy
from farm.api.live.places import Place, Places
from farm.api.live.routes import Live, live_routes
from farm.api.readiness import Readiness
from farm.api.request_state import Principal
from farm.api.serving import ApiRunner
from farm.clock import system_clock
from farm.config import ArtifactSettings, LiveSettings, Settings
from farm.core.commands import Retention
from farm.core.job_states import AttemptState, JobState
from farm.core.model import ClientId, ContextId, Instant, Namespace, Token
from farm.core.namespaces import Minting, Origin
from farm.jobs.feed import JobFeed
from farm.jobs.ids import random_id
from farm.jobs.interventions import Interventions
from farm.jobs.live import LiveAttempts
from farm.jobs.ports import Progress, Waiting
from farm.jobs.readings import Readings
from farm.jobs.service import JobService
from farm.jobs.why import Explaining
from farm.main.files import artifacts_of
from farm.main.keeping import Keeping, keeping_of
from farm.main.live import live_of
from farm.manager import WorkerContextManager
from farm.manager.agent_news import AgentNews
from farm.manager.bridges import Bridges
from farm.manager.delivery import AppNode
from farm.manager.leaving import Leaving
from farm.manager.misses import Misses
from farm.manager.namespaces import NamespaceBook
from farm.manager.queues import DeclaredQueues
from farm.stores.ledger import (
    SqlBacklog,
    SqlDeployments,
    SqliteDatabase,
    SqlLedger,
    SqlNamespaces,
)
from farm.stores.memory import (
    MemoryClusterEvents,
    MemoryCommandLog,
    MemoryParcels,
    MemoryRegistry,
    PostOffice,
)
from farm.stores.ports.routes import CoordinatorId
from farm.stores.records import Attempt, Evidence, Expected, Finish, Item
from tests.identities import identity_book

DEFAULT = Namespace("default")
AGENT = ClientId("agent-1")
JOB: Mapping[str, Any] = {"name": "a job", "steps": [{"goto": "https://example.com/"}]}
HELD_EVENTS = 100
MAX_ARTIFACT = 256 * 1024
PRESENT_S = 3600.0
"""Agents are there once they have come, however slow the machine is: none of them beats."""
SILENCE_S = 0.6
"""How long a coordinator that is gone is waited for."""
LIVE = LiveSettings(grace_s=0.3, max_viewers_per_tab=5)


@dataclass
class StandInDispatcher:
    """Remembers what it was told, and says what the test wants it to say."""

    woken: int = 0
    cancelled: list[str] = field(default_factory=list)
    waits: dict[str, Waiting] = field(default_factory=dict)
    does: dict[str, Progress] = field(default_factory=dict)

    def unserved(self) -> Mapping[str, Waiting]:
        return self.waits

    def wake(self) -> None:
        self.woken += 1

    def look_anew(self) -> None:
        self.wake()

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)

    def waiting(self, match_key: str) -> Waiting | None:
        return self.waits.get(match_key)

    def progress(self, job_id: str) -> Progress | None:
        return self.does.get(job_id)


@dataclass
class Stack:
    """A farm's API that listens, and everything behind it."""

    url: str
    app: web.Application
    http: aiohttp.ClientSession
    """Sends no token by itself."""
    ledger: SqlLedger
    registry: MemoryRegistry
    dispatcher: StandInDispatcher
    feed: JobFeed
    events: MemoryClusterEvents
    leaving: Leaving
    keeping: Keeping
    ended: list[ClientId]
    """Whose links were ended."""
    tokens: TokenBook
    namespaces: NamespaceBook
    told: list[tuple[str, Namespace, Mapping[str, Any]]]
    """What was told of namespaces."""
    jobs: JobService
    admin: str
    agent: str
    probe: "Probe"
    owners: dict[ClientId, str]
    misses: Misses
    node: AppNode
    log: MemoryCommandLog
    live: Live
    bridges: Bridges
    acts: "StandInActs"

    def as_admin(self, **headers: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.admin}", **headers}

    def as_agent(self, **headers: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.agent}", **headers}

    async def submit(self, job: Mapping[str, Any] = JOB) -> str:
        async with self.http.post(
            f"{self.url}/v1/jobs", json=dict(job), headers=self.as_admin()
        ) as response:
            assert response.status == 201, await response.text()
            return str((await response.json())["id"])

    async def start(
        self, job_id: str, number: int = 1, *, recordings: Sequence[Expected] = ()
    ) -> Attempt:
        attempt = await self.ledger.start_attempt(
            job_id,
            attempt_id=f"{job_id}-{number}",
            command_id=f"command-{job_id}-{number}",
            client_id=AGENT,
            epoch=1,
            context_id=ContextId("context-1"),
            token=Token(store_epoch=1, counter=number),
            recordings=recordings,
            now=system_clock(),
        )
        assert attempt is not None
        self.feed.publish(job_id)
        return attempt

    async def add_items(
        self, attempt: Attempt, *items: Mapping[str, Any], seq: int = 1, dataset: str = "items"
    ) -> None:
        stored = await self.ledger.record(
            attempt.attempt_id,
            attempt.token,
            [
                Evidence(
                    seq=seq,
                    event_type="items",
                    at=system_clock(),
                    data={"dataset": dataset, "first": 0, "count": len(items)},
                    items=tuple(
                        Item(
                            attempt_id=attempt.attempt_id,
                            attempt_number=attempt.number,
                            dataset=dataset,
                            index=index,
                            data=item,
                        )
                        for index, item in enumerate(items)
                    ),
                )
            ],
            now=system_clock(),
        )
        assert stored == seq
        self.feed.publish(attempt.job_id)

    async def note(self, attempt: Attempt, seq: int, type: str, **data: Any) -> None:
        stored = await self.ledger.record(
            attempt.attempt_id,
            attempt.token,
            [Evidence(seq=seq, event_type=type, at=system_clock(), data=data)],
            now=system_clock(),
        )
        assert stored == seq
        self.feed.publish(attempt.job_id)

    async def finish(
        self,
        attempt: Attempt,
        *,
        attempt_state: AttemptState = AttemptState.SUCCEEDED,
        job_state: JobState = JobState.SUCCEEDED,
        failure: Mapping[str, Any] | None = None,
    ) -> None:
        done = await self.ledger.finish(
            Finish(
                attempt_id=attempt.attempt_id,
                attempt_state=attempt_state,
                job_state=job_state,
                failure=failure,
                counts=True,
                not_before=Instant(0.0),
                events=(("finished", {"state": job_state.value}),),
            ),
            now=system_clock(),
        )
        assert done is not None
        self.feed.publish(attempt.job_id)


@dataclass
class Probe:
    """A self-test with the outcome the test wants."""

    reason: str | None = None
    ran: int = 0

    async def __call__(self) -> str | None:
        self.ran += 1
        return self.reason


@dataclass
class StandInActs:
    """Remembers what viewers wanted, and does nothing."""

    wanted: list[tuple[str, str]] = field(default_factory=list)
    refuse_with: str | None = None

    async def __call__(self, place: Place, action: str, by: str) -> str | None:
        self.wanted.append((action, by))
        return self.refuse_with


async def _serve_agent(request: web.Request, bearer: Principal) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.send_str(bearer.token_id)
    await socket.close()
    return socket


@asynccontextmanager
async def running(
    directory: Path,
    *,
    min_free_bytes: int = 0,
    live_settings: LiveSettings = LIVE,
    coordinator: str | None = None,
    recordings_max_bytes: int = 2**40,
    files_max_bytes: int = 2**40,
    minting: Minting = "closed",
    registry: MemoryRegistry | None = None,
    office: PostOffice | None = None,
    held_by: HeldBy | None = None,
) -> AsyncIterator[Stack]:
    """Serve the API on a free loopback port.

    In an `office` are others, of whose links `held_by` knows.
    """
    database = SqliteDatabase(directory / "farm.db")
    ledger = SqlLedger(database)
    store_epoch = await ledger.open()
    try:
        registry = registry or MemoryRegistry(store_epoch=store_epoch, presence_window_s=PRESENT_S)
        dispatcher, feed, probe = StandInDispatcher(), JobFeed(), Probe()
        events = MemoryClusterEvents(system_clock, held=HELD_EVENTS)
        tokens = TokenBook(ledger, system_clock)
        told: list[tuple[str, Namespace, Mapping[str, Any]]] = []
        namespaces = NamespaceBook(
            SqlNamespaces(database),
            system_clock,
            minting=minting,
            tell=lambda *event: told.append(event),
            moved=lambda _: dispatcher.look_anew(),
        )
        await namespaces.create(DEFAULT, Origin.START_MINT)
        log = MemoryCommandLog(since=system_clock(), retention=Retention(keep=10))
        node = AppNode(commands=log, clock=system_clock)
        owners: dict[ClientId, str] = {}
        ended: list[ClientId] = []
        misses = Misses()
        deployments = SqlDeployments(database)
        queues = DeclaredQueues((), deployments)
        manager = WorkerContextManager(
            context_registry=registry,
            connection_registry=registry,
            browser_window_registry=registry,
            app_node=node,
            queues=queues,
        )
        _, admin = await tokens.add(scope="admin", namespace=DEFAULT, name="admin")
        record, agent = await tokens.add(scope="agent", namespace=DEFAULT, name="agent")
        owners[AGENT] = record.token_id

        async def owns(token_id: str, client_id: ClientId) -> bool:
            return owners.get(client_id) == token_id

        interventions = Interventions(LiveAttempts(), node, random_id)
        identities = identity_book(database, system_clock)
        jobs = JobService(
            ledger, identities, dispatcher, feed, system_clock, interventions, queues=queues
        )
        acts, metrics = StandInActs(), CollectorRegistry()
        settings = Settings(
            data_dir=directory,
            artifacts=ArtifactSettings(
                max_bytes=MAX_ARTIFACT,
                min_free_bytes=min_free_bytes,
                min_free_inodes=0,
                files_max_bytes=files_max_bytes,
            ),
        )
        keeping = keeping_of(
            settings, await artifacts_of(settings), ledger, namespaces, system_clock, metrics
        )
        bridges = Bridges(
            MemoryParcels(CoordinatorId(coordinator or "farm"), office), silence_s=SILENCE_S
        )
        live = live_of(
            live_settings,
            channels=AgentChannels(
                node.tell_here,
                lambda token_id, client_id: owners.get(client_id) == token_id,
                bridges,
            ),
            places=Places(registry, ledger, system_clock),
            acts=acts,
            feed=feed,
            clock=system_clock,
            key=b"a key of the tests",
            coordinator=coordinator,
            bridges=bridges,
            held_by=held_by or node.held_by,
            metrics=metrics,
        )
        leaving = Leaving(
            registry=registry,
            app_node=node,
            news=AgentNews(events),
            end_link=lambda client_id, _: ended.append(client_id),
            clock=system_clock,
            drain_s=60.0,
            metrics=metrics,
        )
        backlog = SqlBacklog(database)
        readings = Readings(
            dispatcher=dispatcher, queue=backlog, explain=manager.explain, clock=system_clock
        )
        app = build_app(
            deps=Deps(
                ledger=ledger,
                artifacts=keeping.artifacts,
                handed_in=keeping.handed_in,
                retention=keeping.retention,
                registry=registry,
                app_node=node,
                jobs=jobs,
                identities=identities,
                readings=readings,
                feed=feed,
                events=events,
                leaving=leaving,
                deployments=deployments,
                deployed=queues.changed,
                tokens=tokens,
                namespaces=namespaces,
                owns=owns,
                misses=misses.of,
                explaining=Explaining(
                    registry=registry,
                    ledger=ledger,
                    queue=backlog,
                    readings=readings,
                    explain=manager.explain,
                    queues=queues,
                    clock=system_clock,
                ),
                readiness=Readiness(probe, system_clock),
                clock=system_clock,
                metrics=metrics,
                max_artifact_bytes=MAX_ARTIFACT,
                recordings_max_bytes=recordings_max_bytes,
            ),
            allowed_hosts=("farm.example",),
            more_routes=(agent_route(_serve_agent), *live_routes(live)),
            live_links=live.links,
        )
        runner = ApiRunner(app, shutdown_timeout=5)
        await runner.setup()
        carrying = asyncio.create_task(bridges.run())
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            async with aiohttp.ClientSession() as http:
                yield Stack(
                    url=f"http://127.0.0.1:{runner.addresses[0][1]}",
                    app=app,
                    http=http,
                    ledger=ledger,
                    registry=registry,
                    dispatcher=dispatcher,
                    feed=feed,
                    events=events,
                    leaving=leaving,
                    keeping=keeping,
                    ended=ended,
                    tokens=tokens,
                    namespaces=namespaces,
                    told=told,
                    jobs=jobs,
                    admin=admin,
                    agent=agent,
                    probe=probe,
                    owners=owners,
                    misses=misses,
                    node=node,
                    log=log,
                    live=live,
                    bridges=bridges,
                    acts=acts,
                )
        finally:
            await runner.cleanup()
            carrying.cancel()
            await asyncio.wait([carrying])
    finally:
        await ledger.close()
