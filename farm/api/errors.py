"""The one place where an error becomes an HTTP status and a problem (RFC 9457)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from farm.api.request_state import PREPARED, REQUEST_ID
from farm.errors import (
    ArtifactStoreFullError,
    ClientAbsentError,
    CollaboratorMissingError,
    ConflictError,
    FarmError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    NotOwnerError,
    StaleAssignmentError,
    StoreUnavailableError,
    StrategyError,
    TooLargeError,
    UnauthorizedError,
    UnreadableError,
)
from farm.protocol.problems import MEDIA_TYPE, TYPE_PREFIX, Place, Problem

log = structlog.get_logger(__name__)

STATUS: Mapping[type[FarmError], HTTPStatus] = {
    InvalidInputError: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    UnauthorizedError: HTTPStatus.UNAUTHORIZED,
    ForbiddenError: HTTPStatus.FORBIDDEN,
    NotFoundError: HTTPStatus.NOT_FOUND,
    ConflictError: HTTPStatus.CONFLICT,
    StaleAssignmentError: HTTPStatus.CONFLICT,
    ClientAbsentError: HTTPStatus.SERVICE_UNAVAILABLE,
    CollaboratorMissingError: HTTPStatus.INTERNAL_SERVER_ERROR,
    StrategyError: HTTPStatus.INTERNAL_SERVER_ERROR,
    ArtifactStoreFullError: HTTPStatus.INSUFFICIENT_STORAGE,
    UnreadableError: HTTPStatus.INTERNAL_SERVER_ERROR,
    StoreUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    NotOwnerError: HTTPStatus.SERVICE_UNAVAILABLE,
}

_HEADERS: Mapping[HTTPStatus, Mapping[str, str]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "1"},
}
_STANDARD = frozenset(Problem.model_fields)
_OUR_SLUGS: Mapping[int, str] = {413: TooLargeError.slug, 404: NotFoundError.slug}
"""aiohttp's own refusals that are the same problem as one of ours."""


def problem_of(error: FarmError, request: web.BaseRequest) -> Problem:
    """Say what went wrong; the error's context becomes extension members."""
    status = STATUS[type(error)]
    context = dict(error.context)
    places = context.pop("problems", None)
    return Problem(
        type=TYPE_PREFIX + error.slug,
        title=status.phrase,
        status=status,
        detail=error.detail,
        instance=request.path,
        request_id=request.get(REQUEST_ID),
        errors=_places(places),
        **_members(context),
    )


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every failure with a problem; log the unexpected ones under the request's id.

    Where the answer has begun already the connection is cut, so that nobody takes the part that
    was sent for the whole.
    """
    try:
        return await handler(request)
    except ConnectionError:
        raise
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        return _answer(_problem_of_status(error, request), error.headers)
    except FarmError as error:
        if request.get(PREPARED):
            raise _cut(request, error) from error
        return _answer(problem_of(error, request))
    except Exception as error:
        if request.get(PREPARED):
            raise _cut(request, error) from error
        log.exception("request.failed", method=request.method, path=request.path)
        return _answer(_unexpected(request))


def _cut(request: web.Request, error: Exception) -> ConnectionResetError:
    log.error("response.cut", path=request.path, exc_info=error)
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("the answer could not be finished")


def _answer(problem: Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    kept = {k: v for k, v in (headers or {}).items() if k in ("Allow", "Retry-After")}
    return web.Response(
        text=problem.model_dump_json(exclude_none=True),
        status=problem.status,
        content_type=MEDIA_TYPE,
        headers={**_HEADERS.get(HTTPStatus(problem.status), {}), **kept},
    )


def _problem_of_status(error: web.HTTPException, request: web.BaseRequest) -> Problem:
    slug = _OUR_SLUGS.get(error.status, error.reason.lower().replace(" ", "-"))
    return Problem(
        type=TYPE_PREFIX + slug,
        title=error.reason,
        status=error.status,
        detail=_detail(error, request),
        instance=request.path,
        request_id=request.get(REQUEST_ID),
    )


def _detail(error: web.HTTPException, request: web.BaseRequest) -> str:
    match error:
        case web.HTTPNotFound():
            return f"there is nothing at {request.path}"
        case web.HTTPMethodNotAllowed():
            return f"{request.method} is not allowed here; {', '.join(error.allowed_methods)} is"
        case _:
            return error.text or error.reason


def _unexpected(request: web.BaseRequest) -> Problem:
    return Problem(
        type=TYPE_PREFIX + "internal",
        title=HTTPStatus.INTERNAL_SERVER_ERROR.phrase,
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        detail="the farm failed; its log has the reason under the request_id",
        instance=request.path,
        request_id=request.get(REQUEST_ID),
    )


def _places(problems: object) -> tuple[Place, ...] | None:
    """Turn the `problems` of an `InvalidInputError` into the body's `errors`."""
    if not isinstance(problems, Sequence) or isinstance(problems, str | bytes):
        return None
    return tuple(
        Place(
            pointer=one["pointer"],
            detail=one["detail"],
            suggestion=one.get("nearest"),
            line=one.get("line"),
        )
        for one in problems
    )


def _members(context: Mapping[str, object]) -> dict[str, Any]:
    """Keep what JSON can say and RFC 9457 has not taken."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in context.items()
        if name not in _STANDARD
    }
