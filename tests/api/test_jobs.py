import asyncio
import gzip
import io
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from farm.api import jobs
from farm.core.job_states import AttemptState, JobState
from farm.core.model import Namespace
from farm.errors import NotFoundError
from farm.jobs.ports import Progress, Waiting
from farm.protocol.resources import SUBMISSION
from tests.api.stack import DEFAULT, JOB, Stack
from tests.patience import PATIENCE_S

YAML = """\
name: of $who
params: {who: nobody}
steps:
  - goto: https://example.com/
"""


async def test_a_yaml_file_becomes_a_job_at_the_place_it_says(stack: Stack) -> None:
    async with stack.http.post(
        f"{stack.url}/v1/jobs",
        data=YAML.encode(),
        headers=stack.as_admin(**{"Content-Type": "application/yaml"}),
    ) as response:
        assert response.status == 201
        body = await response.json()
        location = response.headers["Location"]
    assert body["state"] == "queued"
    assert body["duplicate"] is False
    assert body["at_rest"] is False
    assert stack.dispatcher.woken == 1
    async with stack.http.get(stack.url + location, headers=stack.as_admin()) as response:
        assert (await response.json())["id"] == body["id"]


async def test_the_kind_of_file_is_seen_where_the_content_type_does_not_say(stack: Stack) -> None:
    headers = stack.as_admin(**{"Content-Type": "application/octet-stream"})
    for data in (YAML.encode(), json.dumps(dict(JOB)).encode()):
        async with stack.http.post(f"{stack.url}/v1/jobs", data=data, headers=headers) as response:
            assert response.status == 201, await response.text()


async def test_params_in_the_query_take_the_place_of_the_files(stack: Stack) -> None:
    job = {
        "name": "p",
        "params": {"where": "https://example.com/"},
        "steps": [{"goto": "${params.where}"}],
    }
    async with stack.http.post(
        f"{stack.url}/v1/jobs?param.where=https://example.org/x", json=job, headers=stack.as_admin()
    ) as response:
        assert response.status == 201, await response.text()
        job_id = (await response.json())["id"]
    kept = await stack.ledger.job(DEFAULT, job_id)
    assert kept.spec["params"] == {"where": "https://example.org/x"}


async def test_a_query_that_is_no_parameter_is_refused(stack: Stack) -> None:
    for query in ("?where=x", "?param.=x", "?param.a=1&param.a=2"):
        async with stack.http.post(
            f"{stack.url}/v1/jobs{query}", json=dict(JOB), headers=stack.as_admin()
        ) as response:
            assert response.status == 422


async def test_one_key_and_body_is_one_job_and_another_body_a_conflict(stack: Stack) -> None:
    headers = stack.as_admin(**{"Idempotency-Key": "k1"})
    url = f"{stack.url}/v1/jobs"
    async with stack.http.post(url, json=dict(JOB), headers=headers) as response:
        assert response.status == 201
        first = await response.json()
    async with stack.http.post(
        url, json={**JOB, "idempotency_key": "k1"}, headers=stack.as_admin()
    ) as response:
        assert response.status == 200
        again = await response.json()
    assert (again["id"], again["duplicate"]) == (first["id"], True)
    assert stack.dispatcher.woken == 1
    async with stack.http.post(url, json={**JOB, "name": "other"}, headers=headers) as response:
        assert response.status == 409
        assert (await response.json())["type"] == "/problems/conflict"


async def test_two_keys_that_differ_are_refused(stack: Stack) -> None:
    async with stack.http.post(
        f"{stack.url}/v1/jobs",
        json={**JOB, "idempotency_key": "a"},
        headers=stack.as_admin(**{"Idempotency-Key": "b"}),
    ) as response:
        assert response.status == 422
        assert (await response.json())["errors"][0]["pointer"] == "/idempotency_key"


async def test_a_bad_file_is_a_problem_that_points_at_the_place_and_stores_nothing(
    stack: Stack,
) -> None:
    async with stack.http.post(
        f"{stack.url}/v1/jobs",
        data=b"name: x\nsteps:\n  - goto: https://example.com/\n  - clikc: a\n",
        headers=stack.as_admin(**{"Content-Type": "application/yaml"}),
    ) as response:
        assert response.status == 422
        assert response.content_type == "application/problem+json"
        body = await response.json()
    assert body["type"] == "/problems/invalid-input"
    assert body["errors"][0]["pointer"].startswith("/steps/1")
    assert body["errors"][0]["suggestion"] == "click"
    assert body["errors"][0]["line"] == 4
    assert await stack.ledger.jobs(DEFAULT, state=None, before=None, limit=10) == []


