"""Where pages of a job may go, seen from the server that nobody may see."""

from collections.abc import AsyncIterator

import pytest

from farm.protocol.failures import Reason
from farm.sdk import FarmClient
from tests.e2e.faults.house import House
from tests.e2e.faults.place import Place, opened
from tests.e2e.faults.watching import job, notices, once, ran

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
async def secret() -> AsyncIterator[Place]:
    """A server on a loopback address that the farm's policy does not name."""
    async with opened("127.0.0.2") as secret:
        yield secret
        assert not secret.hits


async def refused(client: FarmClient, url: str) -> None:
    done = await ran(client, job("leaves", {"goto": url}))
    assert done.state == "failed"
    assert done.failure is not None
    assert (done.failure.reason, done.failure.step_index) == (Reason.EGRESS_DENIED, 0), done.failure
    assert len(done.history) == 1


async def test_a_private_address_is_out_of_reach(client: FarmClient, secret: Place) -> None:
    await refused(client, f"{secret.url}/")


async def test_a_redirect_leads_no_further_than_a_goto(
    client: FarmClient, place: Place, secret: Place
) -> None:
    await refused(client, f"{place.url}/redirect?to={secret.url}/")
    assert place.hits["GET /redirect"] == 1


async def test_loopback_is_out_of_reach_under_every_name_where_nobody_allows_it(
    house: House, place: Place
) -> None:
    await house.up()
    port = place.url.rpartition(":")[2]
    async with house.client() as client:
        for name in ("127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0", "[::ffff:7f00:1]"):
            await refused(client, f"http://{name}:{port}/status/200")
        # Whether this is the name of anything is up to the machine.
        done = await ran(client, once("named", {"goto": f"http://any.localhost:{port}/"}))
        assert done.state == "failed"
    assert not place.hits


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/latest/meta-data/",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://[::ffff:169.254.169.254]/latest/meta-data/",
    ],
)
async def test_the_metadata_of_clouds_is_out_of_reach_whatever_the_policy_says(
    client: FarmClient, url: str
) -> None:
    await refused(client, url)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "chrome://version", "view-source:http://127.0.0.1/"]
)
async def test_other_schemes_are_no_way_out(client: FarmClient, url: str) -> None:
    await refused(client, url)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("fetch", None),
        ("iframe", "loaded"),
        ("image", None),
        ("popup", "asked"),
        ("websocket", "closed"),
    ],
)
async def test_what_a_page_asks_for_is_denied_with_a_notice_and_the_job_goes_on(
    client: FarmClient, place: Place, secret: Place, how: str, said: str | None
) -> None:
    steps = (
        {"goto": f"{place.url}/calls?how={how}&to={secret.url}/status/200"},
        {"wait_for": "#said"},
        {"extract": {"fields": {"said": {"selector": "#said", "required": True}}}},
        {"wait": "300ms"},
    )
    done = await ran(client, once("calls", *steps))
    assert done.state == "succeeded", done.failure
    (item,) = [item async for item in client.items(done.id)]
    assert said in (None, item["said"])
    assert "egress_denied" in await notices(client, done.id)
