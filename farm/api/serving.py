"""The lowest floor of the server: what goes wrong where no handler is, and so no middleware.

aiohttp would log a traceback for a request that can't be read, with the beginning of the line in
it, and answer in plain text.
"""

from http import HTTPStatus

import structlog
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from farm.protocol.problems import MEDIA_TYPE, TYPE_PREFIX, Problem

MAX_REQUEST_LINE = 32 * 1024
"""Method, path and query; what is longer belongs in a body."""
_MAX_HEADER = 8190

log = structlog.get_logger(__name__)


class ApiRunner(web.AppRunner):
    """Runs the API's application; every failure is a problem here too, and no value is logged."""

    def __init__(self, app: web.Application, *, shutdown_timeout: float) -> None:
        super().__init__(
            app,
            access_log=None,
            shutdown_timeout=shutdown_timeout,
            max_line_size=MAX_REQUEST_LINE,
            max_field_size=_MAX_HEADER,
        )

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            **made._kwargs,
        )


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        match exc:
            case ConnectionError():
                # Whoever asked has gone, be it while it dialled: nobody gets an answer.
                log.debug("request.abandoned", reason=type(exc).__name__)
                raise exc
            case BadHttpMessage():
                return _refusal(exc)
            case _:
                return super().handle_error(request, status, exc, message)


def _refusal(error: BadHttpMessage) -> web.Response:
    """Answer a request that can't be read. Its text may be a secret: only its kind is logged."""
    match error:
        case LineTooLong(args=(_, limit, *_)) if str(limit) == str(MAX_REQUEST_LINE):
            status, slug = HTTPStatus.REQUEST_URI_TOO_LONG, "uri-too-long"
            detail = (
                f"method, path and query have at most {MAX_REQUEST_LINE} bytes together; "
                "what is longer is sent in the body"
            )
        case LineTooLong():
            status, slug = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "header-too-long"
            detail = f"a header has at most {_MAX_HEADER} bytes"
        case _:
            status, slug = HTTPStatus.BAD_REQUEST, "bad-request"
            detail = "this is not HTTP/1.1 as it should be"
    log.info("request.unreadable", kind=type(error).__name__, status=status.value)
    problem = Problem(
        type=TYPE_PREFIX + slug,
        title=status.phrase,
        status=status,
        detail=detail,
    )
    response = web.Response(
        text=problem.model_dump_json(exclude_none=True), status=status, content_type=MEDIA_TYPE
    )
    response.force_close()
    return response