async def test_a_file_over_one_megabyte_is_too_large(stack: Stack) -> None:
    for size in (1_000_001, 3 * 1024 * 1024):
        async with stack.http.post(
            f"{stack.url}/v1/jobs", data=io.BytesIO(b"#" * size), headers=stack.as_admin()
        ) as response:
            assert response.status == 413
            assert (await response.json())["type"] == "/problems/too-large"


async def test_lists_are_paged_newest_first_by_a_cursor(stack: Stack) -> None:
    ids = [await stack.submit({**JOB, "name": f"job {number}"}) for number in range(5)]
    seen: list[str] = []
    cursor, page = "", {"next_cursor": None}
    for _ in range(3):
        async with stack.http.get(
            f"{stack.url}/v1/jobs?limit=2{cursor}", headers=stack.as_admin()
        ) as response:
            page = await response.json()
        seen += [job["id"] for job in page["items"]]
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ids[::-1]
    assert page["next_cursor"] is None


async def test_a_list_may_be_of_one_state_and_an_unknown_one_is_refused(stack: Stack) -> None:
    running, _ = await stack.submit(), await stack.submit()
    await stack.start(running)
    async with stack.http.get(
        f"{stack.url}/v1/jobs?state=running", headers=stack.as_admin()
    ) as response:
        assert [job["id"] for job in (await response.json())["items"]] == [running]
    for query in ("state=sleeping", "limit=0", "limit=501", "limit=x", "limit=nan", "limit=1.5"):
        async with stack.http.get(
            f"{stack.url}/v1/jobs?{query}", headers=stack.as_admin()
        ) as response:
            assert response.status == 422, query


async def test_a_queued_job_says_why_it_waits_and_a_running_one_what_it_does(stack: Stack) -> None:
    job_id = await stack.submit()
    kind = (await stack.ledger.job(Namespace("default"), job_id)).match_key
    stack.dispatcher.waits[kind] = Waiting(reason="at_capacity", remedy="add an agent")
    url = f"{stack.url}/v1/jobs/{job_id}"
    async with stack.http.get(url, headers=stack.as_admin()) as response:
        body = await response.json()
    assert body["waiting"] == {"reason": "at_capacity", "remedy": "add an agent", "detail": ""}
    attempt = await stack.start(job_id)
    stack.dispatcher.does[job_id] = Progress(step_index=0, step="goto", verb="goto", steps=1)
    await stack.note(attempt, 1, "started", context_id="context-1", window_id="window-1")
    await stack.note(attempt, 2, "step_started", index=0, verb="goto", label="goto")
    await stack.note(attempt, 3, "step_ended", index=0, ms=12.5)
    async with stack.http.get(url, headers=stack.as_admin()) as response:
        body = await response.json()
    assert body["waiting"] is None
    assert body["progress"]["verb"] == "goto"
    [attempt_view] = body["history"]
    assert attempt_view["agent"] == "agent-1"
    assert attempt_view["window"] == "window-1"
    assert [step["ms"] for step in attempt_view["steps"]] == [12.5]


async def test_what_a_job_does_is_told_where_another_coordinator_has_it_in_hand(
    stack: Stack,
) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.note(attempt, 1, "step_started", index=0, verb="goto", label="first")
    for path in (f"/v1/jobs/{job_id}", "/v1/jobs"):
        async with stack.http.get(stack.url + path, headers=stack.as_admin()) as response:
            body = await response.json()
        shown = body["items"][0] if path == "/v1/jobs" else body
        assert shown["progress"] == {"step_index": 0, "step": "first", "verb": "goto", "steps": 1}


async def test_a_paused_job_waits_for_nobody_but_who_has_paused_it(stack: Stack) -> None:
    job_id = await stack.submit()
    kind = (await stack.ledger.job(Namespace("default"), job_id)).match_key
    stack.dispatcher.waits[kind] = Waiting(reason="at_capacity")
    url = f"{stack.url}/v1/jobs/{job_id}"
    async with stack.http.post(f"{url}/pause", headers=stack.as_admin()) as response:
        assert response.status == 200
    async with stack.http.get(url, headers=stack.as_admin()) as response:
        assert (await response.json())["waiting"] is None


async def test_a_job_tells_its_notices_one_a_kind_and_the_newest_first(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.note(attempt, 1, "notice", code="popup_closed", detail="one", index=0)
    await stack.note(attempt, 2, "notice", code="text_cut", detail="two", index=1)
    await stack.note(attempt, 3, "notice", code="popup_closed", detail="three")
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}", headers=stack.as_admin()
    ) as response:
        notices = (await response.json())["notices"]
    told = [(n["code"], n["count"], n["detail"], n["attempt"], n["step_index"]) for n in notices]
    assert told == [("popup_closed", 2, "three", 1, None), ("text_cut", 1, "two", 1, 1)]


