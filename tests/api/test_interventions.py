"""Pause, resume, take over, hand back and say something, over HTTP."""

from typing import Any

import pytest

from farm.core.job_states import AttemptState, JobState
from farm.core.model import Instant, Namespace
from tests.api.stack import Stack
from tests.stores.ledger_rows import effect, said

EVERY = ("pause", "resume", "take-over", "hand-back", "message", "cancel", "retry")


async def post(
    stack: Stack, job_id: str, what: str, body: Any = None, *, token: str | None = None
) -> tuple[int, dict[str, Any]]:
    headers = stack.as_admin() if token is None else {"Authorization": f"Bearer {token}"}
    url = f"{stack.url}/v1/jobs/{job_id}/{what}"
    async with stack.http.post(url, json=body, headers=headers) as response:
        return response.status, await response.json()


async def test_a_queued_job_is_paused_by_the_tokens_name_and_resumed_by_another(
    stack: Stack,
) -> None:
    job_id = await stack.submit()
    status, done = await post(stack, job_id, "pause")
    assert (status, done["kind"], done["by"], done["outcome"]) == (200, "pause", "admin", "applied")
    assert done["job"]["control"] == {"state": "paused", "by": "admin", "asked": ""}
    async with stack.http.get(f"{stack.url}/v1/jobs/{job_id}", headers=stack.as_admin()) as shown:
        assert (await shown.json())["control"]["state"] == "paused"
    woken = stack.dispatcher.woken
    status, done = await post(stack, job_id, "resume", {"by": "anna"})
    assert (status, done["by"], done["job"]["control"]) == (200, "anna", None)
    assert stack.dispatcher.woken == woken + 1


async def test_what_is_not_applied_is_a_problem_that_says_why(stack: Stack) -> None:
    job_id = await stack.submit()
    await stack.start(job_id)
    for what in ("pause", "resume", "take-over", "hand-back"):
        status, problem = await post(stack, job_id, what)
        assert (status, problem["outcome"]) == (409, "stale_target")
        assert problem["detail"] == "stale target: no attempt of the job is running"
        assert problem["type"].endswith("conflict")
    events = await stack.ledger.events(job_id, after=0)
    assert [e.data["outcome"] for e in events if e.type == "intervention"] == ["stale_target"] * 4


async def test_a_queued_job_has_no_page_to_take_over(stack: Stack) -> None:
    job_id = await stack.submit()
    status, problem = await post(stack, job_id, "take-over")
    assert (status, problem["state"]) == (409, "queued")


@pytest.mark.parametrize("what", EVERY)
async def test_a_job_of_another_namespace_is_not_found_and_an_agents_token_opens_nothing(
    stack: Stack, what: str
) -> None:
    job_id = await stack.submit()
    _, other = await stack.tokens.add(scope="admin", namespace=Namespace("other"), name="x")
    body = {"text": "hello"} if what == "message" else None
    assert (await post(stack, job_id, what, body, token=other))[0] == 404
    assert (await post(stack, job_id, what, body, token=stack.agent))[0] == 403
    events = await stack.ledger.events(job_id, after=0)
    assert [e.type for e in events] == ["job_accepted"]


@pytest.mark.parametrize(
    ("what", "body", "pointer"),
    [
        ("pause", {"by": ""}, "/by"),
        ("pause", {"who": "anna"}, "/who"),
        ("message", {}, "/text"),
        ("message", {"text": "x" * 501}, "/text"),
    ],
)
async def test_a_body_that_can_not_be_taken_points_at_the_place(
    stack: Stack, what: str, body: Any, pointer: str
) -> None:
    status, problem = await post(stack, await stack.submit(), what, body)
    assert (status, problem["errors"][0]["pointer"]) == (422, pointer)


async def test_who_cancels_is_in_the_history(stack: Stack) -> None:
    job_id = await stack.submit()
    status, job = await post(stack, job_id, "cancel", {"by": "anna"})
    assert (status, job["state"]) == (200, "cancelled")
    assert (await stack.ledger.events(job_id, after=1))[0].data["by"] == "anna"


async def test_a_job_that_has_failed_is_run_again_and_who_wanted_it_is_in_the_history(
    stack: Stack,
) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.finish(attempt, attempt_state=AttemptState.FAILED, job_state=JobState.FAILED)
    woken = stack.dispatcher.woken
    for _ in range(2):
        status, job = await post(stack, job_id, "retry", {"by": "anna"})
        assert (status, job["state"], job["attempts"]) == (200, "queued", 0)
    assert stack.dispatcher.woken > woken
    events = await stack.ledger.events(job_id, after=0)
    assert [e.data["by"] for e in events if e.type == "job_retried"] == ["anna"]


@pytest.mark.parametrize(
    ("done_at", "reason"), [(1.0, "effect_would_repeat"), (None, "effect_uncertain")]
)
async def test_what_might_repeat_an_effect_is_refused_with_the_reason(
    stack: Stack, done_at: float | None, reason: str
) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    began = effect(attempt_id=attempt.attempt_id, done_at=done_at)
    await stack.ledger.record(
        attempt.attempt_id, attempt.token, [said(1, effect_begun=began)], now=Instant(1.0)
    )
    await stack.finish(attempt, attempt_state=AttemptState.FAILED, job_state=JobState.FAILED)
    status, problem = await post(stack, job_id, "retry")
    assert (status, problem["reason"], problem["state"]) == (409, reason, "failed")
    assert problem["detail"].startswith(f"job {job_id} is not run again: an effect")
