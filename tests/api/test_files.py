"""Files for pages: handed in, fetched by the agent of a running attempt and by nobody else."""

import hashlib
import json
from pathlib import Path

import pytest

from farm.core.admission import Bounds
from farm.core.model import Namespace
from tests.api.stack import AGENT, DEFAULT, JOB, MAX_ARTIFACT, Stack, running


async def put(stack: Stack, name: str, content: bytes) -> tuple[int, dict[str, object]]:
    url = f"{stack.url}/v1/files/{name}"
    async with stack.http.post(url, data=content, headers=stack.as_admin()) as response:
        return response.status, await response.json()


async def test_a_file_has_a_reference_and_a_safe_name(stack: Stack) -> None:
    status, said = await put(stack, "..%2F..%2Fa%3Ab.txt", b"abc")
    assert status == 200
    assert said["name"] == "a_b.txt"
    assert str(said["reference"]).startswith("file_")
    assert str(said["reference"]).endswith("/a_b.txt")
    assert (said["size"], said["sha256"]) == (3, hashlib.sha256(b"abc").hexdigest())


async def test_a_file_over_the_limit_is_refused(stack: Stack) -> None:
    status, _ = await put(stack, "large", b"x" * (MAX_ARTIFACT + 1))
    assert status == 413


async def test_more_than_a_namespace_may_hand_in_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, files_max_bytes=5) as stack:
        assert (await put(stack, "a", b"123"))[0] == 200
        status, problem = await put(stack, "b", b"123")
        assert (status, problem["used"], problem["most"]) == (507, 3, 5)
        assert (await put(stack, "c", b"12"))[0] == 200


async def got(
    stack: Stack, attempt_id: str, reference: object, token: str = "1.1"
) -> tuple[int, bytes]:
    url = f"{stack.url}/v1/attempts/{attempt_id}/files/{reference}"
    headers = stack.as_agent(**{"X-Tabfarm-Token": token})
    async with stack.http.get(url, headers=headers) as response:
        return response.status, await response.read()


async def test_the_agent_of_a_running_attempt_gets_it_and_nobody_else(stack: Stack) -> None:
    _, said = await put(stack, "a.txt", b"abc")
    attempt = await stack.start(await stack.submit())
    assert await got(stack, attempt.attempt_id, said["reference"]) == (200, b"abc")
    assert (await got(stack, attempt.attempt_id, said["reference"], token="1.2"))[0] == 409
    assert (await got(stack, "att_other", said["reference"]))[0] == 403
    await stack.finish(attempt)
    assert (await got(stack, attempt.attempt_id, said["reference"]))[0] == 409
    stack.owners.pop(AGENT)
    assert (await got(stack, attempt.attempt_id, said["reference"]))[0] == 403


async def test_the_file_of_an_earlier_job_is_got_by_the_jobs_id(stack: Stack) -> None:
    earlier = await stack.submit()
    first = await stack.start(earlier)
    url = f"{stack.url}/v1/attempts/{first.attempt_id}/artifacts/report.csv"
    sent = stack.as_agent(**{"X-Tabfarm-Token": "1.1"})
    async with stack.http.put(url, data=b"1,2", headers=sent) as response:
        assert response.status == 200
    await stack.finish(first)
    attempt = await stack.start(await stack.submit({"name": "next", "steps": [{"wait": 1}]}))
    assert await got(stack, attempt.attempt_id, f"{earlier}/report.csv") == (200, b"1,2")


async def test_what_an_agent_of_several_namespaces_gets_follows_from_the_attempt(
    stack: Stack,
) -> None:
    shop = Namespace("shop")
    _, said = await put(stack, "a.txt", b"abc")
    attempt = await stack.start(await stack.submit())
    for namespaces, status in (({shop, DEFAULT}, 200), ({shop}, 403)):
        record, stack.agent = await stack.tokens.add(
            scope="agent",
            namespace=shop,
            name="both",
            bounds=Bounds(namespaces=frozenset(namespaces)),
        )
        stack.owners[AGENT] = record.token_id
        assert (await got(stack, attempt.attempt_id, said["reference"]))[0] == status
    job, _ = await stack.jobs.submit(shop, json.dumps(JOB).encode(), "application/json", {}, None)
    theirs = await stack.start(job.job_id, 2)
    assert (await got(stack, theirs.attempt_id, said["reference"], token="1.2"))[0] == 404


@pytest.mark.parametrize(
    "reference",
    ["file_00000000000000000000000000000000/a", "file_1/a", "job_none/a", "..%2F..%2Ffarm/x"],
)
async def test_what_is_not_there_is_not_found(stack: Stack, reference: str) -> None:
    attempt = await stack.start(await stack.submit())
    assert (await got(stack, attempt.attempt_id, reference))[0] == 404