async def test_kinds_of_notices_are_bounded(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    for seq in range(1, 61):
        await stack.note(attempt, seq, "notice", code=f"kind_{seq}", detail="")
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}", headers=stack.as_admin()
    ) as response:
        notices = (await response.json())["notices"]
    assert [notice["code"] for notice in notices] == [f"kind_{seq}" for seq in range(60, 10, -1)]


async def test_waiting_ends_as_soon_as_the_job_is_at_rest(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SAFETY_POLL_S", 3600.0)
    job_id = await stack.submit()
    attempt = await stack.start(job_id)

    async def ask() -> str:
        async with stack.http.get(
            f"{stack.url}/v1/jobs/{job_id}?wait=60", headers=stack.as_admin()
        ) as response:
            return str((await response.json())["state"])

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        asked = group.create_task(ask())
        while stack.feed.watched() == 0:
            await asyncio.sleep(0.01)
        await stack.finish(attempt)
    assert asked.result() == "succeeded"
    assert stack.feed.watched() == 0


async def test_a_submission_can_wait_for_its_job(stack: Stack) -> None:
    async def ask() -> dict[str, Any]:
        async with stack.http.post(
            f"{stack.url}/v1/jobs?wait=60", headers=stack.as_admin(), json=JOB
        ) as response:
            assert response.status == 201
            return dict(await response.json())

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        asked = group.create_task(ask())
        while stack.feed.watched() == 0:
            await asyncio.sleep(0.01)
        (job,) = await stack.ledger.jobs(DEFAULT, state=None, before=None, limit=10)
        await stack.finish(await stack.start(job.job_id))
    assert (asked.result()["id"], asked.result()["state"]) == (job.job_id, "succeeded")


async def test_a_submission_of_a_job_that_has_ended_waits_for_nothing(stack: Stack) -> None:
    job = {**JOB, "idempotency_key": "once"}
    job_id = await stack.submit(job)
    await stack.finish(await stack.start(job_id))
    async with (
        asyncio.timeout(PATIENCE_S),
        stack.http.post(
            f"{stack.url}/v1/jobs?wait=60", headers=stack.as_admin(), json=job
        ) as response,
    ):
        body = await response.json()
    assert (body["id"], body["state"], body["duplicate"]) == (job_id, "succeeded", True)


async def test_waiting_ends_with_its_time_and_tells_the_state_it_has(stack: Stack) -> None:
    job_id = await stack.submit()
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}?wait=0.2", headers=stack.as_admin()
    ) as response:
        assert (await response.json())["state"] == "queued"
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}?wait=61", headers=stack.as_admin()
    ) as response:
        assert response.status == 422


async def test_a_queued_job_is_cancelled_at_once_and_a_running_one_asked_to_stop(
    stack: Stack,
) -> None:
    queued, running = await stack.submit(), await stack.submit()
    await stack.start(running)
    for job_id, state in ((queued, "cancelled"), (running, "cancelling")):
        async with stack.http.post(
            f"{stack.url}/v1/jobs/{job_id}/cancel", headers=stack.as_admin()
        ) as response:
            assert (await response.json())["state"] == state
    assert stack.dispatcher.cancelled == [running]


async def test_only_an_uncertain_job_can_be_decided(stack: Stack) -> None:
    job_id = await stack.submit()
    url = f"{stack.url}/v1/jobs/{job_id}/resolve"
    async with stack.http.post(url, json={"as": "failed"}, headers=stack.as_admin()) as response:
        assert response.status == 409
    attempt = await stack.start(job_id)
    await stack.finish(attempt, attempt_state=AttemptState.LOST, job_state=JobState.UNCERTAIN)
    async with stack.http.post(url, json={"as": "done"}, headers=stack.as_admin()) as response:
        assert response.status == 422
        assert (await response.json())["errors"][0]["pointer"] == "/as"
    woken = stack.dispatcher.woken
    said = {"as": "retry", "by": "anna"}
    async with stack.http.post(url, json=said, headers=stack.as_admin()) as response:
        assert (await response.json())["state"] == "queued"
    assert (await stack.ledger.events(job_id, after=0))[-1].data["by"] == "anna"
    assert stack.dispatcher.woken == woken + 1


async def test_a_body_that_is_not_encoded_as_it_says_is_a_problem(stack: Stack) -> None:
    async with stack.http.post(
        f"{stack.url}/v1/jobs",
        data=b"{}",
        headers=stack.as_admin(**{"Content-Encoding": "gzip"}),
        compress=None,
    ) as response:
        assert response.status == 422


