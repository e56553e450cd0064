"""A coordinator without its edges, and an agent that does what the test says.

Ledger, registry, node, dispatcher and recorder are the real ones; the agent's link is a callable
in the process. The clock moves only when a test moves it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from farm.core.model import (
    Assignment,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Window,
    WindowId,
    link_of,
)
from farm.core.reservation import Denial
from farm.errors import StoreUnavailableError
from farm.jobs.rules import AttemptRules
from farm.jobs.sharing import Sharing
from farm.main.jobs import JobRules, jobs_of
from farm.manager.delivery import AppNode
from farm.manager.queues import DeclaredQueues
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from farm.protocol.plan import Egress
from farm.stores.ledger import SqlDeployments, SqliteDatabase, SqlLedger
from farm.stores.ledger.postgres import PostgresDatabase, Share
from farm.stores.ledger.sharing import SqlSharing
from farm.stores.memory import MemoryClusterEvents, MemoryCommandLog, MemoryRegistry
from farm.stores.ports.placements import PlacementReader
from farm.stores.ports.registries import Registry
from farm.stores.records import Attempt, Job
from tests.identities import identity_book
from tests.patience import PATIENCE_S

NS = Namespace("default")
WINDOW_S = 10.0
ANSWER_S = 60.0
"""So long an agent that answers may take on a busy machine."""
JOB: Mapping[str, Any] = {"name": "a job", "steps": [{"goto": "https://example.com/"}]}


async def until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.002)


class FlakyDatabase(SqliteDatabase):
    """Fails as long as it is told to."""

    away = False
    failed = 0

    async def write(self, work: Any) -> Any:
        if self.away:
            self.failed += 1
            raise StoreUnavailableError("the disk is away")
        return await super().write(work)


class Farm:
    """One life of a coordinator over a ledger's file."""

    def __init__(
        self,
        database: FlakyDatabase | PostgresDatabase,
        ledger: SqlLedger,
        store_epoch: int,
        renew_interval_s: float,
        registry: Registry | None,
        name: str | None,
        placements: PlacementReader | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.now = Instant(1_000_000.0 + (10_000 * store_epoch if registry is None else 0))
        self.name = name
        self._database, self.ledger = database, ledger
        self.shared = SqlSharing(database) if isinstance(database, PostgresDatabase) else None
        self.registry: Registry = registry or MemoryRegistry(
            store_epoch=store_epoch, presence_window_s=WINDOW_S
        )
        log = MemoryCommandLog(since=self.now)
        self.node = AppNode(commands=log, clock=self.clock)
        self.identities = identity_book(database, self.clock)
        self.events = MemoryClusterEvents(self.clock)
        self.metrics = CollectorRegistry()
        self.ended: list[tuple[ClientId, LinkId]] = []
        """The links it wanted closed."""
        self.deployments = SqlDeployments(database)
        self.queues = DeclaredQueues((), self.deployments, clock=self.clock)
        jobs = jobs_of(
            ledger=ledger,
            registry=self.registry,
            app_node=self.node,
            identities=self.identities,
            events=self.events,
            metrics=self.metrics,
            clock=self.clock,
            rules=JobRules(
                attempts=AttemptRules(
                    egress=Egress(),
                    renew_interval_s=renew_interval_s,
                    retry_initial_s=4.0,
                    retry_max_s=60.0,
                    max_free_losses=2,
                ),
                provision_timeout_s=5,
                gone_after_s=WINDOW_S * 1.25,
                postponed_s=WINDOW_S,
            ),
            queues=self.queues,
            placements=placements,
            coordinator=name,
            shared=self.shared,
            end_link=lambda *link: self.ended.append(link),
            answer_s=answer_s,
        )
        self.feed, self.live, self.manager = jobs.feed, jobs.live, jobs.manager
        self.dispatcher, self.recorder = jobs.dispatcher, jobs.recorder
        self.interventions, self.jobs = jobs.interventions, jobs.service
        self.sharing = Sharing(
            coordinator=name or "farm",
            ledger=ledger,
            registry=self.registry,
            live=self.live,
            clock=self.clock,
            gone_after_s=WINDOW_S * 1.25,
        )
        self.sharing.begin()
        if jobs.owning is not None:
            self.owning = jobs.owning
        self.loop: asyncio.Task[None] | None = None

    def clock(self) -> Instant:
        return self.now

    @property
    def database(self) -> FlakyDatabase:
        assert isinstance(self._database, FlakyDatabase)
        return self._database

    async def passes(self, seconds: float) -> None:
        self.now = Instant(self.now + seconds)
        self.dispatcher.wake()

    async def submit(self, *, namespace: Namespace = NS, **changes: Any) -> str:
        body = json.dumps({**JOB, **changes}).encode()
        job, _ = await self.jobs.submit(namespace, body, "application/json", {}, None)
        return job.job_id

    async def job(self, job_id: str) -> Job:
        return await self.ledger.job(NS, job_id)

    async def state(
        self, job_id: str, *states: str, within_s: float = PATIENCE_S, namespace: Namespace = NS
    ) -> Job:
        """Wait until the job is in one of the states."""
        async with asyncio.timeout(within_s):
            while (job := await self.ledger.job(namespace, job_id)).state not in states:
                await asyncio.sleep(0.005)
        return job

    async def attempts(self, job_id: str) -> list[Attempt]:
        return list(await self.ledger.attempts(job_id))

    async def held(self) -> Assignment:
        """Return the one assignment that the one agent has."""
        (client,) = (await self.registry.snapshot(now=self.now)).clients
        (held,) = client.assignments.values()
        return held

    async def waits(self, job_id: str) -> str:
        key = (await self.job(job_id)).match_key
        await until(lambda: self.dispatcher.waiting(key) is not None)
        waiting = self.dispatcher.waiting(key)
        assert waiting is not None
        return waiting.reason

    async def comes_to_wait(self, job_id: str, reason: str) -> None:
        """Wait until a job that may have waited for something else waits for this."""
        key = (await self.job(job_id)).match_key
        await until(
            lambda: (now := self.dispatcher.waiting(key)) is not None and now.reason == reason
        )


@asynccontextmanager
async def farm_on(
    directory: Path,
    *,
    renew_interval_s: float = 0.02,
    registry: Registry | None = None,
    name: str | None = None,
    postgres: str | None = None,
    placements: PlacementReader | None = None,
    answer_s: float = ANSWER_S,
) -> AsyncIterator[Farm]:
    """Run a coordinator; leaving ends it as a kill would, with nothing said to agents.

    With a registry and a name it is one of those that share the registry; and with the URL of a
    database the ledger, too.
    """
    database: FlakyDatabase | PostgresDatabase = FlakyDatabase(directory / "farm.db")
    if postgres is not None:
        database = PostgresDatabase(postgres, Share(name=name or "farm", lease_s=600.0))
    ledger = SqlLedger(database)
    epoch = await ledger.open()
    farm = Farm(database, ledger, epoch, renew_interval_s, registry, name, placements, answer_s)
    try:
        async with asyncio.TaskGroup() as group:
            loop = farm.loop = group.create_task(farm.dispatcher.run())
            await farm.dispatcher.ready()
            yield farm
            for client_id, (link, _) in list(farm.node._links.items()):
                await farm.node.detach(client_id, link)
            loop.cancel()
    finally:
        await ledger.close()


@dataclass
class Agent:
    """Opens what it is told to open; runs are the test's to drive."""

    client_id: str = "a"
    slots: int = 1
    metadata: Mapping[str, Any] = field(default_factory=dict)
    namespaces: tuple[Namespace, ...] = (NS,)
    node: str | None = None
    refuse_runs: str | None = None
    fail_opening: bool = False
    epoch: str = "browser-1"
    automatic: bool = False
    """Every run succeeds at once."""
    instance: str = "i"
    flows: int = 0
    """So many flows it may have, and no windows: it is a console agent."""

    farm: Farm | None = None
    links: int = 0
    tabs: dict[str, wire.Token | None] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    """Of the windows, by tab."""
    held_result: dict[str, wire.Result] = field(default_factory=dict)
    runs: dict[str, wire.Command] = field(default_factory=dict)
    heard: list[wire.ToAgent] = field(default_factory=list)
    opened: int = 0
    most_at_once: int = 0
    _made: int = 0
    _number: int = 0
    _epoch_number: int = 0
    _inbox: "asyncio.Queue[wire.ToAgent]" = field(default_factory=asyncio.Queue)

    @property
    def link(self) -> LinkId:
        link = LinkId(f"link-{self.client_id}-{self.links}")
        name = None if self.farm is None else self.farm.name
        return link if name is None else link_of(name, link)

    async def dial(self, farm: Farm, *, running: tuple[wire.Running, ...] | None = None) -> None:
        """Say hello, and report."""
        self.farm, self.links, self._number = farm, self.links + 1, 0
        inbox: asyncio.Queue[wire.ToAgent] = asyncio.Queue()
        self._inbox = inbox
        found = await farm.registry.register(
            Client(
                client_id=ClientId(self.client_id),
                client_type=ClientType.CONSOLE if self.flows else ClientType.BROWSER,
                link=self.link,
                epoch=0,
                instance=self.instance,
                namespaces=self.namespaces,
                metadata=self.metadata,
                node=self.node,
                capacity=Capacity(
                    max_concurrency=self.slots,
                    max_windows=self.slots + 1,
                    max_flows=self.flows,
                ),
                seen_at=farm.now,
            ),
            epoch_name=self.epoch,
            highest_token=None,
            now=farm.now,
        )
        assert not isinstance(found, Denial)
        self._epoch_number = found.epoch

        async def send(message: wire.ToAgent) -> None:
            inbox.put_nowait(message)

        await farm.node.attach(ClientId(self.client_id), self.link, send)
        listing = self.listing() if running is None else running
        await farm.dispatcher.agents.is_back(ClientId(self.client_id), self.epoch, listing, send)
        await self.report()
        farm.dispatcher.wake()

    def listing(self) -> tuple[wire.Running, ...]:
        return tuple(
            wire.Running(
                command_id=run.command_id,
                attempt_id=self.attempt_of(run),
                context_id=str(run.context_id),
                token=run.token or wire.Token(store_epoch=0, counter=0),
                epoch=self.epoch,
            )
            for run in self.runs.values()
        )

    async def hang_up(self) -> None:
        assert self.farm is not None
        await self.farm.node.detach(ClientId(self.client_id), self.link)
        await self.farm.registry.unlink(ClientId(self.client_id), self.link, now=self.farm.now)
        await self.farm.dispatcher.agents.link_closed(ClientId(self.client_id))

    async def report(self) -> None:
        assert self.farm is not None
        self._number += 1
        gone = await self.farm.registry.report(
            ClientId(self.client_id),
            self.link,
            epoch=self._epoch_number,
            number=self._number,
            windows=[]
            if self.flows
            else [
                Window(window_id=WindowId(tab), profile=self.profiles.get(tab, ""))
                for tab in self.tabs
            ],
            contexts=[
                Context(
                    context_id=ContextId(tab),
                    window_id=None if self.flows else WindowId(tab),
                    clean=token is None,
                )
                for tab, token in self.tabs.items()
            ],
            now=self.farm.now,
        )
        assert not isinstance(gone, Denial)
        self.farm.dispatcher.agents.context_is_gone(gone)

    async def live(self) -> None:
        """Take in what the farm says, for ever."""
        while True:
            try:
                message = self._inbox.get_nowait()
            except asyncio.QueueEmpty:
                await asyncio.sleep(0.001)
                continue
            self.heard.append(message)
            if isinstance(message, wire.Command):
                await self._obey(message)
            elif isinstance(message, wire.Stored) and message.done:
                self.runs.pop(message.command_id, None)

    async def _obey(self, order: wire.Command) -> None:
        match order.body:
            case wire.OpenWindow() | wire.CreateFlow():
                assert isinstance(order.body, wire.CreateFlow) is bool(self.flows)
                if isinstance(order.body, wire.OpenWindow):
                    self.profiles[f"T{self._made + 1}"] = order.body.profile
                self.opened += 1
                await self._open(order)
            case wire.RunPlan() if self.refuse_runs is not None:
                await self.answer(
                    wire.Ack.model_validate(
                        {"command_id": order.command_id, "refused": self.refuse_runs}
                    )
                )
            case wire.RunPlan():
                self.tabs[str(order.context_id)] = order.token
                self.runs[order.command_id] = order
                self.most_at_once = max(self.most_at_once, len(self.runs))
                if self.automatic:
                    await self.start(order)
                    await self.end(run=order)
            case wire.Release():
                self.tabs.pop(str(order.context_id), None)
                await self.report()
            case _:
                raise AssertionError(order)

    async def _open(self, order: wire.Command) -> None:
        if self.fail_opening:
            failure = Failure(reason=Reason.INTERNAL, detail="no window")
            await self.answer(
                wire.Result(command_id=order.command_id, outcome="failed", failure=failure)
            )
            return
        self._made += 1
        tab = f"T{self._made}"
        self.tabs[tab] = None
        await self.report()
        await self.answer(
            wire.Result(command_id=order.command_id, outcome="succeeded", value={"context_id": tab})
        )

    async def answer(self, message: wire.Ack | wire.Result) -> bool:
        assert self.farm is not None
        return await self.farm.node.answered(ClientId(self.client_id), message)

    # What a test lets it do

    async def running(self) -> wire.Command:
        """Wait for a run; return its command."""
        await until(lambda: self.runs)
        return next(iter(self.runs.values()))

    @staticmethod
    def attempt_of(run: wire.Command) -> str:
        assert isinstance(run.body, wire.RunPlan)
        return run.body.plan.attempt_id

    async def start(self, run: wire.Command | None = None) -> wire.Stored:
        return await self.tell(wire.Started(context_id="T1"), run=run)

    async def tell(
        self, *events: wire.AttemptEvent, first: int = 1, run: wire.Command | None = None
    ) -> wire.Stored:
        assert self.farm is not None
        run = run or await self.running()
        assert run.token is not None
        return await self.farm.recorder.record(
            ClientId(self.client_id),
            wire.Events(
                command_id=run.command_id,
                attempt_id=self.attempt_of(run),
                token=run.token,
                entries=tuple(
                    wire.Entry(seq=first + n, at=1.0, event=event) for n, event in enumerate(events)
                ),
            ),
        )

    async def end(
        self,
        outcome: str = "succeeded",
        reason: Reason | None = None,
        *,
        page_gone: bool = True,
        run: wire.Command | None = None,
    ) -> wire.Result:
        run = run or await self.running()
        failure = None if reason is None else Failure(reason=reason, detail="so")
        result = wire.Result.model_validate(
            {
                "command_id": run.command_id,
                "attempt_id": self.attempt_of(run),
                "token": run.token,
                "outcome": outcome,
                "failure": failure,
                "page_gone": page_gone,
            }
        )
        await self.answer(result)
        return result

    def told(self, kind: type) -> list[Any]:
        return [m for m in self.heard if isinstance(m, kind)]


@asynccontextmanager
async def living(*agents: Agent) -> AsyncIterator[None]:
    """Let agents take up what they are told."""
    async with asyncio.TaskGroup() as group:
        lives = [group.create_task(agent.live()) for agent in agents]
        yield
        for life in lives:
            life.cancel()
