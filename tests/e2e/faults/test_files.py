"""A file from one page to another, through the farm: handed out, kept, and given."""

import hashlib
from collections.abc import AsyncIterator

import pytest

from farm.protocol.failures import Reason
from farm.sdk import FarmClient
from tests.agent.chromium.conftest import Site, serving
from tests.agent.chromium.test_files import FORM, handing
from tests.e2e.faults.conftest import MAX_ARTIFACT_BYTES
from tests.e2e.faults.watching import once, ran

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
async def shop() -> AsyncIterator[Site]:
    async with serving() as site:
        site.pages["/"] = "<a id=a href=/report>x</a><a id=large href=/large>x</a>"
        site.pages["/report"] = handing(200_000)
        site.pages["/large"] = handing(MAX_ARTIFACT_BYTES + 1)
        site.pages["/form"] = FORM
        yield site


async def test_what_one_page_hands_out_another_is_given(client: FarmClient, shop: Site) -> None:
    first = await ran(client, once("out", {"goto": shop.url}, {"download": "#a"}))
    assert first.state == "succeeded", first.failure
    (kept,) = await client.artifacts(first.id)
    assert (kept.name, kept.size) == ("report.csv", 200_000)
    assert kept.sha256 == hashlib.sha256(b"x" * 200_000).hexdigest()
    stored = await client.put_file("b.txt", b"abc")
    files = [f"{first.id}/report.csv", "${params.more}"]
    second = once(
        "in",
        {"goto": f"{shop.url}/form"},
        {"upload": {"selector": "#f", "files": files}},
        {"assert": {"text": "report.csv:200000,b.txt:3=200003"}},
        params={"more": stored.reference},
    )
    done = await ran(client, second)
    assert done.state == "succeeded", done.failure


async def test_what_the_farm_does_not_take_or_have_fails_by_name(
    client: FarmClient, shop: Site
) -> None:
    done = await ran(client, once("large", {"goto": shop.url}, {"download": "#large"}))
    assert done.failure is not None
    assert done.failure.reason == Reason.ARTIFACT_TOO_LARGE
    wanted = {"selector": "#f", "files": ["job_none/a"]}
    done = await ran(client, once("none", {"goto": f"{shop.url}/form"}, {"upload": wanted}))
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (Reason.VALUE_INVALID, 1)
