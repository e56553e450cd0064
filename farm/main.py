"""The composition root: the one place that knows every concrete class."""

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from farm.api.agent_link import AgentLinks, LinkRules
from farm.api.agents import agent_route
from farm.api.app import build_app
from farm.api.auth import TokenBook
from farm.api.deps import Deps
from farm.api.readiness import Readiness
from farm.api.serving import ApiRunner
from farm.api.verify import verify_route
from farm.clock import system_clock
from farm.config import CommandSettings, Settings
from farm.core.commands import Retention
from farm.core.model import ClientId, Namespace
from farm.errors import ConflictError
from farm.jobs.attempts import AttemptRules, AttemptRunner
from farm.jobs.dispatcher import GoneRule, JobDispatcher
from farm.jobs.feed import JobFeed
from farm.jobs.ids import random_id
from farm.jobs.live import LiveAttempts
from farm.jobs.recorder import Recorder
from farm.jobs.service import JobService
from farm.manager.delivery import AppNode
from farm.manager.loops import every
from farm.manager.manager import WorkerContextManager
from farm.manager.probe import AgentProbe
from farm.protocol.messages import Drain
from farm.protocol.plan import Egress
from farm.stores.artifacts import DirectoryArtifacts
from farm.stores.ledger import SqliteDatabase, SqlLedger
from farm.stores.memory import MemoryCommandLog, MemoryRegistry
from farm.telemetry import configure_logging
from farm.verify import VERIFY, Verifier
from farm.verify.stage import Farm

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

DEFAULT_NAMESPACE = Namespace("default")
_SWEEP_S = 1.0
_SHUTDOWN_S = 2.0


class Coordinator:
    """A coordinator that runs: where it is, and what its owner may ask of it."""

    def __init__(
        self,
        *,
        url: str,
        admin_token: str,
        first_start: bool,
        tokens: TokenBook,
        dispatcher: JobDispatcher,
        live: LiveAttempts,
        app_node: AppNode,
    ) -> None:
        self.url = url
        self.admin_token = admin_token
        self.first_start = first_start
        self._tokens = tokens
        self._dispatcher = dispatcher
        self._live = live
        self._app_node = app_node
        self._minted: list[str] = []

    async def mint_agent_token(self, name: str) -> str:
        """Make a token of scope agent that ends with this coordinator; return its secret."""
        record, secret = await self._tokens.add(
            scope="agent", namespace=DEFAULT_NAMESPACE, name=name
        )
        self._minted.append(record.token_id)
        return secret

    async def revoke_minted(self) -> None:
        """Let the tokens it has minted open nothing any more."""
        for token_id in self._minted:
            await self._tokens.revoke(token_id)

    async def agent_ended(self, client_id: str) -> None:
        """Take note that the process of an agent no longer exists, and its browser with it."""
        await self._dispatcher.agent_is_gone(ClientId(client_id), "its process has ended")

    async def drain(self, deadline_s: float) -> None:
        """Start nothing more, and wait for what runs, at most so long."""
        self._dispatcher.close_intake()
        await self._app_node.tell_all(Drain(deadline_s=deadline_s))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await self._live.wait_empty()


@contextlib.asynccontextmanager
async def coordinator(settings: Settings) -> AsyncIterator[Coordinator]:
    """Run a coordinator for as long as the block lasts.

    The loops are children of the task group and the block is its body: a loop that crashes takes
    the block down, and a block that ends takes the loops down.

    Raises:
        ConflictError: If another farm uses the data directory.
        OSError: If the address can't be listened on.
    """
    configure_logging(json=settings.log_json, level=settings.log_level)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _only_one(settings.data_dir):
        ledger = SqlLedger(SqliteDatabase(settings.data_dir / "farm.db"))
        store_epoch = await ledger.open()
        try:
            async with _running(settings, ledger, store_epoch) as farm:
                yield farm
        finally:
            await ledger.close()


