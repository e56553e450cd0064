"""The composition root: the one place that knows every concrete class."""

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from farm.api.agent_link import AgentLinks, LinkRules
from farm.api.agents import agent_route
from farm.api.app import build_app
from farm.api.auth import TokenBook
from farm.api.channels import AgentChannels
from farm.api.deps import Deps
from farm.api.live.acts import JobActs
from farm.api.live.places import Places
from farm.api.live.routes import live_routes
from farm.api.readiness import Readiness
from farm.api.serving import ApiRunner
from farm.api.verify import verify_route
from farm.config import Settings
from farm.core.model import ClientId, Namespace
from farm.errors import ConflictError, InvalidInputError, StoreUnavailableError
from farm.jobs.attempts import AttemptRules, AttemptRunner
from farm.jobs.dispatcher import GoneRule, JobDispatcher
from farm.jobs.feed import JobFeed
from farm.jobs.identities import IdentityBook
from farm.jobs.ids import random_id
from farm.jobs.interventions import Interventions
from farm.jobs.leasing import Leases
from farm.jobs.live import LiveAttempts
from farm.jobs.recorder import Recorder
from farm.jobs.service import JobService
from farm.jobs.sharing import Sharing
from farm.main.live import live_of
from farm.main.stores import Stores, ledger_of, stores_of
from farm.manager.delivery import AppNode
from farm.manager.disconnecting import Disconnects
from farm.manager.loops import every
from farm.manager.manager import WorkerContextManager
from farm.manager.probe import AgentProbe
from farm.protocol.messages import Drain
from farm.protocol.plan import Egress
from farm.stores.artifacts import DirectoryArtifacts
from farm.stores.keyring import Keyring, new_key
from farm.stores.ledger import SqlIdentities, SqlLedger
from farm.telemetry import configure_logging
from farm.verify import VERIFY, Verifier
from farm.verify.stage import Farm

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

