"""What there is, as the registry has it now, and why the last acquisitions came to nothing."""

from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from farm.api.answers import answer
from farm.api.deps import Deps, deps_of, namespace_of, operator_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import agent_view, moment, progress_view, window_view, worker_view
from farm.core.eligibility import Reason
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    Context,
    ContextId,
    Namespace,
    Snapshot,
    Token,
)
from farm.errors import NotFoundError
from farm.manager.misses import Miss
from farm.protocol.resources import (
    AgentList,
    AgentView,
    AssignmentView,
    MissList,
    MissView,
    WindowList,
    WorkerList,
    WorkerView,
)
from farm.stores.records import Attempt

Held = tuple[ClientId, ContextId, Token]


async def list_agents(request: web.Request) -> web.Response:
    """Return the agents that serve the namespace."""
    asks = namespace_of(request)
    _, views = await agents_of(deps_of(request), asks, operator=operator_of(request))
    return answer(AgentList(items=views))


async def list_workers(request: web.Request) -> web.Response:
    """Return the contexts the namespace may use or uses, and what they are lent to."""
    deps, namespace = deps_of(request), namespace_of(request)
    _, clients = await clients_of(deps_of(request), namespace_of(request))
    attempts: Mapping[Held, Attempt] = {
        (attempt.client_id, attempt.context_id, attempt.token): attempt
        for attempt in await deps.ledger.running_attempts()
    }
    workers: list[WorkerView] = []
    for client in clients:
        for context in client.contexts.values():
            if _is_foreign(client, context, namespace):
                continue
            assignment = client.assignments.get(context.context_id)
            lent = None if assignment is None else await _lent(deps, assignment, attempts)
            workers.append(worker_view(client, context, assignment=lent))
    return answer(WorkerList(items=tuple(workers)))


async def list_windows(request: web.Request) -> web.Response:
    """Return the browser windows that hold nothing of another namespace."""
    namespace = namespace_of(request)
    _, clients = await clients_of(deps_of(request), namespace_of(request))
    return answer(
        WindowList(
            items=tuple(
                window_view(client, window)
                for client in clients
                for window in client.windows.values()
                if window.window_id not in _foreign_windows(client, namespace)
            )
        )
    )


async def list_misses(request: web.Request) -> web.Response:
    """Return why the last acquisitions of the namespace came to nothing, on this coordinator."""
    misses = deps_of(request).misses(namespace_of(request))
    return answer(MissList(items=tuple(_miss_view(miss) for miss in misses)))


def _miss_view(miss: Miss) -> MissView:
    # An agent of other namespaces is none of this one's business, not even that it is there (P16).
    ours = {k: reason for k, reason in miss.clients.items() if reason is not Reason.OTHER_NAMESPACE}
    counts = {k: n for k, n in miss.counts.items() if k is not Reason.OTHER_NAMESPACE}
    foreign = miss.reason in (None, Reason.OTHER_NAMESPACE)
    return MissView(
        task_id=miss.task_id,
        at=moment(miss.at),
        times=miss.times,
        reason="no_agent" if foreign or miss.reason is None else miss.reason,
        remedy=miss.remedy,
        counts={reason.value: n for reason, n in counts.items()},
        clients={client: reason.value for client, reason in ours.items()},
    )


def _is_foreign(client: Client, context: Context, namespace: Namespace) -> bool:
    """Tell whether a context is lent to another namespace, or belongs to such a task (P16)."""
    held = client.assignments.get(context.opener or context.context_id)
    return held is not None and held.namespace != namespace


def _foreign_windows(client: Client, namespace: Namespace) -> frozenset[str | None]:
    """Return the windows with a tab lent to another namespace (P16)."""
    return frozenset(
        client.contexts[assignment.context_id].window_id
        for assignment in client.assignments.values()
        if assignment.namespace != namespace and assignment.context_id in client.contexts
    )


async def agents_of(
    deps: Deps, namespace: Namespace, *, operator: bool
) -> tuple[Snapshot, tuple[AgentView, ...]]:
    """Return the agents that serve a namespace, and the reading.

    Whom else one serves is none of a tenant's business (P16), but the operator's.
    """
    declared = await deps.deployments.deployments(namespace)
    snapshot, clients = await clients_of(deps, namespace)
    if not operator:
        clients = tuple(replace(client, namespaces=(namespace,)) for client in clients)
    return snapshot, tuple(agent_view(client, snapshot, declared) for client in clients)


async def clients_of(deps: Deps, namespace: Namespace) -> tuple[Snapshot, tuple[Client, ...]]:
    """Return the agents that serve a namespace, and the reading they are of."""
    snapshot = await deps.registry.snapshot(now=deps.clock())
    return snapshot, tuple(c for c in snapshot.clients if namespace in c.namespaces)


async def _lent(
    deps: Deps, assignment: Assignment, attempts: Mapping[Held, Attempt]
) -> AssignmentView:
    """Return the view of an assignment, with its job where it is a job's attempt."""
    attempt = attempts.get((assignment.client_id, assignment.context_id, assignment.token))
    name = progress = None
    if attempt is not None:
        try:
            job = await deps.ledger.job(assignment.namespace, attempt.job_id)
            name, progress = job.name, (await deps.readings.of_one(job)).progress
        except NotFoundError:
            attempt = None
    return AssignmentView(
        task_id=assignment.task_id,
        since=moment(assignment.since),
        expires_at=moment(assignment.expires_at),
        job_id=None if attempt is None else attempt.job_id,
        job=name,
        attempt=None if attempt is None else attempt.number,
        progress=progress_view(progress),
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/agents",
        handler=list_agents,
        summary="List the agents",
        access=Access.ADMIN,
        answers=(Answer(model=AgentList),),
    ),
    Route(
        method="GET",
        path="/v1/workers",
        handler=list_workers,
        summary="List the contexts and what they are lent to",
        access=Access.ADMIN,
        answers=(Answer(model=WorkerList),),
    ),
    Route(
        method="GET",
        path="/v1/windows",
        handler=list_windows,
        summary="List the browser windows",
        access=Access.ADMIN,
        answers=(Answer(model=WindowList),),
    ),
    Route(
        method="GET",
        path="/v1/pools/misses",
        handler=list_misses,
        summary="Say why the last acquisitions came to nothing",
        access=Access.ADMIN,
        answers=(Answer(model=MissList),),
    ),
)
