"""Files that pages are to be given: handed in before, fetched by the agent that needs them.

A file has no entry in the ledger. Its reference, `file_<number>/<name>`, is where it lies in the
namespace's folder of the store, so it is found by nobody of another namespace.
"""

import re
from collections.abc import AsyncIterator
from contextlib import aclosing

from aiohttp import web

from farm.api.answers import BROKEN, answer
from farm.api.deps import Deps, deps_of, namespace_of
from farm.api.results import bytes_of, streamed
from farm.api.routes import Access, Answer, Route
from farm.api.uploads import TOKEN_PARAMETER, attempt_of, token_of
from farm.core.job_states import AttemptState
from farm.core.model import Namespace
from farm.errors import InvalidInputError, NotFoundError, StaleAssignmentError, TooLargeError
from farm.jobs.handed_in import folder_of
from farm.jobs.naming import DEFAULT_MEDIA_TYPE, safe_name
from farm.protocol.resources import FileStored

_CHUNK = 64 * 1024
_FILE = re.compile(r"file_([0-9a-f]{32})", re.ASCII)


async def post_file(request: web.Request) -> web.Response:
    """Keep a file for the jobs of the namespace, under a reference of its own."""
    deps = deps_of(request)
    if (request.content_length or 0) > deps.max_artifact_bytes:
        raise TooLargeError(
            f"a file has at most {deps.max_artifact_bytes} bytes", max_bytes=deps.max_artifact_bytes
        )
    await deps.handed_in.require_room(namespace_of(request), request.content_length or 0)
    async with deps.artifacts.create(folder_of(namespace_of(request))) as file:
        try:
            async for chunk in request.content.iter_chunked(_CHUNK):
                await file.write(chunk)
        except BROKEN as error:
            raise InvalidInputError(f"the body is broken: {error}") from None
        key, size, sha256 = await file.commit()
    name = safe_name(request.match_info["name"])
    reference = f"file_{key.rpartition('/')[2]}/{name}"
    return answer(FileStored(reference=reference, name=name, size=size, sha256=sha256))


async def get_file(request: web.Request) -> web.StreamResponse:
    """Send a file to the agent of a running attempt, under its lease (P8)."""
    deps = deps_of(request)
    token = token_of(request)
    attempt, namespace = await attempt_of(request, deps)
    if attempt.token != token or attempt.state is not AttemptState.RUNNING:
        raise StaleAssignmentError("the attempt has ended")
    owner, name = request.match_info["owner"], request.match_info["name"]
    key = await _key(deps, namespace, owner, name)
    return await streamed(request, bytes_of(_found(deps, key, owner, name)), DEFAULT_MEDIA_TYPE)


async def _key(deps: Deps, namespace: Namespace, owner: str, name: str) -> str:
    if match := _FILE.fullmatch(owner):
        return f"{folder_of(namespace)}/{match[1]}"
    # That the job is one of the namespace is asked first, for its artifacts are found by its id.
    for artifact in await deps.jobs.artifacts(namespace, owner):
        if artifact.name == name and artifact.key:
            return artifact.key
    raise NotFoundError(f"{owner} has no artifact {name!r}", name=name)


async def _found(deps: Deps, key: str, owner: str, name: str) -> AsyncIterator[bytes]:
    try:
        async with aclosing(bytes_of(deps.artifacts.read(key))) as chunks:
            async for chunk in chunks:
                yield chunk
    except NotFoundError:
        raise NotFoundError(f"there is no file {owner}/{name}", name=name) from None


ROUTES = (
    Route(
        method="POST",
        path="/v1/files/{name}",
        handler=post_file,
        summary="Hand in a file that jobs may give to pages",
        access=Access.ADMIN,
        takes_body=True,
        body_media_types=("application/octet-stream",),
        answers=(Answer(description="Kept, under this reference.", model=FileStored),),
    ),
    Route(
        method="GET",
        path="/v1/attempts/{attempt_id}/files/{owner}/{name}",
        handler=get_file,
        summary="Get a file that a running attempt gives to its page",
        access=Access.AGENT,
        parameters=(TOKEN_PARAMETER,),
        answers=(Answer(description="The file.", media_types=("application/octet-stream",)),),
    ),
)
