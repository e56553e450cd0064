"""What it costs to watch a tab, and how soon a key shows: `python -m tests.benchmarks.live`.

Prints a table and writes `build/live-bench.json`. CPU is that of coordinator, agent, driver and
browser; the viewer and the site do not count. Short runs: read the ratios.
"""

import argparse
import asyncio
import io
import json
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from PIL import Image

from farm.protocol.channels import unpack
from farm.sdk.client import FarmClient
from tests.benchmarks.__main__ import _farm
from tests.benchmarks.processes import cpu_s
from tests.listening import listening

_SETTLE_S = 2.0
_KEYS = 40
_PAGES = {
    "static": "<h1>static</h1>" + "<p>text</p>" * 50,
    "4 changes/s": "<h1 id=n>0</h1>" + "<p>text</p>" * 50 + "<script>let i=0;"
    "setInterval(() => { n.textContent = ++i; }, 250);</script>",
    "animated": "<canvas id=c width=1200 height=680></canvas><script>let i=0;"
    "(function draw() { const g=c.getContext('2d'); i++; for (let x=0;x<40;x++) {"
    "g.fillStyle=`hsl(${(i*3+x*9)%360} 80% 50%)`; g.fillRect(x*30,0,30,680); }"
    "requestAnimationFrame(draw); })();</script>",
    "keys": "<body style='background:black'><script>onkeydown = () => { document.body.style."
    "background = document.body.style.background === 'black' ? 'white' : 'black'; };</script>",
}


@asynccontextmanager
async def _site() -> AsyncIterator[str]:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text=_PAGES[request.query["page"]], content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    async with listening(app) as url:
        yield url


