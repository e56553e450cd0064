"""What fails says why, where, and what the page looked like then."""

import pytest

from farm.protocol.failures import Reason
from farm.sdk import FarmClient
from tests.e2e.faults.house import free_port
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import once, ran

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_CLOSED = free_port()
_HOME: dict[str, object] = {"goto": "PLACE/"}
_PRODUCTS: dict[str, object] = {"goto": "PLACE/products"}


@pytest.mark.parametrize(
    ("steps", "reason", "index"),
    [
        (
            [_HOME, {"extract": {"fields": {"gone": {"selector": "#gone", "required": True}}}}],
            Reason.REQUIRED_MISSING,
            1,
        ),
        ([_HOME, {"click": "#nowhere"}], Reason.SELECTOR_NOT_FOUND, 1),
        ([_PRODUCTS, {"click": "a"}], Reason.SELECTOR_AMBIGUOUS, 1),
        ([_HOME, {"click": "a:no-such-thing"}], Reason.SELECTOR_INVALID, 1),
        ([_HOME, {"goto": f"http://127.0.0.1:{_CLOSED}/"}], Reason.NAVIGATION_FAILED, 1),
        ([_HOME, {"goto": f"https://127.0.0.1:{_CLOSED}/"}], Reason.NAVIGATION_FAILED, 1),
        ([{"goto": "http://no-such-host.invalid/"}], Reason.NAVIGATION_FAILED, 0),
        (
            [{"goto": {"url": "PLACE/status/404", "expect_status": 200}}],
            Reason.HTTP_STATUS,
            0,
        ),
        ([_HOME, {"assert": {"text": "no such words"}}], Reason.ASSERTION_FAILED, 1),
        (
            [_HOME, {"eval": {"script": "null.x", "effect": "none"}}],
            Reason.SCRIPT_ERROR,
            1,
        ),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else "",
)
async def test_a_failed_attempt_names_its_reason_and_step_and_keeps_picture_and_markup(
    client: FarmClient, place: Place, steps: list[object], reason: Reason, index: int
) -> None:
    there = [_at(place.url, step) for step in steps]
    done = await ran(client, once("fails", *there, timeout={"step": "1s", "navigation": "10s"}))
    assert done.state == "failed"
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (reason, index), done.failure
    assert done.failure.status == (404 if reason is Reason.HTTP_STATUS else None)
    assert done.failure.detail
    kept = {file.name: file for file in await client.artifacts(done.id)}
    assert set(kept) == {f"failure-{index}.png", f"failure-{index}.html"}
    picture = b"".join([c async for c in client.artifact(done.id, f"failure-{index}.png")])
    assert picture.startswith(b"\x89PNG")
    assert kept[f"failure-{index}.html"].size > 0


def _at(url: str, step: object) -> object:
    match step:
        case str():
            return step.replace("PLACE", url)
        case dict():
            return {key: _at(url, value) for key, value in step.items()}
        case _:
            return step


async def test_what_only_a_browser_can_parse_is_tried_once(
    client: FarmClient, place: Place
) -> None:
    body = once("wrong", {"goto": f"{place.url}/"}, {"click": "a:no-such-thing"})
    done = await ran(client, {**body, "retry": {"max_attempts": 5}})
    assert len(done.history) == 1


async def test_an_unreachable_host_is_tried_as_often_as_the_job_says(client: FarmClient) -> None:
    body = once("away", {"goto": f"http://127.0.0.1:{_CLOSED}/"})
    done = await ran(client, {**body, "retry": {"max_attempts": 3}})
    assert [attempt.state for attempt in done.history] == ["failed"] * 3
