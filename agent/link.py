"""The link to the farm, which is dialled again and again, and uploads beside it."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import aiohttp
import structlog
from pydantic import ValidationError

from agent.connecting import Connection, Dial, websocket
from agent.machine.events import Heard, LinkDown, LinkUp
from agent.ports import LinkRefused, StaleAssignment, UploadRefused
from farm.protocol.loose import members_of
from farm.protocol.messages import Ack, FromAgent, Refused, ToAgent, Token, Welcome, to_agent
from farm.protocol.recordings import RecordingKind

_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 10.0
_DIAL_S = 10.0
_SEND_S = 1.0
"""A connection that takes nothing for so long is given up: whoever sends must not wait for it."""
_SILENT_WINDOWS = 0.5
_SILENT_BEATS = 1.5
"""A farm that is not heard for so much of its window, and so many heartbeats, is dialled anew; what
runs is given up only when the whole window is over."""
_TOKEN_IS_WRONG: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "does not know this agent's token, or has revoked it",
    HTTPStatus.FORBIDDEN: (
        "knows this agent's token, but not as one of scope agent; "
        "`farm token create --scope agent` makes one"
    ),
}
_CHUNK = 256 * 1024
_UPLOAD_TRIES = 5

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class FarmLink:
    """Implements `agent.ports.Link`.

    Of several ways to dial it takes the first that connects. One by which the farm was heard is
    tried first from then on, and one by which nothing was heard last.

    A connection on which the farm has fallen silent is ended: the network may have lost it, and
    told nobody.

    Of several farms it stays with the one that let it in. When that one is lost it goes on to the
    next: at once where they share their ledger, else after a window in vain, when all that it ran
    for the first has been given up.
    """

    def __init__(
        self, session: aiohttp.ClientSession, *urls: str, dials: Sequence[Dial] = (websocket,)
    ) -> None:
        self._session = session
        self._dials = list(dials)
        self._worked: set[Dial] = set()
        self._mute: set[Dial] = set()
        self._urls = [url.rstrip("/") for url in urls]
        self._faithful_s = 0.0
        """For so long the farm is dialled again that has let us in."""
        self._connection: Connection | None = None
        self._life = asyncio.timeout(None)
        self._silence_s: float | None = None
        """How long the farm may say nothing, once it has let us in."""
        self._last_refusal: Refused | None = None

    @property
    def url(self) -> str:
        """The farm that it is linked to, or dials."""
        return self._urls[0]

    async def run(self, tell: Callable[[LinkUp | LinkDown | Heard], None]) -> None:
        """See `Link.run`."""
        now = asyncio.get_running_loop().time
        wait_s, faithful_until = _FIRST_WAIT_S, now()
        while True:
            try:
                if await self._live(tell):
                    wait_s = _FIRST_WAIT_S
            except aiohttp.ClientResponseError as error:
                if error.status in _TOKEN_IS_WRONG:
                    raise LinkRefused(f"{self.url} {_TOKEN_IS_WRONG[error.status]}") from error
                log.warning("link.failed", status=error.status)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                log.warning("link.failed", reason=str(error) or type(error).__name__)
            if self._faithful_s:
                faithful_until, self._faithful_s = now() + self._faithful_s, 0.0
            if now() >= faithful_until:
                self._urls.append(self._urls.pop(0))
            # Spread, so that a farm that comes back is not dialled by all of its agents at once.
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311 - guards nothing
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    async def _live(self, tell: Callable[[LinkUp | LinkDown | Heard], None]) -> bool:
        """Live one connection to its end; tell whether the farm let us in."""
        let_in = heard = False
        async with contextlib.AsyncExitStack() as stack:
            dial, self._connection = await self._dial(stack)
            self._silence_s = None
            tell(LinkUp())
            try:
                async with asyncio.timeout(None) as self._life:
                    async for text in self._connection.texts():
                        heard = True
                        let_in = await self._pass_on(text, tell) or let_in
                        self._wait_for_more()
            finally:
                self._connection = None
                if let_in:
                    log.info("link.lost", url=self.url)
                (self._worked if heard else self._mute).add(dial)
                tell(LinkDown())
        return let_in

    def _wait_for_more(self) -> None:
        if self._connection is not None and self._silence_s is not None:
            self._life.reschedule(asyncio.get_running_loop().time() + self._silence_s)

    async def _dial(self, stack: contextlib.AsyncExitStack) -> tuple[Dial, Connection]:
        ways = sorted(self._dials, key=lambda way: (way not in self._worked, way in self._mute))
        for way in ways:
            try:
                async with asyncio.timeout(_DIAL_S):
                    return way, await stack.enter_async_context(way(self._session, self.url))
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                if way is ways[-1]:
                    raise
                log.info("link.other_way", failed=way.__name__, reason=str(error)[:200])
        raise AssertionError("the last way returns or raises")

    async def send(self, message: FromAgent) -> None:
        """See `Link.send`."""
        connection = self._connection
        if connection is None or connection.closed:
            return
        try:
            async with asyncio.timeout(_SEND_S):
                await connection.send(message.model_dump_json(exclude_none=True))
        except TimeoutError:
            log.warning("link.stuck")
            if self._connection is connection:
                self._connection = None
                self._life.reschedule(0.0)
        except (aiohttp.ClientError, OSError) as error:
            # What matters is kept and sent again on the next link.
            log.debug("link.send_failed", reason=str(error))

    async def _pass_on(self, text: str, tell: Callable[[LinkUp | LinkDown | Heard], None]) -> bool:
        """Tell of a message; return whether it lets us in."""
        try:
            message = to_agent.validate_json(text)
        except ValidationError as error:
            problems, first = error.error_count(), str(error.errors()[0]["msg"])
            log.warning("link.unreadable", problems=problems, first=first)
            if (command_id := _command_in(text)) is not None:
                # The farm waits for what becomes of it.
                refusal = Ack(command_id=command_id, refused="not_understood", detail=first[:500])
                await self.send(refusal)
            return False
        self._note_answer(message)
        tell(Heard(message))
        return isinstance(message, Welcome)

    def _note_answer(self, message: ToAgent) -> None:
        """Log that we are let in, or why not, once: the dialling goes on and says it each time."""
        match message:
            case Welcome(window_s=window_s, heartbeat_interval_s=beat_s, shared=shared):
                log.info("link.welcome", url=self.url, epoch=message.epoch_number)
                self._last_refusal, self._faithful_s = None, 0.0 if shared else window_s
                self._silence_s = max(_SILENT_WINDOWS * window_s, _SILENT_BEATS * beat_s)
            case Refused() if message != self._last_refusal:
                self._last_refusal = message
                log.warning(
                    "link.refused",
                    reason=message.reason,
                    detail=message.detail,
                    dials_again=message.retry,
                )
            case _:
                pass


def _command_in(text: str) -> str | None:
    """Return which command a message is that can't be understood as a whole; None if it is none."""
    message = members_of(text)
    command_id = message.get("command_id")
    return command_id if message.get("op") == "command" and isinstance(command_id, str) else None


