"""`/v1/jobs/{id}/items` and `/artifacts`: what a job has produced, streamed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from urllib.parse import quote

from aiohttp import hdrs, web

from farm.api.answers import answer
from farm.api.deps import deps_of, namespace_of
from farm.api.queries import choice_in_query
from farm.api.routes import Access, Answer, Parameter, Route
from farm.api.views import artifact_view
from farm.errors import ConflictError, InvalidInputError, NotFoundError
from farm.jobs import export
from farm.protocol.resources import ArtifactList
from farm.stores.records import Artifact, ArtifactState

JSON_LINES = "application/x-ndjson"
CSV = "text/csv"
_UNREAD_S = 600.0
"""A client that takes nothing for so long is cut off: what it reads from is held open for it."""


async def stream_items(request: web.Request) -> web.StreamResponse:
    """Send the records of the attempt that counts, of one by number, or of all."""
    number, every = await _attempt(request)
    dataset = request.query.get("dataset")
    records = export.records(
        deps_of(request).jobs.items(
            namespace_of(request),
            request.match_info["job_id"],
            attempt=number,
            every=every,
            dataset=dataset,
        ),
        with_attempt=every,
        with_dataset=dataset is None,
    )
    if _wants_csv(request):
        return await streamed(request, export.csv_lines(records), CSV)
    return await streamed(request, export.json_lines(records), JSON_LINES)


async def list_artifacts(request: web.Request) -> web.Response:
    """Return what files there are."""
    found = await _artifacts(request)
    return answer(ArtifactList(items=tuple(artifact_view(artifact) for artifact in found)))


async def stream_artifact(request: web.Request) -> web.StreamResponse:
    """Send a file, so that no browser takes it for a page of the farm (P18)."""
    name = request.match_info["name"]
    artifact = next((one for one in await _artifacts(request) if one.name == name), None)
    if artifact is None:
        raise NotFoundError(f"the job has no artifact {name!r}", name=name)
    if artifact.state is not ArtifactState.READY:
        why = f": {artifact.detail}" if artifact.detail else ""
        raise ConflictError(f"{name} is {artifact.state}{why}", state=artifact.state.value)
    return await streamed(
        request,
        bytes_of(deps_of(request).artifacts.read(artifact.key)),
        artifact.media_type,
        headers=_as_attachment(artifact),
    )


async def _artifacts(request: web.Request) -> Sequence[Artifact]:
    job_id = request.match_info["job_id"]
    return await deps_of(request).jobs.artifacts(namespace_of(request), job_id)


async def _attempt(request: web.Request) -> tuple[int | None, bool]:
    """Return (number, every) of the attempts meant."""
    text = request.query.get("attempt")
    if text is None:
        return None, False
    if text == "all":
        return None, True
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidInputError(f"attempt is a number or 'all', not {text!r}", parameter="attempt")
    job_id = request.match_info["job_id"]
    attempts = await deps_of(request).jobs.attempts(namespace_of(request), job_id)
    if all(attempt.number != int(text) for attempt in attempts):
        raise NotFoundError(f"the job has no attempt {text}", attempt=text)
    return int(text), False


def _wants_csv(request: web.Request) -> bool:
    match choice_in_query(request, "format", ("jsonl", "csv")):
        case None:
            return CSV in request.headers.get(hdrs.ACCEPT, "").lower()
        case asked:
            return asked == "csv"


async def streamed(
    request: web.Request,
    chunks: AsyncGenerator[bytes, None],
    content_type: str,
    *,
    headers: dict[str, str] | None = None,
) -> web.StreamResponse:
    """Send the chunks; the head waits for the first, so that what fails until then is a problem."""
    async with aclosing(chunks):
        first = await anext(chunks, b"")
        response = web.StreamResponse(headers=headers)
        response.content_type = content_type
        if content_type in (CSV, JSON_LINES) and headers is None:
            response.charset = "utf-8"
        # A client that leaves in the middle is nobody's fault, nor is one that reads no more.
        try:
            await response.prepare(request)
            await _write(response, first)
            async for chunk in chunks:
                await _write(response, chunk)
            await response.write_eof()
        except ConnectionError:
            pass
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
    return response


async def _write(response: web.StreamResponse, chunk: bytes) -> None:
    async with asyncio.timeout(_UNREAD_S):
        await response.write(chunk)


async def bytes_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Pass chunks on, and close where they come from."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def _as_attachment(artifact: Artifact) -> dict[str, str]:
    """Return the headers of a download, with the name as RFC 6266 and RFC 8187 have it."""
    plain = "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\%' else "_" for c in artifact.name
    )
    exact = quote(artifact.name, safe="")
    return {
        hdrs.CONTENT_DISPOSITION: f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}",
        hdrs.CONTENT_LENGTH: str(artifact.size),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }


_ITEM_PARAMETERS = (
    Parameter(name="attempt", description="A number, or `all`; else the attempt that counts."),
    Parameter(name="dataset", description="Only records of this data set."),
    Parameter(name="format", description="`jsonl` or `csv`; wins over Accept."),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/jobs/{job_id}/items",
        handler=stream_items,
        summary="Get the records of a job",
        access=Access.ADMIN,
        parameters=_ITEM_PARAMETERS,
        answers=(Answer(description="One record a line.", media_types=(JSON_LINES, CSV)),),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job_id}/artifacts",
        handler=list_artifacts,
        summary="List the files of a job",
        access=Access.ADMIN,
        answers=(Answer(model=ArtifactList),),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job_id}/artifacts/{name}",
        handler=stream_artifact,
        summary="Get a file of a job",
        access=Access.ADMIN,
        answers=(Answer(description="The file.", media_types=("application/octet-stream",)),),
    ),
)
