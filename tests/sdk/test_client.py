import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from farm.core.job_states import AttemptState, JobState
from farm.sdk import FarmApiError, FarmClient, FarmUnreachableError
from tests.api.stack import DEFAULT, JOB, Stack, running
from tests.listening import listening
from tests.patience import PATIENCE_S


@pytest.fixture
async def farm(stack: Stack) -> AsyncIterator[FarmClient]:
    async with FarmClient(stack.url + "/", stack.admin) as client:
        yield client


async def test_a_job_is_submitted_watched_and_read(stack: Stack, farm: FarmClient) -> None:
    accepted = await farm.submit(dict(JOB), params={}, idempotency_key="k")
    assert not accepted.duplicate
    assert (await farm.submit(dict(JOB), idempotency_key="k")).duplicate
    attempt = await stack.start(accepted.id)
    await stack.add_items(attempt, {"a": 1}, {"a": "=2"})
    await stack.finish(attempt)
    job = await farm.job(accepted.id, wait_s=5)
    assert (job.state, job.at_rest, job.item_count) == ("succeeded", True, 2)
    assert [event.seq async for event in farm.events(job.id)] == list(
        range(1, 1 + len([event async for event in farm.events(job.id)]))
    )
    assert [item async for item in farm.items(job.id)] == [{"a": 1}, {"a": "=2"}]
    text = b"".join([chunk async for chunk in farm.items_csv(job.id)])
    assert text == b"a\r\n1\r\n'=2\r\n"


@pytest.mark.parametrize("body", [b"name: x\nsteps: [{goto: 'https://x.example'}]\n", "url: ["])
async def test_a_job_file_may_be_text_or_bytes_and_its_faults_come_back(
    farm: FarmClient, body: bytes | str
) -> None:
    if isinstance(body, bytes):
        assert (await farm.submit(body, content_type="application/yaml")).name == "x"
        return
    with pytest.raises(FarmApiError) as caught:
        await farm.submit(body)
    assert caught.value.status == 422
    assert caught.value.problem.slug == "invalid-input"
    assert caught.value.problem.errors


async def test_jobs_are_listed_page_by_page(stack: Stack, farm: FarmClient) -> None:
    ids = [await stack.submit() for _ in range(3)]
    page = await farm.jobs(limit=2)
    rest = await farm.jobs(cursor=page.next_cursor)
    assert [job.id for job in (*page.items, *rest.items)] == ids[::-1]
    assert (await farm.jobs("running")).items == ()


async def test_a_files_bytes_come_as_they_were(stack: Stack, farm: FarmClient) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    async with stack.http.put(
        f"{stack.url}/v1/attempts/{attempt.attempt_id}/artifacts/%C3%A4%20%25.bin",
        data=bytes(200_000),
        headers=stack.as_agent(**{"X-Tabfarm-Token": "1.1"}),
    ) as response:
        assert response.status == 200
    [artifact] = await farm.artifacts(job_id)
    assert artifact.name == "ä %.bin"
    found = b"".join([chunk async for chunk in farm.artifact(job_id, artifact.name)])
    assert found == bytes(200_000)


async def test_params_are_in_no_url_and_may_be_long_and_of_any_type(
    stack: Stack, farm: FarmClient
) -> None:
    given = {"text": 'line\n"ä"' * 20_000, "n": 3, "list": [1, {"a": None}]}
    job = {**JOB, "params": {"text": "", "n": 1, "list": []}}
    accepted = await farm.submit(job, params=given)
    assert (await stack.ledger.job(DEFAULT, accepted.id)).spec["params"] == given
    with pytest.raises(FarmApiError, match="UTF-8"):
        await farm.submit(b"\xff", params={"n": 1})


async def test_cancelling_and_deciding(stack: Stack, farm: FarmClient) -> None:
    cancelled = await stack.submit()
    assert (await farm.cancel(cancelled)).state == "cancelled"
    assert (await farm.retry(cancelled, by="anna")).state == "queued"
    with pytest.raises(FarmApiError, match="queued"):
        await farm.delete(cancelled)
    await farm.cancel(cancelled)
    await farm.delete(cancelled)
    with pytest.raises(FarmApiError, match="no job"):
        await farm.job(cancelled)
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.finish(attempt, attempt_state=AttemptState.LOST, job_state=JobState.UNCERTAIN)
    assert (await farm.resolve(job_id, "failed")).state == "failed"


