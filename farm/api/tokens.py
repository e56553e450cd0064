"""`/v1/tokens`: admins make and revoke tokens."""

from http import HTTPStatus

import structlog
from aiohttp import web

from farm.api.answers import answer, body_of
from farm.api.deps import deps_of, namespace_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import moment
from farm.protocol.resources import TokenCreate, TokenCreated

log = structlog.get_logger(__name__)


async def create_token(request: web.Request) -> web.Response:
    """Make a token for the namespace of who asks; the answer alone has its secret."""
    wanted = await body_of(request, TokenCreate)
    record, secret = await deps_of(request).tokens.add(
        scope=wanted.scope, namespace=namespace_of(request), name=wanted.name
    )
    log.info("token.created", token_id=record.token_id, scope=record.scope)
    return answer(
        TokenCreated(
            id=record.token_id,
            scope=wanted.scope,
            name=record.name,
            namespace=record.namespace,
            created_at=moment(record.created_at),
            token=secret,
        ),
        status=HTTPStatus.CREATED,
    )


async def revoke_token(request: web.Request) -> web.Response:
    """Let a token open nothing any more; one that is unknown is 404, lest a wrong id look right."""
    token_id = request.match_info["token_id"]
    await deps_of(request).tokens.revoke(token_id)
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
