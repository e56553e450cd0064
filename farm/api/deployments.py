"""`/v1/deployments`: what is declared to be rolled out, and the task queues that it serves."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from farm.api.answers import answer, body_of
from farm.api.deps import Deps, deps_of, namespace_of
from farm.api.pool import clients_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import is_present, moment
from farm.core.model import Namespace
from farm.errors import InvalidInputError, NotFoundError
from farm.protocol.resources import (
    DeploymentBody,
    DeploymentList,
    DeploymentName,
    DeploymentView,
)
from farm.stores.ports.cluster_events import EventKind
from farm.stores.ports.deployments import Deployment

_names: TypeAdapter[str] = TypeAdapter(DeploymentName)


async def declare_deployment(request: web.Request) -> web.Response:
    """Declare one, or declare it otherwise."""
    deps, namespace = deps_of(request), namespace_of(request)
    wanted, name = await body_of(request, DeploymentBody), _name(request)
    declared, new = await deps.deployments.declare(namespace, name, wanted.queues, now=deps.clock())
    told = {"deployment": name, "declared": True, "queues": list(declared.queues)}
    _tell(deps, namespace, told)
    (view,) = await _views(deps, namespace, declared)
    return answer(view, status=HTTPStatus.CREATED if new else HTTPStatus.OK)


async def list_deployments(request: web.Request) -> web.Response:
    """List them, with how many agents of each are present."""
    deps, namespace = deps_of(request), namespace_of(request)
    found = await deps.deployments.deployments(namespace)
    return answer(DeploymentList(items=await _views(deps, namespace, *found)))


async def get_deployment(request: web.Request) -> web.Response:
    """Show one."""
    deps, namespace, name = deps_of(request), namespace_of(request), _name(request)
    for found in await deps.deployments.deployments(namespace):
        if found.name == name:
            (view,) = await _views(deps, namespace, found)
            return answer(view)
    raise _missing(name)


async def withdraw_deployment(request: web.Request) -> web.Response:
    """Declare one no more; its agents stay."""
    deps, namespace, name = deps_of(request), namespace_of(request), _name(request)
    if not await deps.deployments.withdraw(namespace, name):
        raise _missing(name)
    _tell(deps, namespace, {"deployment": name, "declared": False})
    return web.Response(status=HTTPStatus.NO_CONTENT)


def _tell(deps: Deps, namespace: Namespace, told: Mapping[str, Any]) -> None:
    deps.deployed(namespace)
    deps.events.publish(EventKind.DEPLOYMENT_CHANGED, namespace, told)


async def _views(
    deps: Deps, namespace: Namespace, *found: Deployment
) -> tuple[DeploymentView, ...]:
    snapshot, clients = await clients_of(deps, namespace)
    present = [client.deployment for client in clients if is_present(client, snapshot)]
    return tuple(
        DeploymentView(
            name=one.name,
            queues=one.queues,
            created_at=moment(one.created_at),
            updated_at=moment(one.updated_at),
            agents=present.count(one.name),
        )
        for one in found
    )


def _name(request: web.Request) -> str:
    name = request.match_info["name"]
    try:
        return _names.validate_python(name)
    except ValidationError:
        raise InvalidInputError(
            "a deployment's name is up to 128 letters, digits, dots, dashes and underscores",
            parameter="name",
        ) from None


def _missing(name: str) -> NotFoundError:
    return NotFoundError(f"there is no deployment {name}", name=name)


ROUTES = (
    Route(
        method="GET",
        path="/v1/deployments",
        handler=list_deployments,
        summary="List the deployments",
        access=Access.ADMIN,
        answers=(Answer(model=DeploymentList),),
    ),
    Route(
        method="GET",
        path="/v1/deployments/{name}",
        handler=get_deployment,
        summary="Show a deployment",
        access=Access.ADMIN,
        answers=(Answer(model=DeploymentView),),
    ),
    Route(
        method="PUT",
        path="/v1/deployments/{name}",
        handler=declare_deployment,
        summary="Declare a deployment",
        access=Access.ADMIN,
        takes_body=True,
        body=DeploymentBody,
        answers=(
            Answer(status=HTTPStatus.CREATED, model=DeploymentView),
            Answer(description="It was declared, and is now as said.", model=DeploymentView),
        ),
    ),
    Route(
        method="DELETE",
        path="/v1/deployments/{name}",
        handler=withdraw_deployment,
        summary="Declare a deployment no more",
        access=Access.ADMIN,
        answers=(Answer(status=HTTPStatus.NO_CONTENT, empty=True),),
    ),
)
