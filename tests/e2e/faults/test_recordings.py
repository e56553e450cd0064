"""Recordings from the job file to the files of a job, and when an agent dies in the middle."""

import asyncio
import json
import zipfile
from pathlib import Path

import psutil
import pytest

from farm.core.eligibility import Reason
from farm.protocol.recordings import RecordingKind
from farm.protocol.resources import ArtifactView
from farm.sdk import FarmApiError, FarmClient
from tests.e2e.faults.house import House, agents_of, lives
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import happened, once, ran, rested, submitted
from tests.e2e.processes import eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EVERY = [kind.value for kind in RecordingKind]
NEVER_CAME = "the attempt ended before it was handed in"


def encoders(house: House) -> list[psutil.Process]:
    """The processes that encode videos for agents of the house."""
    return [
        one
        for one in psutil.process_iter(["cmdline"])
        if lives(one) and any(str(house.temporary) in word for word in one.info["cmdline"] or ())
        and one.info["cmdline"][-1].endswith("video.webm")
    ]  # fmt: skip


async def files(client: FarmClient, job_id: str) -> dict[str, ArtifactView]:
    return {f.recording: f for f in await client.artifacts(job_id) if f.recording is not None}


async def content(client: FarmClient, job_id: str, name: str) -> bytes:
    return b"".join([chunk async for chunk in client.artifact(job_id, name)])


async def test_what_is_recorded_is_there_when_the_job_has_ended_and_survives_no_killed_agent(
    house: House, place: Place, tmp_path: Path
) -> None:
    farm = await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        visit = {"goto": f"{place.url}/"}
        body = once("recorded", visit, {"extract": {"fields": {"t": "h1"}}}, record=EVERY)
        done = await ran(client, body)
        assert done.state == "succeeded"
        found = await files(client, done.id)
        assert {kind: (f.state, f.detail) for kind, f in found.items()} == dict.fromkeys(
            EVERY, ("ready", "")
        )
        assert done.artifact_count == len(EVERY)
        trace = tmp_path / "trace.zip"
        trace.write_bytes(await content(client, done.id, "trace.zip"))
        with zipfile.ZipFile(trace) as archive:
            assert archive.testzip() is None
        har = json.loads(await content(client, done.id, "network.har"))
        assert har["log"]["entries"][0]["request"]["url"] == f"{place.url}/"
        assert encoders(house) == []

        place.hold("/slow")
        slow = once("killed", visit, {"goto": f"{place.url}/slow"}, record=EVERY)
        job_id = await submitted(client, slow)
        await place.asked("GET /slow")
        assert {f.state for f in (await files(client, job_id)).values()} == {"pending"}
        assert len(encoders(house)) == 1
        (agent,) = agents_of(farm)
        agent.kill()
        lost = await rested(client, job_id)
        assert lost.state == "failed"
        ends = {kind: (f.state, f.detail) for kind, f in (await files(client, job_id)).items()}
        assert ends == dict.fromkeys(EVERY, ("failed", NEVER_CAME))
        assert lost.artifact_count == 0
        with pytest.raises(FarmApiError, match=f"video.webm is failed: {NEVER_CAME}"):
            await content(client, job_id, "video.webm")
        kept = house.data_dir / "artifacts"
        assert not (kept / job_id).exists()
        assert list((kept / ".incoming").iterdir()) == []
        await eventually(lambda: encoders(house) == [], 10)


async def test_a_cancelled_job_has_what_was_recorded_until_then(house: House, place: Place) -> None:
    await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        body = once("cancelled", {"goto": f"{place.url}/"}, {"wait": "60s"}, record=EVERY)
        job_id = await submitted(client, body)
        await happened(client, job_id, "step_ended")
        await client.cancel(job_id)
        assert (await rested(client, job_id, 20)).state == "cancelled"
        found = await files(client, job_id)
        assert {kind for kind, f in found.items() if f.state == "ready"} >= {"trace", "network"}
        assert "pending" not in {f.state for f in found.values()}


async def test_an_agent_that_can_t_encode_gets_no_job_that_records_video(
    house: House, place: Place
) -> None:
    house.settings = {"AGENT_FFMPEG": "/nowhere/ffmpeg"}
    await house.up("--allow", "127.0.0.1")
    async with house.client() as client:
        steps = ({"goto": f"{place.url}/"},)
        filmed = await submitted(client, once("filmed", *steps, record="video"))
        other = await ran(client, once("traced", *steps, record="trace"))
        assert other.state == "succeeded"
        async with asyncio.timeout(PATIENCE_S):
            while (waiting := (await client.job(filmed)).waiting) is None:
                await asyncio.sleep(0.05)
        assert waiting.reason == Reason.REQUIREMENTS_NOT_MET
        assert waiting.remedy is not None
        assert "ffmpeg" in waiting.remedy
