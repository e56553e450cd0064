"""People watch a tab and act in it at any of several coordinators, any of which may be killed."""

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image
from playwright.async_api import async_playwright, expect

from farm.protocol.channels import pack, unpack
from farm.sdk import FarmClient
from farm.stores.redis import connect
from tests.e2e.conftest import Site
from tests.e2e.faults.house import House
from tests.e2e.faults.watching import job, rested, submitted
from tests.e2e.fleet import Fleet, fleet_over_one_ledger
from tests.e2e.processes import eventually
from tests.e2e.steering import Steering, steering_to
from tests.e2e.test_live import PAGE, UNTIL_DONE
from tests.patience import PATIENCE_S
from tests.stores.conftest import Databases, postgres, redis_url

__all__ = ["postgres", "redis_url"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]

BLUE = """<!doctype html><body style="background:rgb(0,0,255)"><script>
let light = 255;
setInterval(() => {
  light = 460 - light;
  document.body.style.background = `rgb(0,0,${light})`;
}, 50);
</script>"""
"""Never the same for long, and blue."""


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
    postgres: Databases,
    redis_url: str,
    chromium_executable: str,
) -> Iterator[Fleet]:
    yield from fleet_over_one_ledger(tmp_path_factory.mktemp("fleet"), postgres)


@pytest.fixture
async def fleet(running: Fleet) -> Fleet:
    """All of them are there, whatever the test before has done."""
    await running.whole()
    return running


class Person:
    """Watches a tab by the wire alone."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.scene: dict[str, Any] = {}
        self.refusals: list[str] = []

    async def says(self, **message: Any) -> None:
        await self.socket.send_str(json.dumps(message))

    async def does(self, **act: Any) -> None:
        await self.says(op="input", act=act)

    async def clicks(self, x: float, y: float) -> None:
        for act in ("down", "up"):
            await self.does(kind="mouse", act=act, x=x, y=y, button="left")

    async def hears(self) -> tuple[dict[str, Any], bytes | None]:
        """Return the next message and what lies beside it, and take note of it."""
        frame = await self.socket.receive(timeout=20)
        if frame.type is aiohttp.WSMsgType.BINARY:
            head, jpeg = unpack(frame.data)
            header = json.loads(head)
            await self.says(op="shown", seq=header["seq"])
            return header, bytes(jpeg)
        assert frame.type is aiohttp.WSMsgType.TEXT, frame
        said = json.loads(frame.data)
        if said["op"] == "scene":
            self.scene = said
        if said["op"] == "refused":
            self.refusals.append(said["why"])
        return said, None

    async def picture(self) -> Image.Image:
        while True:
            _, jpeg = await self.hears()
            if jpeg is not None:
                return Image.open(io.BytesIO(jpeg)).convert("RGB")

    async def sees_blue(self) -> None:
        while True:
            picture = await self.picture()
            place = (int(picture.width * 0.9), int(picture.height * 0.9))
            red, _, blue = picture.getpixel(place)  # type: ignore[misc]
            if blue > 150 > red:
                return

    async def is_told(self, op: str, **members: Any) -> dict[str, Any]:
        while True:
            said, _ = await self.hears()
            if said["op"] == op and members.items() <= said.items():
                return said


async def path_of(client: FarmClient, job_id: str, mode: Any = "view") -> str:
    """A link to the tab that a job runs in, once it does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for worker in await client.workers():
                if worker.assignment is not None and worker.assignment.job_id == job_id:
                    return (await client.live_link(worker.live, mode=mode)).path
            await asyncio.sleep(0.05)


async def only_boxes_of(house: House) -> None:
    """Wait until nothing of other coordinators is left in Redis."""
    name = (house.data_dir / "coordinator.name").read_text().strip()
    redis = connect(house.settings["FARM_REDIS__URL"])
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                boxes = await redis.keys("*:mail:*") + await redis.keys("*:parcels:*")
                if all(name in box for box in boxes):
                    return
                await asyncio.sleep(0.1)
    finally:
        await redis.aclose()


@asynccontextmanager
async def person(house: House, path: str) -> AsyncIterator[Person]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(house.url + path, max_msg_size=0) as socket,
    ):
        someone = Person(socket)
        await someone.says(op="look", width=640, height=480, fps=30)
        yield someone


@asynccontextmanager
async def agent_behind(balancer: Steering, house: House) -> AsyncIterator[None]:
    """A real agent with a browser that reaches the farm through a balancer alone."""
    agent = await house.agent("a", FARM_URL=balancer.url)
    yield
    agent.terminate()
    await asyncio.to_thread(agent.wait, 20)


