"""What a run borrows is in its window before the first step, and given back after the last."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from agent.chromium.discovery import Found
from agent.ports import BorrowRefused, Outcome, StaleAssignment
from farm.protocol.failures import Reason
from tests.agent.chromium.conftest import Site
from tests.agent.chromium.journal import goto, plan, script
from tests.agent.chromium.rig import Rig, reason
from tests.agent.lending import Purse
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser

LOG_IN = """async () => {
  document.cookie = 'session=ann; max-age=3600';
  localStorage.setItem('cart', 'three \\ud83d things');
  await new Promise((done, failed) => {
    const request = indexedDB.open('shop', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('orders').put('first', 1);
    request.onsuccess = () => { request.result.close(); done(); };
    request.onerror = failed;
  });
}"""
WHO = """async () => {
  const order = await new Promise(done => {
    const request = indexedDB.open('shop', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('orders');
    request.onsuccess = () => {
      const read = request.result.transaction('orders').objectStore('orders').get(1);
      read.onsuccess = () => { request.result.close(); done(read.result || null); };
    };
  });
  return [document.cookie, localStorage.getItem('cart'), order];
}"""


@pytest.fixture
async def rig(headless_browser: Found) -> AsyncIterator[Rig]:
    async with Rig() as one:
        yield one


class Visits:
    """Runs on one site, with a lender."""

    def __init__(self, rig: Rig, site: Site) -> None:
        self.rig, self.site = rig, site

    async def run(self, purse: Purse, *steps: dict[str, Any], save: str = "never") -> Outcome:
        await self.rig.window()
        keys = {"egress": {"allow": [self.site.allow]}, "borrows": {"identity": "i", "save": save}}
        made = plan(goto(self.site.url), *steps, **keys)
        async with asyncio.timeout(PATIENCE_S):
            return await self.rig.browser.run("c", made, self.rig.journal, purse)


@pytest.fixture
def visits(rig: Rig, site: Site) -> Visits:
    return Visits(rig, site)


async def test_what_a_browser_leaves_another_one_begins_with(visits: Visits, site: Site) -> None:
    first = Purse()
    outcome = await visits.run(first, script(LOG_IN), save="on_success")
    assert outcome == Outcome(outcome="succeeded")
    (state,) = first.saved
    assert [cookie["value"] for cookie in state["cookies"]] == ["ann"]
    async with Rig() as another:
        second = Purse(state=state)
        again = Visits(another, site)
        read = {
            "type": "assert",
            "var": "who",
            "equals": ["session=ann", "three ? things", "first"],
        }
        outcome = await again.run(second, script(WHO, var="who", effect="none"), read)
        assert outcome == Outcome(outcome="succeeded"), outcome
        assert second.saved == []
        assert another.journal.notices("popup_opened") == []


async def test_who_fails_is_saved_only_where_that_is_wanted(visits: Visits) -> None:
    fails = {"type": "assert", "text": "absent", "timeout": 1_000}
    for save, times in (("on_success", 0), ("never", 0), ("always", 1)):
        purse = Purse()
        outcome = await visits.run(purse, script(LOG_IN), fails, save=save)
        assert reason(outcome) is Reason.ASSERTION_FAILED
        assert outcome.page_gone
        assert len(purse.saved) == times


@pytest.mark.parametrize(
    ("refusal", "wanted"),
    [
        (BorrowRefused(Reason.IDENTITY_UNAVAILABLE, "no key"), Reason.IDENTITY_UNAVAILABLE),
        (StaleAssignment(), Reason.STALE_ASSIGNMENT),
    ],
)
async def test_a_run_without_what_it_needs_does_nothing(
    visits: Visits, site: Site, refusal: Exception, wanted: Reason
) -> None:
    purse = Purse()
    purse.refuses = refusal
    outcome = await visits.run(purse)
    assert reason(outcome) is wanted
    assert outcome.page_gone
    assert site.seen == []


async def test_a_state_the_browser_does_not_take_is_a_failure_that_quotes_nothing(
    visits: Visits, site: Site
) -> None:
    cookie = {"name": "a", "value": "hush", "domain": "a.example", "path": "/", "expires": "hush"}
    outcome = await visits.run(Purse(state={"cookies": [cookie]}))
    assert reason(outcome) is Reason.IDENTITY_UNAVAILABLE
    assert "hush" not in str(outcome)
    assert site.seen == []


async def test_a_success_that_can_not_be_saved_is_none(visits: Visits, rig: Rig) -> None:
    class Full(Purse):
        async def give_back(self, state: bytes) -> None:
            raise BorrowRefused(Reason.IDENTITY_TOO_LARGE, "too large")

    outcome = await visits.run(Full(), save="on_success")
    assert (outcome.outcome, reason(outcome)) == ("failed", Reason.IDENTITY_TOO_LARGE)
    assert outcome.page_gone


async def test_a_page_that_hangs_is_saved_all_the_same(visits: Visits, site: Site) -> None:
    site.pages["/"] = "<script>setTimeout(() => { for (;;); }, 200)</script>"
    purse = Purse()
    outcome = await visits.run(purse, {"type": "wait", "ms": 400}, save="on_success")
    assert outcome == Outcome(outcome="succeeded")
    assert len(purse.saved) == 1


async def test_what_the_server_set_is_saved_too(visits: Visits, site: Site) -> None:
    async def page(request: web.Request) -> web.Response:
        response = web.Response(text="hello", content_type="text/html")
        response.set_cookie("secret", "only-for-http", httponly=True)
        return response

    site.pages["/"] = page
    purse = Purse()
    assert (await visits.run(purse, save="on_success")).outcome == "succeeded"
    assert "only-for-http" in json.dumps(purse.saved)