async def test_a_person_pauses_a_job_and_lets_it_go_on(stack: Stack, farm: FarmClient) -> None:
    job_id = await stack.submit()
    paused = await farm.pause(job_id, by="anna")
    assert paused.job.control is not None
    assert (paused.job.control.state, paused.job.control.by) == ("paused", "anna")
    assert (await farm.resume(job_id)).job.control is None
    for call in (farm.take_over, farm.hand_back):
        with pytest.raises(FarmApiError, match="queued"):
            await call(job_id)
    await stack.start(job_id)
    with pytest.raises(FarmApiError, match="stale target"):
        await farm.message(job_id, "hello")


async def test_what_there_is_can_be_asked(stack: Stack, farm: FarmClient) -> None:
    assert await farm.agents() == ()
    assert await farm.workers() == ()
    assert await farm.windows() == ()
    assert (await farm.ready()).ready
    stack.probe.reason = "nobody"


async def test_a_farm_that_is_not_ready_says_so_and_raises_nothing(
    stack: Stack, farm: FarmClient
) -> None:
    stack.probe.reason = "nobody"
    found = await farm.ready()
    assert (found.ready, found.reason) == (False, "nobody")


async def test_a_token_made_works_until_it_is_revoked(stack: Stack, farm: FarmClient) -> None:
    made = await farm.create_token("admin", "another")
    async with FarmClient(stack.url, made.token) as other:
        await other.jobs()
        await farm.revoke_token(made.id)
        with pytest.raises(FarmApiError, match="401"):
            await other.jobs()


async def test_an_unknown_job_is_an_error_with_its_problem(farm: FarmClient) -> None:
    with pytest.raises(FarmApiError) as caught:
        await farm.job("../agents")
    assert (caught.value.status, caught.value.problem.slug) == (404, "not-found")
    with pytest.raises(FarmApiError):
        [item async for item in farm.items("x")]
    with pytest.raises(FarmApiError):
        [event async for event in farm.events("x")]


async def test_no_farm_is_an_error_that_names_the_url(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with FarmClient(url, "x") as farm:
        with pytest.raises(FarmUnreachableError, match=url):
            await farm.jobs()
        with pytest.raises(FarmUnreachableError):
            [event async for event in farm.events("x")]


async def test_something_that_is_no_farm_is_told_apart(tmp_path: Path) -> None:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="<h1>It works</h1>")

    app = web.Application()
    app.router.add_get("/v1/jobs", hello)
    async with listening(app) as url, FarmClient(url, "x") as farm:
        with pytest.raises(FarmUnreachableError, match="does not answer as a farm"):
            await farm.jobs()
        with pytest.raises(FarmApiError) as caught:
            await farm.agents()
        assert caught.value.problem.type == "about:blank"


async def test_events_go_on_where_they_were_after_the_connection_broke(
    stack: Stack, farm: FarmClient
) -> None:
    job_id = await stack.submit()
    seen: list[int] = []

    async def watch() -> None:
        async for event in farm.events(job_id):
            seen.append(event.seq)  # noqa: PERF401 - others look at it meanwhile

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(watch())
        while not seen:
            await asyncio.sleep(0.01)
        assert farm._farm._session is not None
        assert farm._farm._session.connector is not None
        for transport in [
            c.transport for c in farm._farm._session.connector._acquired if c.transport
        ]:
            transport.abort()
        attempt = await stack.start(job_id)
        await stack.finish(attempt)
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) >= 3


async def test_a_farm_that_stays_away_ends_the_watching(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        job_id = await stack.submit()
        farm = FarmClient(stack.url, stack.admin, reconnect_s=0.3)
        watching = farm.events(job_id)
        assert (await anext(watching)).seq == 1
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(FarmUnreachableError):
            await anext(watching)
    await farm.close()


async def test_a_link_to_watch_every_tab_is_made(farm: FarmClient) -> None:
    made = await farm.live_link(lasts_s=60, name="anna")
    assert made.path.startswith("/v1/live?link=lv1.")
    assert (made.context, made.mode) == (None, "view")
    assert made.name.startswith("anna-")
    with pytest.raises(FarmApiError, match="404"):
        await farm.live_link("T1@1@nobody", mode="control")
