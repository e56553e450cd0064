"""Part of `FarmClient`: jobs, what they bring, and what is decided about them."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from farm.protocol.resources import (
    SUBMISSION,
    ArtifactList,
    ArtifactView,
    EventView,
    FileStored,
    InterventionView,
    JobAccepted,
    JobDetail,
    JobList,
    JobView,
)
from farm.sdk.errors import FarmUnreachableError
from farm.sdk.streams import lines, server_sent
from farm.sdk.transport import QUIET_S, Query, Transport, chunks, path_of


class JobCalls:
    """Part of `FarmClient`."""

    _farm: Transport
    _reconnect_s: float

    async def submit(
        self,
        body: bytes | str | Mapping[str, Any],
        *,
        content_type: str | None = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        wait_s: float | None = None,
    ) -> JobAccepted:
        """Submit a job: the text of a job file (YAML or JSON), or its content.

        With `wait_s` (at most 60) the answer comes once the job is at rest, or after that. Give an
        `idempotency_key` with it: who is cut off meanwhile can ask again.

        `params` take precedence over the file's. Submitting again under one `idempotency_key`
        gives the job that is there, with `duplicate` set.
        """
        headers = {}
        if isinstance(body, Mapping):
            data = json.dumps(body).encode()
            content_type = content_type or "application/json"
        else:
            data = body.encode() if isinstance(body, str) else body
        if content_type is not None:
            headers["Content-Type"] = content_type
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        if params and (envelope := _in_envelope(data, content_type, params)) is not None:
            data, headers["Content-Type"] = envelope, SUBMISSION
        return await self._farm.call(
            JobAccepted,
            "POST",
            "/v1/jobs",
            query={"wait": wait_s},
            data=data,
            headers=headers,
            quiet_s=QUIET_S + (wait_s or 0),
        )

    async def job(self, id: str, wait_s: float | None = None) -> JobDetail:
        """Return one job; with `wait_s` (at most 60) as soon as it is at rest, or after that."""
        path = path_of("jobs", id)
        return await self._farm.call(
            JobDetail, "GET", path, query={"wait": wait_s}, quiet_s=QUIET_S + (wait_s or 0)
        )

    async def jobs(
        self, state: str | None = None, *, limit: int | None = None, cursor: str | None = None
    ) -> JobList:
        """Return one page of jobs, newest first."""
        query: Query = {"state": state, "limit": limit, "cursor": cursor}
        return await self._farm.call(JobList, "GET", "/v1/jobs", query=query)

    async def items(
        self, id: str, attempt: int | Literal["all"] | None = None, dataset: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the records of a job: those of the attempt that counts, of one, or of all."""
        query: Query = {"attempt": attempt, "dataset": dataset}
        async with self._farm.open("GET", path_of("jobs", id, "items"), query=query) as response:
            async for line in lines(chunks(response)):
                if line:
                    yield json.loads(line)

    async def items_csv(
        self, id: str, attempt: int | Literal["all"] | None = None, dataset: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the same as the bytes of a CSV file, UTF-8, with a header line."""
        query: Query = {"attempt": attempt, "dataset": dataset, "format": "csv"}
        async with self._farm.open("GET", path_of("jobs", id, "items"), query=query) as response:
            async for chunk in chunks(response):
                yield chunk

    async def events(
        self, id: str, after: int = 0, follow: bool = True
    ) -> AsyncIterator[EventView]:
        """Yield a job's history after number `after`; ends when the job is at rest.

        A broken connection is made again, and the history goes on where it was. Without `follow`
        only what is there now.

        Raises:
            FarmUnreachableError: If there is no farm to begin with, or the farm stays away for
                longer than `reconnect_s`.
        """
        loop = asyncio.get_running_loop()
        broken_at: float | None = None
        pause = 0.2
        connected = False
        while True:
            try:
                async with self._farm.open(
                    "GET",
                    path_of("jobs", id, "events"),
                    query={"follow": None if follow else "false"},
                    headers={"Last-Event-ID": str(after), "Accept": "text/event-stream"},
                ) as response:
                    connected = True
                    async for sent in server_sent(chunks(response)):
                        if sent.event == "end":
                            return
                        event = EventView.model_validate_json(sent.data)
                        after, broken_at, pause = event.seq, None, 0.2
                        yield event
            except FarmUnreachableError:
                broken_at = loop.time() if broken_at is None else broken_at
                if not connected or loop.time() - broken_at > self._reconnect_s:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)

    async def artifacts(self, id: str) -> tuple[ArtifactView, ...]:
        """Return what files a job has produced."""
        return (await self._farm.call(ArtifactList, "GET", path_of("jobs", id, "artifacts"))).items

    async def artifact(self, id: str, name: str) -> AsyncIterator[bytes]:
        """Yield the bytes of one file."""
        async with self._farm.open("GET", path_of("jobs", id, "artifacts", name)) as response:
            async for chunk in chunks(response):
                yield chunk

    async def put_file(self, name: str, content: bytes | AsyncIterator[bytes]) -> FileStored:
        """Hand in a file that the step `upload` may name by the reference returned."""
        return await self._farm.call(FileStored, "POST", path_of("files", name), data=content)

    async def cancel(self, id: str, *, by: str | None = None) -> JobView:
        """Ask for a job to be stopped; one that runs is `cancelling` until it has."""
        return await self._decide(id, "cancel", by)

    async def retry(self, id: str, *, by: str | None = None) -> JobView:
        """Run a job again that has failed, timed out or been cancelled, with new attempts.

        What might repeat an effect is refused: `FarmApiError` with status 409, whose problem says
        in `reason` `effect_uncertain` or `effect_would_repeat`.
        """
        return await self._decide(id, "retry", by)

    async def delete(self, id: str) -> None:
        """Delete a job that has ended, with its records, history and files."""
        async with self._farm.open("DELETE", path_of("jobs", id)):
            pass

    async def pause(self, id: str, *, by: str | None = None) -> InterventionView:
        """Let a job wait before its next step, or in the queue; see `_intervene`."""
        return await self._intervene(id, "pause", by)

    async def resume(self, id: str, *, by: str | None = None) -> InterventionView:
        """Let a paused job go on."""
        return await self._intervene(id, "resume", by)

    async def take_over(self, id: str, *, by: str | None = None) -> InterventionView:
        """Let a person work in the job's tab, once its step in progress is over."""
        return await self._intervene(id, "take-over", by)

    async def hand_back(self, id: str, *, by: str | None = None) -> InterventionView:
        """Let the job go on where a person has left its tab."""
        return await self._intervene(id, "hand-back", by)

    async def message(self, id: str, text: str, *, by: str | None = None) -> InterventionView:
        """Show a text to the people at the job's browser."""
        return await self._intervene(id, "message", by, text=text)

    async def _intervene(self, id: str, what: str, by: str | None, **more: str) -> InterventionView:
        """Do something to a job; what is not applied is `FarmApiError` with status 409.

        `outcome` of its problem then says why: `stale_target` where no attempt of the job is
        running within reach, `capability_not_supported` where its agent can't do that, and
        `out_of_place` where it does not follow from who has control.
        """
        said = more if by is None else {**more, "by": by}
        body = json.dumps(said).encode()
        return await self._farm.call(InterventionView, "POST", path_of("jobs", id, what), data=body)

    async def resolve(
        self, id: str, as_: Literal["succeeded", "failed", "retry"], *, by: str | None = None
    ) -> JobView:
        """Decide what an uncertain job is."""
        return await self._decide(id, "resolve", by, **{"as": as_})

    async def _decide(self, id: str, what: str, by: str | None, **more: str) -> JobView:
        said = more if by is None else {**more, "by": by}
        body = json.dumps(said).encode()
        return await self._farm.call(JobView, "POST", path_of("jobs", id, what), data=body)


def _in_envelope(file: bytes, content_type: str | None, params: Mapping[str, Any]) -> bytes | None:
    """Put a file and its params into one body; None if it is no text, which the farm will say."""
    try:
        text = file.decode()
    except UnicodeDecodeError:
        return None
    sent = {"job": text, "params": dict(params), "content_type": content_type}
    return json.dumps(sent, ensure_ascii=False).encode("utf-8", "surrogatepass")
