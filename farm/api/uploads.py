"""`PUT /v1/attempts/{id}/artifacts/{name}`: how agents hand in files."""

import re

from aiohttp import hdrs, web

from farm.api.answers import BROKEN, answer
from farm.api.deps import Deps, deps_of, principal_of
from farm.api.routes import Access, Answer, Parameter, Route
from farm.core.job_states import AttemptState
from farm.core.model import Namespace, Token
from farm.errors import (
    ArtifactStoreFullError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    StaleAssignmentError,
    TooLargeError,
)
from farm.jobs.naming import media_type, safe_name
from farm.protocol.recordings import RecordingKind
from farm.protocol.resources import ArtifactStored
from farm.stores.records import Artifact, Attempt

TOKEN_HEADER = "X-Tabfarm-Token"  # noqa: S105 - a header's name
TOKEN_PARAMETER = Parameter(
    name=TOKEN_HEADER,
    where="header",
    required=True,
    description="The fencing token of the assignment: <store epoch>.<counter>.",
)
RECORDING_HEADER = "X-Tabfarm-Recording"
_TOKEN = re.compile(r"(\d{1,18})\.(\d{1,18})", re.ASCII)
_CHUNK = 64 * 1024


async def put_artifact(request: web.Request) -> web.Response:
    """Keep a file of an attempt that runs on an agent of this token, under its lease (P8)."""
    deps = deps_of(request)
    token = token_of(request)
    attempt, namespace = await attempt_of(request, deps)
    if attempt.token != token or attempt.state is not AttemptState.RUNNING:
        raise StaleAssignmentError("the attempt has ended")
    if (request.content_length or 0) > deps.max_artifact_bytes:
        raise TooLargeError(
            f"an artifact has at most {deps.max_artifact_bytes} bytes",
            max_bytes=deps.max_artifact_bytes,
        )
    recording = _recording(request)
    if recording is not None:
        await _require_room(request, deps, namespace)
    key, size, sha256 = await _keep(request, deps, attempt)
    artifact = Artifact(
        job_id=attempt.job_id,
        attempt_id=attempt.attempt_id,
        name=safe_name(request.match_info["name"]),
        size=size,
        sha256=sha256,
        media_type=media_type(request.headers.get(hdrs.CONTENT_TYPE)),
        key=key,
        created_at=deps.clock(),
        recording=recording,
    )
    kept = await deps.ledger.add_artifact(artifact, token)
    if kept is None:
        await deps.artifacts.discard(key)
        raise StaleAssignmentError("the attempt ended while the file was sent")
    deps.feed.publish(attempt.job_id, may_rest=False)
    return answer(ArtifactStored(name=kept.name))


async def _require_room(request: web.Request, deps: Deps, namespace: Namespace) -> None:
    """Refuse a recording for which the namespace's share has no room.

    What several hand in at one moment may go beyond it, by that much.
    """
    used = await deps.ledger.recordings_size(namespace)
    if used + (request.content_length or 0) > deps.recordings_max_bytes:
        raise ArtifactStoreFullError(
            f"the namespace's recordings have {used} of {deps.recordings_max_bytes} bytes",
            used=used,
            most=deps.recordings_max_bytes,
        )


async def attempt_of(request: web.Request, deps: Deps) -> tuple[Attempt, Namespace]:
    """Return the attempt, and whose it is; whether another's exists is not told.

    An agent may serve several namespaces: what it may touch follows from the attempt (P16).
    """
    refused = ForbiddenError("this is no attempt of an agent that this token is connected as")
    try:
        attempt = await deps.ledger.attempt(request.match_info["attempt_id"])
        namespace = (await deps.ledger.job_of_attempt(attempt.attempt_id)).namespace
    except NotFoundError:
        raise refused from None
    asks = principal_of(request)
    if namespace not in asks.namespaces or not await deps.owns(asks.token_id, attempt.client_id):
        raise refused
    return attempt, namespace


async def _keep(request: web.Request, deps: Deps, attempt: Attempt) -> tuple[str, int, str]:
    """Write the body to the store as it comes; nothing is left of one that breaks off."""
    async with deps.artifacts.create(attempt.job_id) as file:
        try:
            async for chunk in request.content.iter_chunked(_CHUNK):
                await file.write(chunk)
        except BROKEN as error:
            raise InvalidInputError(f"the body is broken: {error}") from None
        return await file.commit()


def token_of(request: web.Request) -> Token:
    """Return the fencing token in the header. Raises InvalidInputError."""
    match = _TOKEN.fullmatch(request.headers.get(TOKEN_HEADER, ""))
    if match is None:
        raise InvalidInputError(
            f"{TOKEN_HEADER} is the fencing token as <store epoch>.<counter>", header=TOKEN_HEADER
        )
    return Token(store_epoch=int(match[1]), counter=int(match[2]))


def _recording(request: web.Request) -> str | None:
    text = request.headers.get(RECORDING_HEADER)
    if text is None:
        return None
    if text not in frozenset(RecordingKind):
        raise InvalidInputError(
            f"{RECORDING_HEADER} is one of {', '.join(RecordingKind)}", header=RECORDING_HEADER
        )
    return text


ROUTES = (
    Route(
        method="PUT",
        path="/v1/attempts/{attempt_id}/artifacts/{name}",
        handler=put_artifact,
        summary="Hand in a file of a running attempt",
        access=Access.AGENT,
        parameters=(
            TOKEN_PARAMETER,
            Parameter(
                name=RECORDING_HEADER,
                where="header",
                description="The kind of recording that this is: the one pending becomes ready.",
            ),
        ),
        takes_body=True,
        body_media_types=("application/octet-stream",),
        answers=(Answer(description="Kept, under this name.", model=ArtifactStored),),
    ),
)
