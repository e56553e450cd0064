"""`python -m tests.simulated.crowd JSON`: very many agents in one process, by the wire alone.

Each has so many tabs that are clean and idle, answers as agents do, and does nothing in them. What
a heartbeat and a freed slot take is measured where agents feel it. The first line of stdout says
that all are let in; a line on stdin asks for the figures so far, which are the next line of stdout
and then forgotten.
"""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import aiohttp
from pydantic import TypeAdapter

_DIALS = 50
"""So many dial at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Who is in the process."""

    url: str
    token: str
    agents: int
    tabs: int
    name: str = "crowd"
    namespaces: tuple[str, ...] = ("default",)
    run_s: float = 0.0
    """How long a run takes."""


CROWD = TypeAdapter(Crowd)


@dataclass(slots=True)
class Figures:
    """What was felt, in seconds, and how many runs have ended."""

    beats: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    """From the result that frees a tab's slot to the next run on the same agent."""
    runs: int = 0


@dataclass(slots=True)
class Member:
    """One agent."""

    crowd: Crowd
    client_id: str
    figures: Figures
    socket: aiohttp.ClientWebSocketResponse
    let_in: asyncio.Event
    tokens: dict[str, Any] = field(default_factory=dict)
    """Of the tabs that are lent, by tab."""
    epoch: int = 0
    number: int = 0
    beat_at: float = 0.0
    nonce: str = ""
    freed_at: float | None = None

    async def live(self, group: asyncio.TaskGroup) -> None:
        await self.say(self.hello())
        async for frame in self.socket:
            if frame.type is aiohttp.WSMsgType.TEXT:
                await self.hear(json.loads(frame.data), group)

    async def hear(self, said: dict[str, Any], group: asyncio.TaskGroup) -> None:
        match said["op"]:
            case "welcome":
                self.epoch = said["epoch_number"]
                await self.report()
                self.let_in.set()
                group.create_task(self.beat(said["heartbeat_interval_s"]))
            case "ping":
                if said["nonce"] == self.nonce:  # else it is a question, and no answer
                    self.figures.beats.append(perf_counter() - self.beat_at)
                await self.say({"op": "pong", "nonce": said["nonce"]})
            case "command":
                await self.obey(said, group)
            case "refused":
                raise RuntimeError(f"{self.client_id} is refused: {said}")
            case _:
                pass

    async def beat(self, every_s: float) -> None:
        # Spread over the interval, as those that have come one after the other are.
        await asyncio.sleep(every_s * (hash(self.client_id) % 1000) / 1000)
        while True:
            self.beat_at, self.nonce = perf_counter(), f"beat at {perf_counter()}"
            await self.say({"op": "heartbeat", "epoch_number": self.epoch, "nonce": self.nonce})
            await asyncio.sleep(every_s)

    async def obey(self, order: dict[str, Any], group: asyncio.TaskGroup) -> None:
        kind, command_id = order["body"]["kind"], order["command_id"]
        if kind == "run":
            if self.freed_at is not None:
                self.figures.gaps.append(perf_counter() - self.freed_at)
                self.freed_at = None
            self.tokens[order["context_id"]] = order["token"]
            await self.say({"op": "ack", "command_id": command_id})
            group.create_task(self.run(order))
        elif kind == "release":
            if self.tokens.get(order["context_id"]) == order["token"]:
                del self.tokens[order["context_id"]]
                await self.report()
        else:
            await self.say({"op": "result", "command_id": command_id, "outcome": "succeeded"})

    async def run(self, order: dict[str, Any]) -> None:
        of = {
            "command_id": order["command_id"],
            "attempt_id": order["body"]["plan"]["attempt_id"],
            "token": order["token"],
        }
        started = {"kind": "started", "context_id": order["context_id"]}
        entry = {"seq": 1, "at": 1.0, "event": started}
        await self.say({"op": "event", **of, "entries": [entry]})
        await asyncio.sleep(self.crowd.run_s)
        await self.say({"op": "result", **of, "seq": 1, "outcome": "succeeded"})
        self.freed_at = perf_counter()
        self.figures.runs += 1

    async def report(self) -> None:
        self.number += 1
        names = [f"{self.client_id}-T{tab}" for tab in range(self.crowd.tabs)]
        contexts = [
            {
                "context_id": tab,
                "window_id": tab,
                "clean": tab not in self.tokens,
                "token": self.tokens.get(tab),
            }
            for tab in names
        ]
        windows = [{"window_id": tab} for tab in names]
        report = {"op": "report", "epoch_number": self.epoch, "number": self.number}
        await self.say({**report, "windows": windows, "contexts": contexts})

    def hello(self) -> dict[str, Any]:
        tabs = self.crowd.tabs
        return {
            "op": "hello",
            "client_id": self.client_id,
            "instance": self.client_id,
            "epoch": f"of {self.client_id}",
            "namespaces": self.crowd.namespaces,
            "capacity": {"max_concurrency": tabs, "max_windows": tabs},
        }

    async def say(self, message: dict[str, Any]) -> None:
        await self.socket.send_str(json.dumps(message))


async def main(crowd: Crowd) -> None:
    """Let everybody in, and answer to stdin until it ends."""
    figures = Figures()
    headers = {"Authorization": f"Bearer {crowd.token}"}
    connector = aiohttp.TCPConnector(limit=0)
    doors = asyncio.Semaphore(_DIALS)
    async with (
        aiohttp.ClientSession(headers=headers, connector=connector) as session,
        asyncio.TaskGroup() as group,
    ):

        async def one(number: int, let_in: asyncio.Event) -> None:
            async with doors:
                socket = await session.ws_connect(f"{crowd.url}/v1/agent", max_msg_size=2**25)
                member = Member(crowd, f"{crowd.name}-{number}", figures, socket, let_in)
                life = group.create_task(member.live(group))
                await let_in.wait()
            await life

        inside = [asyncio.Event() for _ in range(crowd.agents)]
        lives = [group.create_task(one(n, let_in)) for n, let_in in enumerate(inside)]
        for let_in in inside:
            await let_in.wait()
        print("in", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            told = {"beats": figures.beats, "gaps": figures.gaps, "runs": figures.runs}
            print(json.dumps(told), flush=True)
            figures.beats, figures.gaps, figures.runs = [], [], 0
        raise SystemExit(len(lives) == 0)


if __name__ == "__main__":
    asyncio.run(main(CROWD.validate_json(sys.argv[1])))