@contextlib.asynccontextmanager
async def _running(
    settings: Settings, ledger: SqlLedger, store_epoch: int
) -> AsyncIterator[Coordinator]:
    clock = system_clock
    registry = MemoryRegistry(store_epoch=store_epoch, presence_window_s=settings.link.window_s)
    commands = MemoryCommandLog(since=clock(), retention=_retention(settings.commands))
    app_node, feed, live = AppNode(commands=commands, clock=clock), JobFeed(), LiveAttempts()
    tokens = TokenBook(ledger, clock)
    manager = WorkerContextManager(
        context_registry=registry,
        connection_registry=registry,
        browser_window_registry=registry,
        app_node=app_node,
        clock=clock,
        new_id=lambda: random_id("cmd"),
        task_timeout_ms=settings.jobs.assignment_timeout_s * 1000,
        provision_timeout_s=settings.jobs.provision_timeout_s,
    )
    readiness = Readiness(AgentProbe(registry, app_node, clock, not_of=(VERIFY,)), clock)
    runner = AttemptRunner(
        ledger=ledger,
        app_node=app_node,
        live=live,
        feed=feed,
        clock=clock,
        new_id=random_id,
        rules=AttemptRules(
            egress=Egress(allow=settings.egress_allow),
            renew_interval_s=settings.jobs.assignment_timeout_s / 3,
            retry_initial_s=settings.jobs.retry_initial_s,
            retry_max_s=settings.jobs.retry_max_s,
            max_free_losses=settings.jobs.max_free_losses,
        ),
        on_success=readiness.worked,
    )
    dispatcher = JobDispatcher(
        ledger=ledger,
        registry=registry,
        manager=manager,
        runner=runner,
        live=live,
        feed=feed,
        clock=clock,
        gone=GoneRule(after_s=settings.link.window_s * settings.link.gone_after_windows),
    )
    links = AgentLinks(
        registry=registry,
        app_node=app_node,
        dispatcher=dispatcher,
        recorder=Recorder(ledger, live, feed, clock),
        clock=clock,
        rules=LinkRules(
            heartbeat_interval_s=settings.link.heartbeat_interval_s,
            window_s=settings.link.window_s,
            max_frame_bytes=settings.link.max_frame_bytes,
        ),
    )
    jobs = JobService(ledger, dispatcher, feed, clock)
    verifier = Verifier(
        Farm(
            registry=registry,
            app_node=app_node,
            ledger=ledger,
            jobs=jobs,
            clock=clock,
            agent_is_gone=dispatcher.agent_is_gone,
        ),
        lambda: tokens.lend(scope="agent", namespace=VERIFY, name="farm verify"),
    )
    app = build_app(
        deps=Deps(
            ledger=ledger,
            artifacts=DirectoryArtifacts(
                settings.data_dir / "artifacts",
                max_bytes=settings.artifacts.max_bytes,
                min_free_bytes=settings.artifacts.min_free_bytes,
            ),
            registry=registry,
            app_node=app_node,
            jobs=jobs,
            dispatcher=dispatcher,
            feed=feed,
            tokens=tokens,
            owns=links.owns,
            misses=manager.misses,
            readiness=readiness,
            clock=clock,
            metrics=CollectorRegistry(),
            max_artifact_bytes=settings.artifacts.max_bytes,
        ),
        allowed_hosts=(*settings.allowed_hosts, settings.host),
        more_routes=(agent_route(links.serve), verify_route(verifier)),
    )
    admin_token, first_start = await _admin_token(settings.data_dir, tokens)
    await _preset_agent_token(settings, tokens)
    async with asyncio.TaskGroup() as group:
        loops = [
            group.create_task(dispatcher.run(), name="dispatch"),
            group.create_task(
                every(_SWEEP_S, dispatcher.sweep_gone, name="sweep gone"), name="sweep gone"
            ),
            group.create_task(
                every(_SWEEP_S, manager.release_expired, name="sweep expired"),
                name="sweep expired",
            ),
        ]
        await dispatcher.ready()
        async with _listening(app, settings) as url:
            with _announced(settings.data_dir, url):
                log.info("farm.started", url=url, store_epoch=store_epoch)
                farm = Coordinator(
                    url=url,
                    admin_token=admin_token,
                    first_start=first_start,
                    tokens=tokens,
                    dispatcher=dispatcher,
                    live=live,
                    app_node=app_node,
                )
                yield farm
                await farm.revoke_minted()
            await links.close_all()
        for loop in loops:
            loop.cancel()
    log.info("farm.stopped")


def _retention(settings: CommandSettings) -> Retention:
    return Retention(
        keep=settings.keep, keep_s=settings.keep_s, payload_bytes=settings.payload_bytes
    )


@contextlib.asynccontextmanager
async def _listening(app: web.Application, settings: Settings) -> AsyncIterator[str]:
    runner = ApiRunner(app, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.host, settings.port)
        await site.start()
        port = runner.addresses[0][1]
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104 - compared
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """Hold the data directory: two coordinators on one ledger would each take every job."""
    with (data_dir / "farm.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(f"another farm is running on {data_dir}") from None
        yield


@contextlib.contextmanager
def _announced(data_dir: Path, url: str) -> Iterator[None]:
    """Say in the data directory where the farm is, for the command line to find."""
    path = data_dir / "farm.json"
    _write_private(path, json.dumps({"url": url, "pid": os.getpid()}))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


async def _admin_token(data_dir: Path, tokens: TokenBook) -> tuple[str, bool]:
    """Return the admin token, and whether it was made just now."""
    path = data_dir / "admin.token"
    if path.exists():
        secret = path.read_text().strip()
        if await tokens.principal(secret) is not None:
            return secret, False
    _, secret = await tokens.add(scope="admin", namespace=DEFAULT_NAMESPACE, name="admin")
    _write_private(path, secret + "\n")
    return secret, True


async def _preset_agent_token(settings: Settings, tokens: TokenBook) -> None:
    secret = settings.agent_token.get_secret_value() if settings.agent_token else ""
    if settings.agent_token_file is not None:
        secret = settings.agent_token_file.read_text()
    if secret.strip():
        await tokens.add_known(secret.strip(), scope="agent", namespace=DEFAULT_NAMESPACE)


def _write_private(path: Path, text: str) -> None:
    """Write a file that nobody else can read, not even for a moment."""
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    partial.rename(path)