async def test_a_small_body_that_unpacks_to_a_huge_one_is_too_large(stack: Stack) -> None:
    async with stack.http.post(
        f"{stack.url}/v1/jobs",
        data=gzip.compress(bytes(50_000_000)),
        headers=stack.as_admin(**{"Content-Encoding": "gzip"}),
    ) as response:
        assert response.status == 413


async def test_a_body_that_is_no_json_is_a_problem(stack: Stack) -> None:
    job_id = await stack.submit()
    for body in (b"", b"{", b"[]", b"\xff"):
        async with stack.http.post(
            f"{stack.url}/v1/jobs/{job_id}/resolve", data=body, headers=stack.as_admin()
        ) as response:
            assert response.status == 422
            assert response.content_type == "application/problem+json"


async def test_a_hundred_jobs_at_once_are_all_kept_in_the_order_they_were_accepted(
    stack: Stack,
) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(stack.submit()) for _ in range(100)]
    ids = {task.result() for task in tasks}
    found = await stack.ledger.jobs(DEFAULT, state=None, before=None, limit=200)
    assert {job.job_id for job in found} == ids
    assert [job.job_id for job in found] == sorted(ids, reverse=True)


@pytest.mark.parametrize(
    ("path", "key", "near"),
    [
        ("/v1/jobs?stat=failed", "stat", "state"),
        ("/v1/jobs?state=faild", "state", "failed"),
        ("/v1/jobs?x=1", "x", None),
        ("/v1/jobs?cursor=job_01JDW3H8Q2K0000000000000AB", "cursor", None),
        ("/v1/jobs/{id}?wiat=3", "wiat", "wait"),
        ("/v1/jobs/{id}/items?datset=a", "datset", "dataset"),
        ("/v1/jobs/{id}/items?format=cvs", "format", "csv"),
        ("/v1/jobs/{id}/events?folow=false", "folow", "follow"),
        ("/v1/jobs/{id}/events?follow=flase", "follow", "false"),
    ],
)
async def test_what_a_query_may_not_have_is_named_with_the_nearest_there_is(
    stack: Stack, path: str, key: str, near: str | None
) -> None:
    url = stack.url + path.replace("{id}", await stack.submit())
    async with stack.http.get(url, headers=stack.as_admin()) as response:
        assert response.status == 422
        body = await response.json()
    assert (body["parameter"], body.get("suggestion")) == (key, near)
    assert near is None or near in body["detail"]


async def test_a_file_may_come_with_its_params_in_one_body(stack: Stack) -> None:
    where = "https://example.org/" + "x" * 100_000
    sent = {
        "job": "{name: p, params: {where: '', n: 1}, steps: [{goto: '${params.where}'}]}",
        "params": {"where": where},
    }
    headers = stack.as_admin(**{"Content-Type": SUBMISSION})
    url = f"{stack.url}/v1/jobs"
    async with stack.http.post(
        f"{url}?param.n=2", data=json.dumps(sent), headers=headers
    ) as response:
        assert response.status == 201, await response.text()
        job_id = (await response.json())["id"]
    kept = await stack.ledger.job(DEFAULT, job_id)
    assert kept.spec["params"] == {"where": where, "n": 2}
    for query, body in (("", {"jbo": ""}), ("", {}), ("?param.where=x", sent)):
        async with stack.http.post(url + query, json=body, headers=headers) as response:
            assert response.status == 422


async def delete(stack: Stack, job_id: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    async with stack.http.delete(f"{stack.url}/v1/jobs/{job_id}", headers=headers) as response:
        return response.status


async def test_a_job_that_has_ended_is_deleted_and_who_wanted_it_is_in_the_log(
    stack: Stack,
) -> None:
    job_id = await stack.submit()
    assert await delete(stack, job_id, stack.admin) == 409
    attempt = await stack.start(job_id)
    async with stack.http.put(
        f"{stack.url}/v1/attempts/{attempt.attempt_id}/artifacts/a.txt",
        data=b"abc",
        headers=stack.as_agent(**{"X-Tabfarm-Token": "1.1"}),
    ) as response:
        assert response.status == 200
    (file,) = await stack.ledger.artifacts(job_id)
    await stack.finish(attempt)
    _, other = await stack.tokens.add(scope="admin", namespace=Namespace("other"), name="x")
    assert await delete(stack, job_id, other) == 404
    assert await delete(stack, job_id, stack.agent) == 403
    with capture_logs() as logs:
        assert await delete(stack, job_id, stack.admin) == 204
    assert [line["by"] for line in logs if line["event"] == "job.deleted"] == ["admin"]
    assert await delete(stack, job_id, stack.admin) == 404
    with pytest.raises(NotFoundError):
        async for _ in stack.keeping.artifacts.read(file.key):
            pass