async def test_a_person_at_one_acts_in_a_tab_of_another_over_a_channel_at_a_third(
    fleet: Fleet, site: Site, tmp_path: Path
) -> None:
    one, two, three = fleet.houses
    (tmp_path / "page.html").write_text(PAGE)
    steps = (
        {"goto": f"{site(tmp_path)}/page.html"},
        *UNTIL_DONE,
        {"extract": {"fields": {"done": "#done"}}},
    )
    async with (
        steering_to(channels=three.url, rest=one.url) as balancer,
        agent_behind(balancer, one),
        two.client() as client,
        three.client() as another,
    ):
        job_id = await submitted(client, job("acted in", *steps))
        path = await path_of(another, job_id, "control")
        async with asyncio.timeout(60), person(two, path) as anna:
            async with person(one, path) as ben:
                await anna.picture()
                await ben.picture()
                assert balancer.channels_open == 1  # it is captured once, wherever it is watched
                await anna.says(op="ask", action="take_over")
                await anna.is_told("scene", phase="human", by=anna.scene["you"])
                await ben.is_told("scene", phase="human", by=anna.scene["you"])
                await ben.clicks(0.25, 0.1)
                assert "is in control" in (await ben.is_told("refused"))["why"]
            await anna.clicks(0.75, 0.1)
            await anna.does(kind="text", text="Grüße ")
            await anna.does(kind="text", text="pasted", pasted=True)
            for letter in "ok":
                for act in ("down", "up"):
                    await anna.does(
                        kind="key", act=act, key=letter, code=f"Key{letter.upper()}", key_code=65
                    )
            drop = {"kind": "drop", "x": 0.5, "y": 0.9, "name": "note.txt"}
            text = json.dumps({"op": "input", "act": drop})
            await anna.socket.send_bytes(pack(text, b"dropped"))
            await anna.clicks(0.25, 0.1)
            await anna.sees_blue()
            await anna.says(op="ask", action="hand_back")
            await anna.is_told("closed")
            assert anna.refusals == []
        assert (await rested(client, job_id)).state == "succeeded"
        [item] = [item async for item in another.items(job_id)]
        assert "Grüße pastedok" in item["done"]
        assert "note.txt dropped" in item["done"]
        await eventually(lambda: balancer.channels_open == 0)


async def test_whichever_coordinator_is_killed_the_rest_show_the_tab_and_nothing_is_left(
    fleet: Fleet, site: Site, tmp_path: Path, chromium_executable: str
) -> None:
    one, two, three = fleet.houses
    (tmp_path / "page.html").write_text(BLUE)
    steps = [{"goto": f"{site(tmp_path)}/page.html"}, {"wait": "5m"}]
    async with (
        steering_to(channels=one.url, rest=one.url) as balancer,
        steering_to(channels=two.url, rest=two.url) as people,
        agent_behind(balancer, one),
        three.client() as client,
        async_playwright() as playwright,
    ):
        job_id = await submitted(client, job("watched", *steps))
        path = await path_of(client, job_id)

        # The one at which somebody watches: nothing is captured for who has gone.
        async with person(two, path) as anna:
            await anna.sees_blue()
            assert balancer.channels_open == 1
            fleet.kill(1)
            await eventually(lambda: balancer.channels_open == 0, 15)
        people.rest = three.url

        # The one that shows it: who watches is told, and the page is shown it by the next.
        browser = await playwright.chromium.launch(executable_path=chromium_executable)
        page = await browser.new_page()
        await page.goto(people.url + path)
        drawn = page.locator("canvas")
        await expect(drawn).to_have_attribute("data-seq", re.compile(r"\d"), timeout=20_000)
        async with person(three, path) as anna:
            await anna.sees_blue()
            fleet.kill(0)
            balancer.rest = balancer.channels = three.url
            async with asyncio.timeout(PATIENCE_S):
                closed = await anna.is_told("closed")
            assert closed["reason"] == "elsewhere"
        await expect(page.locator("#message")).to_be_hidden(timeout=30_000)
        before = int(await drawn.get_attribute("data-seq") or 0)
        await expect(drawn).not_to_have_attribute("data-seq", f"{before}", timeout=20_000)
        async with asyncio.timeout(PATIENCE_S), person(three, path) as anna:
            await anna.sees_blue()
            assert len(anna.scene["viewers"]) == 2
        await only_boxes_of(three)
        await browser.close()
        await client.cancel(job_id)
        await rested(client, job_id)