class Viewer:
    """Draws nothing, and says at once that it has."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.frames = 0
        self.bytes = 0
        self.scene: dict[str, Any] = {}

    async def look(self, width: int, fps: float) -> None:
        await self.say(op="look", width=width, height=width, fps=fps)

    async def say(self, **message: Any) -> None:
        await self._socket.send_str(json.dumps(message))

    async def next(self) -> bytes | None:
        """Return the next picture; None if it was another message."""
        frame = await self._socket.receive(timeout=30)
        if frame.type is aiohttp.WSMsgType.TEXT:
            said = json.loads(frame.data)
            if said["op"] == "scene":
                self.scene = said
            return None
        assert frame.type is aiohttp.WSMsgType.BINARY, frame
        header, jpeg = unpack(frame.data)
        self.frames += 1
        self.bytes += len(jpeg)
        await self.say(op="shown", seq=json.loads(header)["seq"])
        return bytes(jpeg)

    async def watch(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.next()
        except TimeoutError:
            return

    async def until_phase(self, phase: str) -> None:
        while self.scene.get("phase") != phase:
            await self.next()


class Bench:
    """One farm, and what is measured on it."""

    def __init__(self, pid: int, client: FarmClient, base: str, seconds: float) -> None:
        self._pid = pid
        self._client = client
        self._base = base
        self._seconds = seconds

    @asynccontextmanager
    async def tab(self, page: str, mode: str = "view") -> AsyncIterator[str]:
        """Open a page in a job; give the URL of its live view."""
        steps: list[Any] = [{"goto": f"{self._base}/?page={page.replace(' ', '+')}"}]
        # A person can take over between two steps; without that nothing is to be done meanwhile.
        steps += [{"wait": "250ms"}] * 400 if mode == "control" else [{"wait": "5m"}]
        job = await self._client.submit({"name": page, "steps": steps})
        try:
            yield self._client.url + (await self._link(job.id, mode))
        finally:
            await self._client.cancel(job.id)
            await self._client.job(job.id, wait_s=30)

    async def _link(self, job_id: str, mode: Any) -> str:
        while True:
            for worker in await self._client.workers():
                if worker.assignment is not None and worker.assignment.job_id == job_id:
                    return (await self._client.live_link(worker.live, mode=mode)).path
            await asyncio.sleep(0.1)

    async def cpu(self, watching: Viewer | None) -> float:
        """Return the CPU that is used meanwhile, in percent of a core."""
        before, began = cpu_s(self._pid), time.monotonic()
        if watching is None:
            await asyncio.sleep(self._seconds)
        else:
            await watching.watch(self._seconds)
        return 100 * (cpu_s(self._pid) - before) / (time.monotonic() - began)

    async def page(self, name: str, looks: list[tuple[int, float]]) -> list[dict[str, Any]]:
        """Measure one kind of page: unwatched, watched in each way, and unwatched again."""
        rows = []
        async with self.tab(name) as url, aiohttp.ClientSession() as session:
            await asyncio.sleep(_SETTLE_S)
            rows.append({"page": name, "look": "unwatched", "cpu_percent": await self.cpu(None)})
            for width, fps in looks:
                async with session.ws_connect(url, max_msg_size=0) as socket:
                    viewer = Viewer(socket)
                    await viewer.look(width, fps)
                    await viewer.watch(_SETTLE_S)
                    viewer.frames = viewer.bytes = 0
                    cpu = await self.cpu(viewer)
                rows.append(
                    {
                        "page": name,
                        "look": f"{width} px, {fps:g}/s",
                        "cpu_percent": cpu,
                        "fps": viewer.frames / self._seconds,
                        "kb_per_frame": viewer.bytes / max(viewer.frames, 1) / 1000,
                    }
                )
            await asyncio.sleep(_SETTLE_S)
            rows.append(
                {"page": name, "look": "unwatched again", "cpu_percent": await self.cpu(None)}
            )
        return rows

    async def latency(self) -> dict[str, float]:
        """Measure from a key that a viewer presses to a picture that shows what it did, in ms."""
        times = []
        async with (
            self.tab("keys", "control") as url,
            aiohttp.ClientSession() as session,
            session.ws_connect(url, max_msg_size=0) as socket,
        ):
            viewer = Viewer(socket)
            await viewer.look(1280, 60)
            await viewer.until_phase("automation")
            await viewer.say(op="ask", action="take_over")
            await viewer.until_phase("human")
            await viewer.watch(1.0)
            for number in range(_KEYS):
                times.append(await self._key(viewer, light=number % 2 == 0))
                await viewer.watch(0.1)
        cuts = statistics.quantiles(times, n=20)
        return {"p50_ms": statistics.median(times), "p95_ms": cuts[18], "keys": _KEYS}

    async def _key(self, viewer: Viewer, *, light: bool) -> float:
        """Press a key; return after how many ms the page is seen light, or dark."""
        began = time.monotonic()
        for act in ("down", "up"):
            key = {"kind": "key", "act": act, "key": "a", "code": "KeyA", "key_code": 65}
            await viewer.say(op="input", act=key)
        while (jpeg := await viewer.next()) is None or _is_light(jpeg) is not light:
            pass
        return 1000 * (time.monotonic() - began)


def _is_light(jpeg: bytes) -> bool:
    return Image.open(io.BytesIO(jpeg)).convert("L").tobytes()[0] > 128


async def _measure(seconds: float) -> dict[str, Any]:
    async with _site() as base, _farm(base, 1) as farm:
        bench = Bench(farm.pid, farm.client, base, seconds)
        rows: list[dict[str, Any]] = []
        for name in ("static", "4 changes/s", "animated"):
            rows += await bench.page(name, [(640, 10), (1280, 30)])
        return {"pages": rows, "key_to_picture": await bench.latency()}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="What it costs to watch a tab.")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each figure is taken")
    result = asyncio.run(_measure(parser.parse_args().seconds))
    print(f"{'page':<12} {'look':<16} {'CPU % of a core':>15} {'fps':>6} {'kB/frame':>9}")
    for row in result["pages"]:
        fps = f"{row['fps']:.1f}" if "fps" in row else "-"
        size = f"{row['kb_per_frame']:.0f}" if row.get("fps") else "-"
        print(f"{row['page']:<12} {row['look']:<16} {row['cpu_percent']:>15.1f} {fps:>6} {size:>9}")
    latency = result["key_to_picture"]
    print(f"key to picture: {latency['p50_ms']:.0f} ms (p50), {latency['p95_ms']:.0f} ms (p95)")
    file = Path("build") / "live-bench.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
