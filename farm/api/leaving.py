"""Agents that are told to leave, or taken off the register."""

from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web

from farm.api.answers import answer, body_of, raw_body
from farm.api.deps import deps_of, namespace_of, operator_of, principal_of
from farm.api.routes import Access, Answer, Route
from farm.core.model import Client, ClientId, Namespace
from farm.core.pools import queue_of
from farm.errors import NotFoundError
from farm.manager.leaving import Left
from farm.protocol.resources import DrainBody, DrainSelection, LeftList, LeftView


async def drain_agent(request: web.Request) -> web.Response:
    """Fence an agent, and tell it to finish what it runs and leave."""
    body = await body_of(request, DrainBody) if await raw_body(request) else DrainBody()
    client_id, leaving = _id(request), deps_of(request).leaving
    left = await leaving.drain(_whose(request), client_id, by=_by(request), drain_s=body.deadline_s)
    return answer(_view(client_id, left), status=HTTPStatus.ACCEPTED)


async def drain_agents(request: web.Request) -> web.Response:
    """Do so with several; those that serve others' namespaces, too, are the operator's alone."""
    wanted = await body_of(request, DrainSelection)
    serves = namespace_of(request)
    left: Mapping[ClientId, Left] = await deps_of(request).leaving.drain_all(
        _whose(request),
        lambda client: serves in client.namespaces and _is_wanted(client, wanted),
        by=_by(request),
        drain_s=wanted.deadline_s,
    )
    items = tuple(_view(one, what) for one, what in left.items() if what is not Left.UNKNOWN)
    return answer(LeftList(items=items), status=HTTPStatus.ACCEPTED)


async def remove_agent(request: web.Request) -> web.Response:
    """Take an agent off the register and end its link; it may dial again."""
    client_id = _id(request)
    left = await deps_of(request).leaving.remove(_whose(request), client_id, by=_by(request))
    return answer(_view(client_id, left))


def _id(request: web.Request) -> ClientId:
    return ClientId(request.match_info["client_id"])


def _whose(request: web.Request) -> Namespace | None:
    return None if operator_of(request) else namespace_of(request)


def _is_wanted(client: Client, wanted: DrainSelection) -> bool:
    return (
        wanted.deployment in (None, client.deployment)
        and wanted.node in (None, client.node)
        and (wanted.queue is None or queue_of(wanted.queue) == client.task_queue)
    )


def _by(request: web.Request) -> str:
    who = principal_of(request)
    return who.name or who.token_id


def _view(client_id: ClientId, left: Left) -> LeftView:
    match left:
        case Left.DRAINING:
            return LeftView(client_id=client_id, outcome="draining")
        case Left.DEREGISTERED:
            return LeftView(client_id=client_id, outcome="deregistered")
        case Left.DISCONNECTED:
            return LeftView(client_id=client_id, outcome="disconnected")
        case Left.UNKNOWN:
            raise _unknown(client_id)


def _unknown(client_id: str) -> NotFoundError:
    return NotFoundError(f"there is no agent {client_id}", client_id=client_id)


ROUTES = (
    Route(
        method="POST",
        path="/v1/agents/drain",
        handler=drain_agents,
        summary="Let several agents finish what they run, and leave",
        access=Access.ADMIN,
        takes_body=True,
        body=DrainSelection,
        answers=(Answer(status=HTTPStatus.ACCEPTED, model=LeftList),),
    ),
    Route(
        method="POST",
        path="/v1/agents/{client_id}/drain",
        handler=drain_agent,
        summary="Let an agent finish what it runs, and leave",
        access=Access.ADMIN,
        takes_body=True,
        body=DrainBody,
        body_may_be_left_out=True,
        answers=(Answer(status=HTTPStatus.ACCEPTED, model=LeftView),),
    ),
    Route(
        method="DELETE",
        path="/v1/agents/{client_id}",
        handler=remove_agent,
        summary="Take an agent off the register",
        access=Access.ADMIN,
        answers=(Answer(model=LeftView),),
    ),
)