DEFAULT_NAMESPACE = Namespace("default")
_SWEEP_S = 1.0
_SHUTDOWN_S = 2.0
_STORE_PAUSE_S = 0.5


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
        name: str | None = None,
    ) -> None:
        self.url = url
        self.name = name
        """Among those it shares a Redis with; None where it is alone."""
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
        try:
            await self._dispatcher.agent_is_gone(ClientId(client_id), "its process has ended")
        except StoreUnavailableError as error:
            # It is given up when it has been silent for long.
            log.warning("agent.not_given_up", client_id=client_id, reason=error.detail)

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
        ConflictError: If another farm uses the data directory or the ledger, or Redis may forget.
        InvalidInputError: If a Redis or PostgreSQL is set and its client is not installed, or a key
            of saved identities is none.
        StoreUnavailableError: If one of them does not answer.
        OSError: If the address can't be listened on.
    """
    configure_logging(json=settings.log_json, level=settings.log_level)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _only_one(settings.data_dir):
        ledger = ledger_of(settings)
        store_epoch = await ledger.open()
        try:
            async with (
                stores_of(settings, store_epoch) as stores,
                _running(settings, ledger, SqlIdentities(ledger.database), stores) as farm,
            ):
                log.info("farm.started", url=farm.url, store_epoch=store_epoch)
                yield farm
        finally:
            await ledger.close()


@contextlib.asynccontextmanager
async def _running(
    settings: Settings, ledger: SqlLedger, saved: SqlIdentities, stores: Stores
) -> AsyncIterator[Coordinator]:
    clock, registry, name = stores.clock, stores.registry, stores.coordinator
    app_node = AppNode(commands=stores.commands, relay=stores.relay, clock=clock)
    feed, live = JobFeed(), LiveAttempts()
    identities = IdentityBook(
        saved, _keyring(settings), clock, max_bytes=settings.identities.max_bytes
    )
    await identities.reseal()
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
    readiness = Readiness(
        AgentProbe(registry, app_node, clock, not_of=(VERIFY,), coordinator=name),
        clock,
        store=ledger.check,
    )
    gone_after_s = settings.link.window_s * settings.link.gone_after_windows
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
            recording_max_bytes=settings.artifacts.recording_max_bytes,
        ),
        on_success=readiness.worked,
    )
    dispatcher = JobDispatcher(
        ledger=ledger,
        registry=registry,
        manager=manager,
        runner=runner,
        live=live,
        leases=Leases(saved),
        feed=feed,
        clock=clock,
        gone=GoneRule(after_s=gone_after_s),
        coordinator=name,
    )
    sharing = None
    if name is not None:
        sharing = Sharing(
            coordinator=name,
            ledger=ledger,
            registry=registry,
            live=live,
            clock=clock,
            gone_after_s=gone_after_s,
        )
    disconnects = Disconnects(manager, clock, grace_s=settings.link.grace_s)
    interventions = Interventions(live, app_node, random_id)
    channels = AgentChannels(app_node.tell_here, lambda token, client: links.owns(token, client))
    links = AgentLinks(
        registry=registry,
        app_node=app_node,
        dispatcher=dispatcher,
        recorder=Recorder(ledger, live, feed, clock),
        disconnects=disconnects,
        interventions=interventions,
        sharing=sharing,
        channel_refused=channels.refused,
        clock=clock,
        rules=LinkRules(
            heartbeat_interval_s=settings.link.heartbeat_interval_s,
            window_s=settings.link.window_s,
            max_frame_bytes=settings.link.max_frame_bytes,
            coordinator=name or "farm",
        ),
    )
    jobs = JobService(ledger, identities, dispatcher, feed, clock, interventions)
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
    places, metrics = Places(registry, ledger, clock), CollectorRegistry()
    live_view = live_of(
        settings.live,
        channels=channels,
        places=places,
        acts=JobActs(jobs, places),
        feed=feed,
        clock=clock,
        key=_live_key(settings.data_dir),
        coordinator=name,
        metrics=metrics,
    )
    app = build_app(
        deps=Deps(
            ledger=ledger,
            artifacts=DirectoryArtifacts(
                settings.data_dir / "artifacts",
                max_bytes=settings.artifacts.max_bytes,
                min_free_bytes=settings.artifacts.min_free_bytes,
                min_free_inodes=settings.artifacts.min_free_inodes,
            ),
            registry=registry,
            app_node=app_node,
            jobs=jobs,
            identities=identities,
            dispatcher=dispatcher,
            feed=feed,
            tokens=tokens,
            owns=links.owns,
            misses=manager.misses,
            readiness=readiness,
            clock=clock,
            metrics=metrics,
            max_artifact_bytes=settings.artifacts.max_bytes,
            recordings_max_bytes=settings.artifacts.recordings_max_bytes,
        ),
        allowed_hosts=(*settings.allowed_hosts, settings.host),
        more_routes=(
            agent_route(links.serve),
            verify_route(verifier),
            *live_routes(live_view),
        ),
        live_links=live_view.links,
    )
    admin_token, first_start = await _admin_token(settings.data_dir, tokens)
    await _preset_agent_token(settings, tokens)
    async with asyncio.TaskGroup() as group:
        steps = {
            "sweep gone": dispatcher.sweep_gone,
            "sweep expired": manager.release_expired,
            "sweep disconnects": disconnects.sweep,
        }
        if sharing is not None:
            steps["sweep moved"] = sharing.lose_what_moved
        lives = _lives(stores, dispatcher, sharing, links, readiness)
        loops = [group.create_task(lives, name="dispatch")]
        if stores.relay is not None:
            loops.append(group.create_task(app_node.run(), name="relay"))
        for step_name, step in steps.items():
            sweep = every(_SWEEP_S, step, name=step_name)
            loops.append(group.create_task(sweep, name=step_name))
        await dispatcher.ready()
        async with _listening(app, settings) as url:
            with _announced(settings.data_dir, url):
                farm = Coordinator(
                    url=url,
                    admin_token=admin_token,
                    first_start=first_start,
                    tokens=tokens,
                    dispatcher=dispatcher,
                    live=live,
                    app_node=app_node,
                    name=name,
                )
                yield farm
                await farm.revoke_minted()
            live_view.sessions.hub.close()
            await links.close_all()
        for loop in loops:
            loop.cancel()
    log.info("farm.stopped")


async def _lives(
    stores: Stores,
    dispatcher: JobDispatcher,
    sharing: Sharing | None,
    links: AgentLinks,
    readiness: Readiness,
) -> None:
    """Dispatch; when the registry has lost its memory begin anew, as after a restart.

    The agents dial again, and say what they have and what they still run.
    """
    while True:
        if sharing is not None:
            sharing.begin()
        async with asyncio.TaskGroup() as group:
            life = group.create_task(dispatcher.run(), name="dispatch")
            await stores.memory.lost(readiness.failed)
            life.cancel()
        log.error("farm.begins_again", reason="the registry has lost its memory")
        await links.close_all()
        await _begin_again(stores)


async def _begin_again(stores: Stores) -> None:
    while True:
        try:
            await stores.memory.begin_again()
        except StoreUnavailableError as error:
            log.warning("redis.unavailable", reason=error.detail)
            await asyncio.sleep(_STORE_PAUSE_S)
        else:
            return


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


def _live_key(data_dir: Path) -> bytes:
    """Return what links to watch tabs are signed with; it is made at the first start."""
    path = data_dir / "live.key"
    if not path.exists():
        _write_private(path, secrets.token_hex(32))
    return path.read_text().strip().encode()


def _keyring(settings: Settings) -> Keyring:
    """Read the keys of saved identities, or make the first one.

    Raises:
        InvalidInputError: If what is set is no key.
    """
    path = settings.identity_key_file or settings.data_dir / "identity.key"
    if settings.identity_key is not None and settings.identity_key_file is None:
        where, text = "FARM_IDENTITY_KEY", settings.identity_key.get_secret_value()
    else:
        if settings.identity_key_file is None and not path.exists():
            _write_private(path, new_key() + "\n")
        where, text = str(path), path.read_text()
    try:
        return Keyring.of(text)
    except ValueError as error:
        raise InvalidInputError(f"{where}: {error}") from None


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