class HttpUploads:
    """Implements `agent.ports.Uploads`."""

    def __init__(self, session: aiohttp.ClientSession, farm: Callable[[], str]) -> None:
        self._session = session
        self._farm = farm
        """Says where the farm is that the agent is linked to."""

    async def upload(
        self,
        attempt_id: str,
        token: Token,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        """See `Uploads.upload`; dials again a few times where the farm is not there."""
        headers = {
            "Content-Type": media_type,
            "X-Tabfarm-Token": f"{token.store_epoch}.{token.counter}",
        }
        if recording is not None:
            headers["X-Tabfarm-Recording"] = recording.value
        wait_s = _FIRST_WAIT_S
        for _ in range(_UPLOAD_TRIES - 1):
            try:
                return await self._put(attempt_id, name, content, headers)
            except (aiohttp.ClientError, OSError) as error:
                log.warning("upload.failed", name=name, reason=str(error))
            await asyncio.sleep(wait_s)
            wait_s *= 2
        try:
            return await self._put(attempt_id, name, content, headers)
        except (aiohttp.ClientError, OSError) as error:
            raise UploadRefused("internal", f"{name} could not be uploaded: {error}") from error

    async def _put(
        self, attempt_id: str, name: str, content: bytes | Path, headers: dict[str, str]
    ) -> str:
        url = f"{self._farm()}/v1/attempts/{quote(attempt_id)}/artifacts/{quote(name, safe='')}"
        data = content if isinstance(content, bytes) else _chunks(content)
        if isinstance(content, Path):  # so that one which has no room is refused before it is sent
            size = (await asyncio.to_thread(content.stat)).st_size
            headers = headers | {"Content-Length": str(size)}
        async with self._session.put(url, data=data, headers=headers) as answer:
            match answer.status:
                case HTTPStatus.OK | HTTPStatus.CREATED:
                    return str((await answer.json())["name"])
                case HTTPStatus.CONFLICT | HTTPStatus.NOT_FOUND | HTTPStatus.FORBIDDEN:
                    raise StaleAssignment
                case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                    raise UploadRefused("artifact_too_large", f"{name} is larger than allowed")
                case HTTPStatus.INSUFFICIENT_STORAGE:
                    detail = f"the farm has no room for {name}{await _detail(answer)}"
                    raise UploadRefused("artifact_store_full", detail)
                case status:
                    raise aiohttp.ClientError(f"the farm answered {status}")

    async def fetch(
        self, attempt_id: str, token: Token, reference: str, into: Path, max_bytes: int
    ) -> Path:
        """See `Uploads.fetch`; dials again a few times where the farm is not there."""
        headers = {"X-Tabfarm-Token": f"{token.store_epoch}.{token.counter}"}
        owner, _, name = reference.partition("/")
        where = f"v1/attempts/{quote(attempt_id)}/files/{quote(owner)}/{quote(name, safe='')}"
        await asyncio.to_thread(into.mkdir, parents=True)
        path = into / Path(name).name
        wait_s = _FIRST_WAIT_S
        for turn in range(_UPLOAD_TRIES):
            try:
                return await self._get(where, headers, path, max_bytes)
            except aiohttp.ClientError as error:
                log.warning("fetch.failed", reference=reference, reason=str(error))
                if turn == _UPLOAD_TRIES - 1:
                    detail = f"{reference} could not be fetched: {error}"
                    raise UploadRefused("internal", detail) from error
            await asyncio.sleep(wait_s)
            wait_s *= 2
        raise AssertionError("the last turn returns or raises")

    async def _get(self, where: str, headers: dict[str, str], path: Path, max_bytes: int) -> Path:
        async with self._session.get(f"{self._farm()}/{where}", headers=headers) as answer:
            match answer.status:
                case HTTPStatus.OK:
                    await _save(answer, path, max_bytes)
                    return path
                case HTTPStatus.NOT_FOUND:
                    detail = f"the farm has no file {path.name}{await _detail(answer)}"
                    raise UploadRefused("value_invalid", detail)
                case HTTPStatus.CONFLICT | HTTPStatus.FORBIDDEN:
                    raise StaleAssignment
                case status:
                    raise aiohttp.ClientError(f"the farm answered {status}")


async def _detail(answer: aiohttp.ClientResponse) -> str:
    """Return what a problem says, after a colon; nothing where it is none."""
    try:
        problem = await answer.json(content_type=None)
        return f": {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        return ""


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk


async def _save(answer: aiohttp.ClientResponse, path: Path, max_bytes: int) -> None:
    with await asyncio.to_thread(path.open, "wb") as file:
        async for chunk in answer.content.iter_chunked(_CHUNK):
            await asyncio.to_thread(file.write, chunk)
            if file.tell() > max_bytes:
                raise UploadRefused("artifact_too_large", f"{path.name} has over {max_bytes} bytes")
