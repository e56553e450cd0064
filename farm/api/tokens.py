"""`/v1/tokens`: admins make, list and revoke tokens."""

from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web

from farm.api.answers import answer, body_of
from farm.api.deps import deps_of, namespace_of, operator_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import moment
from farm.core.admission import UNBOUNDED, Bounds
from farm.core.model import Namespace
from farm.protocol.resources import TokenCreate, TokenCreated, TokenList, TokenView
from farm.stores.records import TokenRecord

log = structlog.get_logger(__name__)


async def create_token(request: web.Request) -> web.Response:
    """Make a token for the own namespace, or others; the answer alone has its secret."""
    wanted = await body_of(request, TokenCreate)
    deps = deps_of(request)
    namespaces = await _namespaces(request, wanted)
    bounds = _bounds(wanted, namespaces) if wanted.scope == "agent" else UNBOUNDED
    record, secret = await deps.tokens.add(
        scope=wanted.scope, namespace=namespaces[0], name=wanted.name, bounds=bounds
    )
    log.info("token.created", token_id=record.token_id, scope=record.scope)
    created = TokenCreated(**_members(record), token=secret)
    return answer(created, status=HTTPStatus.CREATED)


async def list_tokens(request: web.Request) -> web.Response:
    """List those that open something: all to the operator, to others those made in their own."""
    own = None if operator_of(request) else namespace_of(request)
    found = await deps_of(request).tokens.all(namespace=own)
    return answer(TokenList(items=tuple(TokenView(**_members(record)) for record in found)))


def _members(record: TokenRecord) -> dict[str, Any]:
    bounds = record.bounds
    return {
        "id": record.token_id,
        "scope": record.scope,
        "name": record.name,
        "namespace": record.namespace,
        "namespaces": sorted(bounds.namespaces or {record.namespace}),
        "task_queues": None if bounds.task_queues is None else sorted(bounds.task_queues),
        "nodes": None if bounds.nodes is None else sorted(bounds.nodes),
        "metadata": bounds.metadata,
        "created_at": moment(record.created_at),
    }


async def _namespaces(request: web.Request, wanted: TokenCreate) -> list[Namespace]:
    own = namespace_of(request)
    namespaces = [Namespace(name) for name in dict.fromkeys(wanted.namespaces or (own,))]
    if namespaces != [own]:
        operator_of(request, required=True)
        await deps_of(request).namespaces.require(namespaces)
    return namespaces


def _bounds(wanted: TokenCreate, namespaces: list[Namespace]) -> Bounds:
    return Bounds(
        namespaces=None if len(namespaces) == 1 else frozenset(namespaces),
        task_queues=None if wanted.task_queues is None else frozenset(wanted.task_queues),
        nodes=None if wanted.nodes is None else frozenset(wanted.nodes),
        metadata=wanted.metadata,
    )


async def revoke_token(request: web.Request) -> web.Response:
    """Let a token open nothing any more; one that is unknown is 404, lest a wrong id look right."""
    token_id = request.match_info["token_id"]
    own = None if operator_of(request) else namespace_of(request)
    await deps_of(request).tokens.revoke(token_id, namespace=own)
    log.info("token.revoked", token_id=token_id)
    return web.Response(status=HTTPStatus.NO_CONTENT)


ROUTES = (
    Route(
        method="POST",
        path="/v1/tokens",
        handler=create_token,
        summary="Make a token",
        access=Access.ADMIN,
        takes_body=True,
        body=TokenCreate,
        answers=(Answer(status=HTTPStatus.CREATED, model=TokenCreated),),
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        handler=list_tokens,
        summary="List the tokens that are not revoked",
        access=Access.ADMIN,
        answers=(Answer(model=TokenList),),
    ),
    Route(
        method="DELETE",
        path="/v1/tokens/{token_id}",
        handler=revoke_token,
        summary="Revoke a token",
        access=Access.ADMIN,
        answers=(
            Answer(status=HTTPStatus.NO_CONTENT, description="It opens nothing.", empty=True),
        ),
    ),
)
