"""What one job leaves for the next: everything in a kept window, nothing in a clean one."""

import asyncio
import json
from typing import Any

import pytest

from farm.sdk import FarmClient
from tests.e2e.faults.place import Place
from tests.e2e.faults.watching import once, ran
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOTHING = {
    "cookies": "",
    "local": 0,
    "session": 0,
    "databases": 0,
    "caches": 0,
    "workers": 0,
    "name": "",
}


async def traces(client: FarmClient, place: Place, **browser: object) -> dict[str, Any]:
    """Visit the page that says what it finds, and then leaves all it can."""
    said, _ = await visit(client, place, **browser)
    return said


async def visit(client: FarmClient, place: Place, **browser: object) -> tuple[dict[str, Any], str]:
    """Do so, and return which window it was in, too."""
    steps = (
        {"goto": f"{place.url}/traces"},
        {"wait_for": "#out"},
        {"extract": {"fields": {"out": {"selector": "#out", "required": True}}}},
    )
    done = await ran(client, once("traces", *steps, browser=browser))
    assert done.state == "succeeded", done.failure
    (item,) = [item async for item in client.items(done.id)]
    said: dict[str, Any] = json.loads(item["out"])
    assert "error" not in said
    return said, await window_of(client, done.id)


async def window_of(client: FarmClient, job_id: str) -> str:
    events = [event async for event in client.events(job_id, follow=False)]
    (started,) = [event for event in events if event.type == "started"]
    return str(started.data["window_id"])


async def test_a_clean_window_shows_nothing_of_the_job_before(
    client: FarmClient, place: Place
) -> None:
    first = await traces(client, place)
    second = await traces(client, place)
    assert NOTHING.items() <= first["before"].items()
    # The page did leave something each time, so that there was something to be seen.
    assert first["after"]["cookies"] == "left=behind"
    assert all(first["after"][key] != value for key, value in NOTHING.items())
    assert first["after"]["history"] > first["before"]["history"]
    assert second["before"] == first["before"]
    assert place.hits["GET /cached.js"] == 2


async def test_a_window_is_ready_before_a_job_asks_for_it_and_another_one_after(
    client: FarmClient, place: Place
) -> None:
    before = await prepared_besides(client, None)
    done = await ran(client, once("ready", {"goto": f"{place.url}/traces"}))
    used = await window_of(client, done.id)
    assert used in before
    assert used not in await prepared_besides(client, used)


async def prepared_besides(client: FarmClient, used: str | None) -> set[str]:
    """Wait until another window is prepared than the one that was used; return which are."""
    async with asyncio.timeout(PATIENCE_S):
        while not (there := await prepared(client)) - {used}:
            await asyncio.sleep(0.02)
    return there


async def prepared(client: FarmClient) -> set[str]:
    return {w.window_id for w in await client.windows() if w.prepared}


async def offered_again(client: FarmClient, used: str) -> None:
    """Wait until a window that was used can be lent; or is closed, where there are too many."""
    async with asyncio.timeout(PATIENCE_S):
        while any(
            tab.window_id == used and (tab.assignment is not None or not tab.clean)
            for tab in await client.workers()
        ):
            await asyncio.sleep(0.02)


async def test_a_window_that_is_reset_shows_nothing_of_the_job_before(
    client: FarmClient, place: Place
) -> None:
    before = place.hits["GET /cached.js"]
    first, window = await visit(client, place, context="reset")
    had = [window]
    # Another one of the kind may have been prepared meanwhile; then the next has one of the two.
    while len(set(had)) == len(had) < 6:
        await offered_again(client, had[-1])
        said, window = await visit(client, place, context="reset")
        assert said["before"] == first["before"]
        assert NOTHING.items() <= said["before"].items()
        had.append(window)
    assert len(set(had)) < len(had)
    assert place.hits["GET /cached.js"] == before + len(had)


async def test_a_kept_window_has_what_the_job_before_it_left(
    client: FarmClient, place: Place
) -> None:
    # A viewport of its own makes it a window of this test's own.
    kept = {"context": "reuse", "viewport": {"width": 801, "height": 601}}
    await traces(client, place, **kept)
    second = await traces(client, place, **kept)
    assert second["before"]["cookies"] == "left=behind"
    assert second["before"]["local"] == 1
    assert second["before"]["databases"] == 1
    # And it is kept from those that ask for a clean one.
    assert NOTHING.items() <= (await traces(client, place))["before"].items()


async def test_a_clean_window_has_the_permissions_of_a_new_browser(
    client: FarmClient, place: Place
) -> None:
    first = (await traces(client, place))["before"]
    assert first["geolocation"] in ("denied", "prompt")
    assert first["notifications"] in ("denied", "prompt")
