"""A farm that can be verified: everything real, over the stores that a test gives it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry

from farm.api.agent_links import AgentLinks
from farm.api.agent_tokens import AgentTokens
from farm.api.agents import agent_route
from farm.api.app import build_app
from farm.api.auth import TokenBook
from farm.api.deps import Deps
from farm.api.link_deps import LinkDeps, LinkRules
from farm.api.readiness import Readiness
from farm.api.serving import ApiRunner
from farm.api.verify import verify_route
from farm.clock import Clock, system_clock
from farm.config import Settings
from farm.core.model import Namespace
from farm.jobs.dispatcher import JobDispatcher
from farm.jobs.readings import Readings
from farm.jobs.rules import AttemptRules
from farm.jobs.why import Explaining
from farm.main.files import artifacts_of
from farm.main.jobs import JobRules, jobs_of
from farm.main.keeping import keeping_of
from farm.manager.admission import Registrations
from farm.manager.agent_news import AgentNews
from farm.manager.delivery import AppNode
from farm.manager.disconnecting import Disconnects
from farm.manager.leaving import Leaving
from farm.manager.loops import every
from farm.manager.namespaces import NamespaceBook
from farm.manager.probe import AgentProbe
from farm.manager.queues import DeclaredQueues
from farm.protocol.plan import Egress
from farm.protocol.resources import PointView, VerifyEnd
from farm.sdk import FarmClient
from farm.stores.ledger import (
    SqlBacklog,
    SqlDeployments,
    SqliteDatabase,
    SqlLedger,
    SqlNamespaces,
)
from farm.stores.memory import MemoryClusterEvents, MemoryCommandLog, MemoryRegistry
from farm.stores.ports.commands import CommandLog
from farm.verify import VERIFY, Verifier
from farm.verify.client import Dial, ProbeClient
from farm.verify.points import POINTS, Point
from farm.verify.stage import Farm
from tests.identities import identity_book
from tests.patience import PATIENCE_S
from tests.stores.pool import Everything

DEFAULT = Namespace("default")
WINDOW_S = 3.0


@dataclass(kw_only=True)
class Served:
    """A farm that listens."""

    url: str
    admin: str
    agent: str
    farm: Farm
    dispatcher: JobDispatcher
    tokens: TokenBook
    log: CommandLog
    stop: Callable[[], Awaitable[None]]
    """Stops listening, as a farm does that is told to stop."""

    def client(self) -> FarmClient:
        return FarmClient(self.url, self.admin)

    async def verified(self) -> tuple[dict[int, PointView], VerifyEnd]:
        """Have it verify itself."""
        async with self.client() as client:
            told = [line async for line in client.verify()]
        end = told.pop()
        assert isinstance(end, VerifyEnd)
        return {point.number: point for point in told if isinstance(point, PointView)}, end

    async def left(self) -> list[str]:
        """Say what there is of verifications."""
        snapshot = await self.farm.registry.snapshot(now=self.farm.clock())
        jobs = await self.farm.ledger.jobs(VERIFY, state=None, before=None, limit=10)
        known = await self.log.deliveries(VERIFY, now=self.farm.clock(), failed_since=self._never())
        return [
            *(c.client_id for c in snapshot.clients if VERIFY in c.namespaces),
            *(job.job_id for job in jobs),
            *known,
        ]

    def _never(self) -> Any:
        return self.farm.clock() - 1e6

    async def joined(self, group: asyncio.TaskGroup, probe: ProbeClient) -> asyncio.Task[None]:
        """Let an agent of the namespace `default` in, on a link of its own."""

        async def live() -> None:
            async with aiohttp.ClientSession() as session:
                headers = {"Authorization": f"Bearer {self.agent}"}
                url = f"{self.url}/v1/agent"
                await probe.live(Dial(session=session, url=url, headers=headers))

        life = group.create_task(live())
        await until(lambda: self._has(probe))
        return life

    async def _has(self, probe: ProbeClient) -> bool:
        snapshot = await self.farm.registry.snapshot(now=self.farm.clock())
        return any(c.client_id == probe.client_id and c.contexts for c in snapshot.clients)


async def until(condition: Callable[[], Awaitable[object]], within_s: float = PATIENCE_S) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(within_s):
        while not await condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(
    directory: Path,
    *,
    registry: Everything | None = None,
    log: CommandLog | None = None,
    ledger: SqlLedger | None = None,
    clock: Clock = system_clock,
    points: Sequence[Point] = POINTS,
    proof_s: float = 45.0,
    sweeps: bool = True,
) -> AsyncIterator[Served]:
    """Run one; only what a test gives it differs from what `farm serve` runs."""
    database = SqliteDatabase(directory / "farm.db")
    ledger = ledger or SqlLedger(database)
    epoch = await ledger.open()
    try:
        registry = registry or MemoryRegistry(store_epoch=epoch, presence_window_s=WINDOW_S)
        log = log or MemoryCommandLog(since=clock())
        node = AppNode(commands=log, clock=clock)
        tokens = TokenBook(ledger, clock)
        identities, events = identity_book(database, clock), MemoryClusterEvents(clock)
        deployments = SqlDeployments(ledger.database)
        queues = DeclaredQueues((), deployments, clock=clock)
        jobs = jobs_of(
            ledger=ledger,
            registry=registry,
            app_node=node,
            identities=identities,
            events=events,
            clock=clock,
            rules=JobRules(
                attempts=AttemptRules(
                    egress=Egress(),
                    renew_interval_s=1.0,
                    retry_initial_s=0.05,
                    retry_max_s=1.0,
                    max_free_losses=5,
                ),
                gone_after_s=WINDOW_S * 3,
            ),
            queues=queues,
        )
        dispatcher, manager = jobs.dispatcher, jobs.manager
        agent_tokens = AgentTokens()
        links = AgentLinks(
            LinkDeps(
                registry=registry,
                registrations=Registrations(registry, clock),
                app_node=node,
                dispatcher=dispatcher,
                recorder=jobs.recorder,
                interventions=jobs.interventions,
                news=AgentNews(events),
                tokens=agent_tokens,
                disconnects=Disconnects(manager, clock, grace_s=None),
                clock=clock,
                channel_refused=lambda *_: None,
                rules=LinkRules(
                    heartbeat_interval_s=0.1, window_s=WINDOW_S, max_frame_bytes=1 << 20
                ),
            )
        )
        farm = Farm(
            registry=registry,
            app_node=node,
            ledger=ledger,
            jobs=jobs.service,
            clock=clock,
            agent_is_gone=dispatcher.agents.is_gone,
        )
        verifier = Verifier(
            farm,
            lambda: tokens.lend(scope="agent", namespace=VERIFY, name="farm verify"),
            points=points,
            proof_s=proof_s,
        )
        metrics = CollectorRegistry()
        leaving = Leaving(
            registry=registry,
            app_node=node,
            news=AgentNews(events),
            end_link=links.end,
            clock=clock,
            drain_s=60.0,
            metrics=metrics,
        )
        backlog = SqlBacklog(database)
        readings = Readings(
            dispatcher=dispatcher, queue=backlog, explain=manager.explain, clock=clock
        )
        book = NamespaceBook(SqlNamespaces(ledger.database), clock)
        settings = Settings(data_dir=directory)
        keeping = keeping_of(settings, await artifacts_of(settings), ledger, book, clock, metrics)
        app = build_app(
            deps=Deps(
                ledger=ledger,
                artifacts=keeping.artifacts,
                handed_in=keeping.handed_in,
                retention=keeping.retention,
                registry=registry,
                app_node=node,
                jobs=jobs.service,
                identities=identities,
                readings=readings,
                feed=jobs.feed,
                events=events,
                leaving=leaving,
                deployments=deployments,
                deployed=queues.changed,
                tokens=tokens,
                namespaces=book,
                owns=agent_tokens.may_act,
                misses=manager.misses,
                explaining=Explaining(
                    registry=registry,
                    ledger=ledger,
                    queue=backlog,
                    readings=readings,
                    explain=manager.explain,
                    queues=queues,
                    clock=clock,
                ),
                readiness=Readiness(AgentProbe(registry, node, clock, not_of=(VERIFY,)), clock),
                clock=clock,
                metrics=metrics,
                max_artifact_bytes=1,
            ),
            more_routes=(agent_route(links.serve), verify_route(verifier)),
        )
        app.on_shutdown.append(lambda _: links.close_all())
        _, admin = await tokens.add(scope="admin", namespace=DEFAULT, name="admin")
        _, agent = await tokens.add(scope="agent", namespace=DEFAULT, name="agent")
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(dispatcher.run())]
            if sweeps:
                loops.append(group.create_task(every(0.1, manager.release_expired, name="sweep")))
            await dispatcher.ready()
            async with _listening(app) as (url, runner):
                yield Served(
                    url=url,
                    admin=admin,
                    agent=agent,
                    farm=farm,
                    dispatcher=dispatcher,
                    tokens=tokens,
                    log=log,
                    stop=runner.cleanup,
                )
            for loop in loops:
                loop.cancel()
    finally:
        await ledger.close()


@asynccontextmanager
async def _listening(app: web.Application) -> AsyncIterator[tuple[str, ApiRunner]]:
    runner = ApiRunner(app, shutdown_timeout=5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", runner
    finally:
        await runner.cleanup()
