"""The composition root: the one place that knows every concrete class."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from farm.api.agents import agent_route
from farm.api.app import build_app
from farm.api.auth import TokenBook
from farm.api.deps import Deps
from farm.api.live.acts import JobActs
from farm.api.live.places import Places
from farm.api.live.routes import live_routes
from farm.api.metrics import ConnectedAgents
from farm.api.polling import poll_routes
from farm.api.readiness import Readiness
from farm.api.verify import verify_route
from farm.config import Settings
from farm.core.model import DEFAULT_NAMESPACE, ClientId, LinkId
from farm.core.namespaces import Origin
from farm.jobs.identities import IdentityBook
from farm.jobs.readings import Readings
from farm.jobs.sharing import Sharing
from farm.jobs.why import Explaining
from farm.main.files import artifacts_of, same_files
from farm.main.jobs import job_rules, jobs_of
from farm.main.keeping import keeping_of
from farm.main.keys import admin_token_of, keyring_of, live_key, preset_agent_token
from farm.main.linking import linking_of
from farm.main.live import live_of
from farm.main.metering import store_times
from farm.main.running import Coordinator, correspond, expiring, lives, look_after
from farm.main.serving import announced, listening, only_one
from farm.main.sharing import in_step
from farm.main.stores import Stores, ledger_of, shared_of, stores_of
from farm.manager.delivery import AppNode
from farm.manager.loops import every
from farm.manager.namespaces import NamespaceBook
from farm.manager.probe import AgentProbe
from farm.manager.probing import Prober
from farm.manager.queues import DeclaredQueues
from farm.stores.ledger import (
    SqlBacklog,
    SqlDeployments,
    SqlIdentities,
    SqlLedger,
    SqlNamespaces,
)
from farm.telemetry import configure_logging
from farm.verify import VERIFY, Verifier
from farm.verify.stage import Farm

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

__all__ = ["Coordinator", "coordinator"]

_SWEEP_S = 1.0


@contextlib.asynccontextmanager
async def coordinator(settings: Settings) -> AsyncIterator[Coordinator]:
    """Run a coordinator for as long as the block lasts.

    The loops are children of the task group and the block is its body: a loop that crashes takes
    the block down, and a block that ends takes the loops down.

    Raises:
        ConflictError: If another farm uses the data directory or the ledger, or Redis may forget.
        InvalidInputError: If a Redis, PostgreSQL or bucket is set and its client is not installed,
            or a key of saved identities is none.
        StoreUnavailableError: If one of them does not answer.
        OSError: If the address can't be listened on.
    """
    configure_logging(json=settings.log_json, level=settings.log_level)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with only_one(settings.data_dir):
        metrics = CollectorRegistry()
        observe = store_times(metrics)
        ledger = ledger_of(settings, observe)
        store_epoch = await ledger.open()
        try:
            async with (
                stores_of(settings, store_epoch, observe) as stores,
                _running(settings, ledger, SqlIdentities(ledger.database), stores, metrics) as farm,
            ):
                log.info("farm.started", url=farm.url, store_epoch=store_epoch)
                yield farm
        finally:
            await ledger.close()


@contextlib.asynccontextmanager
async def _running(
    settings: Settings,
    ledger: SqlLedger,
    saved: SqlIdentities,
    stores: Stores,
    metrics: CollectorRegistry,
) -> AsyncIterator[Coordinator]:
    clock, registry, name = stores.clock, stores.registry, stores.coordinator

    def end_link(client_id: ClientId, link: LinkId) -> None:
        linking.links.end(client_id, link)

    prober = Prober(
        registry,
        clock,
        coordinator=name or "farm",
        window_s=settings.link.window_s,
        metrics=metrics,
        end=end_link,
        tell=lambda client_id, exclusion: linking.registrations.verdict(client_id, exclusion),
    )
    app_node = AppNode(commands=stores.commands, relay=stores.relay, watcher=prober, clock=clock)
    identities = IdentityBook(
        saved, keyring_of(settings), clock, max_bytes=settings.identities.max_bytes
    )
    await identities.reseal()
    tokens = TokenBook(ledger, clock)
    shared = shared_of(settings, ledger)
    # Where jobs run on any agent, any will do.
    tested_on = None if shared is not None else name
    readiness = Readiness(
        AgentProbe(registry, app_node, clock, not_of=(VERIFY,), coordinator=tested_on),
        clock,
        store=ledger.check,
    )
    artifacts = await artifacts_of(settings)
    if shared is not None:
        await same_files(artifacts, shared)
    stored, deployments = SqlNamespaces(ledger.database), SqlDeployments(ledger.database)
    queues = DeclaredQueues(settings.task_queues, deployments, unchecked=(VERIFY,), clock=clock)
    jobs = jobs_of(
        ledger=ledger,
        registry=registry,
        app_node=app_node,
        identities=identities,
        events=stores.events,
        clock=clock,
        rules=job_rules(settings),
        queues=queues,
        placements=stored,
        coordinator=name,
        metrics=metrics,
        shared=shared,
        relay=stores.relay,
        on_success=readiness.worked,
        end_link=end_link,
    )
    sharing = None
    if name is not None and shared is None:
        sharing = Sharing(
            coordinator=name,
            ledger=ledger,
            registry=registry,
            live=jobs.live,
            clock=clock,
            gone_after_s=settings.link.gone_after_s,
        )
    changed = in_step(jobs, queues, tokens)
    namespaces = NamespaceBook(
        stored,
        clock,
        minting=settings.namespaces.minting or "closed",
        own=frozenset({VERIFY}),
        tell=stores.events.publish,
        moved=changed,
    )
    linking = linking_of(
        settings,
        stores,
        app_node=app_node,
        jobs=jobs,
        namespaces=namespaces,
        sharing=sharing,
        shared=shared,
        metrics=metrics,
    )
    links, bridges = linking.links, linking.bridges
    verifier = Verifier(
        Farm(
            registry=registry,
            app_node=app_node,
            ledger=ledger,
            jobs=jobs.service,
            clock=clock,
            agent_is_gone=jobs.dispatcher.agents.is_gone,
        ),
        lambda: tokens.lend(scope="agent", namespace=VERIFY, name="farm verify"),
    )
    places = Places(registry, ledger, clock)
    metrics.register(ConnectedAgents(linking.registrations.connected))
    live_view = live_of(
        settings.live,
        channels=linking.channels,
        places=places,
        acts=JobActs(jobs.service, places),
        feed=jobs.feed,
        clock=clock,
        key=live_key(settings),
        coordinator=name,
        bridges=bridges,
        held_by=app_node.held_by,
        metrics=metrics,
    )
    backlog = SqlBacklog(ledger.database)
    readings = Readings(
        dispatcher=jobs.dispatcher,
        queue=backlog,
        explain=jobs.manager.explain,
        clock=clock,
        shared=shared is not None,
    )
    keeping = keeping_of(settings, artifacts, ledger, namespaces, clock, metrics)
    app = build_app(
        deps=Deps(
            ledger=ledger,
            artifacts=keeping.artifacts,
            handed_in=keeping.handed_in,
            retention=keeping.retention,
            registry=registry,
            app_node=app_node,
            jobs=jobs.service,
            identities=identities,
            readings=readings,
            feed=jobs.feed,
            events=stores.events,
            leaving=linking.leaving,
            deployments=deployments,
            deployed=changed,
            tokens=tokens,
            namespaces=namespaces,
            owns=linking.tokens.may_act,
            misses=jobs.manager.misses,
            explaining=Explaining(
                registry=registry,
                ledger=ledger,
                queue=backlog,
                readings=readings,
                explain=jobs.manager.explain,
                queues=queues,
                clock=clock,
            ),
            readiness=readiness,
            clock=clock,
            metrics=metrics,
            max_artifact_bytes=settings.artifacts.max_bytes,
            recordings_max_bytes=settings.artifacts.recordings_max_bytes,
        ),
        allowed_hosts=(*settings.allowed_hosts, settings.host),
        more_routes=(
            agent_route(links.serve),
            *poll_routes(linking.polls),
            verify_route(verifier),
            *live_routes(live_view),
        ),
        live_links=live_view.links,
    )
    await namespaces.create(DEFAULT_NAMESPACE, Origin.START_MINT)
    admin_token, first_start = await admin_token_of(settings.data_dir, tokens)
    await preset_agent_token(settings, tokens)
    async with asyncio.TaskGroup() as group:
        steps = {
            "sweep expired": jobs.manager.release_expired,
            "sweep disconnects": linking.disconnects.sweep,
        }
        if (look := look_after(jobs, sharing)) is not None:
            steps["sweep moved"] = look
        dispatching = lives(stores, jobs.dispatcher, sharing, links, readiness, shared)
        loops = [
            group.create_task(dispatching, name="dispatch"),
            group.create_task(stores.events.run(), name="events"),
            group.create_task(bridges.run(), name="bridges"),
            group.create_task(linking.polls.run(), name="long polls"),
            group.create_task(
                every(keeping.sweep_every_s, keeping.retention.sweep, name="retention"),
                name="retention",
            ),
            group.create_task(prober.run(), name="probe"),
            group.create_task(
                expiring(jobs.dispatcher, prober, settings.link.window_s), name="expire"
            ),
        ]
        loops += correspond(group, stores, app_node, jobs, linking.disconnects)
        for step_name, step in steps.items():
            sweep = every(_SWEEP_S, step, name=step_name)
            loops.append(group.create_task(sweep, name=step_name))
        await jobs.dispatcher.ready()

        async def let_go(_: web.Application) -> None:
            """End what is connected, when nothing can come any more: it dials others at once."""
            live_view.sessions.hub.close()
            await bridges.close("it is stopping")
            await links.close_all()

        app.on_shutdown.append(let_go)
        async with listening(app, settings) as url:
            with announced(settings.data_dir, url):
                farm = Coordinator(
                    url=url,
                    admin_token=admin_token,
                    first_start=first_start,
                    tokens=tokens,
                    dispatcher=jobs.dispatcher,
                    live=jobs.live,
                    app_node=app_node,
                    name=name,
                )
                yield farm
                await farm.revoke_minted()
        for loop in loops:
            loop.cancel()
    log.info("farm.stopped")
