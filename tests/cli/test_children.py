import asyncio
import json
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from farm.cli.children import AgentOptions, AgentsUnusableError, Children, Staff
from farm.cli.up import fair_share
from tests.patience import PATIENCE_S

PREAMBLE = """
import json, os, pathlib, signal, sys, time
here = pathlib.Path(sys.argv[1])
name = os.environ["AGENT_CLIENT_ID"]
fd = int(os.environ["AGENT_TOKEN_FD"])
token = b""
while chunk := os.read(fd, 4096):
    token += chunk
def tell(what, value):
    new = here / f"{name}.{what}.new"
    new.write_text(json.dumps(value))
    new.rename(here / f"{name}.{what}")
def wait():
    while True:
        signal.pause()
"""
OBEDIENT = (
    PREAMBLE
    + """
starts = here / f"{name}.starts"
number = int(starts.read_text()) + 1 if starts.exists() else 1
starts.write_text(str(number))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
tell(f"life{number}", {"token": token.decode(), "env": dict(os.environ), "pid": os.getpid()})
wait()
"""
)
DEAF = (
    PREAMBLE
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
tell("life1", {"pid": os.getpid()})
wait()
"""
)
CONFUSED = PREAMBLE + "print('AGENT_SLOTS is no number', file=sys.stderr); sys.exit(2)"
BROKEN = PREAMBLE + "sys.exit('there is no browser')"


class Coordinator:
    """What the keeper of the children sees of a farm."""

    url = "http://127.0.0.1:1"

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.told = asyncio.Event()

    async def mint_agent_token(self, name: str) -> str:
        return f"secret-of-{name}"

    async def agent_ended(self, client_id: str) -> None:
        self.ended.append(client_id)
        self.told.set()


@pytest.fixture
def farm() -> Coordinator:
    return Coordinator()


def options(tmp_path: Path, script: str, give_up_after: int | None = None) -> AgentOptions:
    file = tmp_path / "agent.py"
    file.write_text(textwrap.dedent(script))
    return AgentOptions(
        command=(sys.executable, str(file), str(tmp_path)),
        log_dir=tmp_path / "logs",
        backoff_s=0.01,
        give_up_after=give_up_after,
    )


@asynccontextmanager
async def started(children: Children, count: int = 1) -> AsyncIterator[None]:
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        running = group.create_task(children.run(Staff(browsers=count)))
        yield
        if not running.done():
            await children.stop(2.0)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def told(path: Path) -> dict[str, object]:
    await eventually(path.exists)
    value: dict[str, object] = json.loads(path.read_text())
    return value


def alive(pid: object) -> bool:
    return isinstance(pid, int) and psutil.pid_exists(pid)


async def test_an_agent_reads_its_token_from_a_pipe_and_shows_it_nowhere(
    farm: Coordinator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARM_TOKEN", "secret-of-admin")
    monkeypatch.setenv("AGENT_TOKEN", "secret-of-another")
    monkeypatch.setenv("AGENT_METADATA", '{"region": "eu"}')
    monkeypatch.setenv("FARM_ARTIFACTS__URL", "s3://bucket")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-bucket")
    async with started(Children(farm, options(tmp_path, OBEDIENT))):
        life = await told(tmp_path / "agent-1.life1")
        assert life["token"] == "secret-of-agent-1"
        proc = Path("/proc") / str(life["pid"])
        assert "secret-of" not in (proc / "environ").read_text(errors="replace")
        assert "secret-of" not in (proc / "cmdline").read_text()
        environment = life["env"]
        assert isinstance(environment, dict)
        assert environment["FARM_URL"] == farm.url
        assert environment["AGENT_METADATA"] == '{"region": "eu"}'
        assert "FARM_TOKEN" not in environment
        assert "AGENT_TOKEN" not in environment
        assert "AWS_SECRET_ACCESS_KEY" not in environment


async def test_beside_other_farms_agents_have_names_of_their_own(
    farm: Coordinator, tmp_path: Path
) -> None:
    named = replace(options(tmp_path, OBEDIENT), prefix="rack-")
    async with started(Children(farm, named)):
        assert (await told(tmp_path / "rack-agent-1.life1"))["token"] == "secret-of-rack-agent-1"


async def test_an_agent_that_is_killed_is_reported_and_started_again(
    farm: Coordinator, tmp_path: Path
) -> None:
    async with started(Children(farm, options(tmp_path, OBEDIENT))):
        first = await told(tmp_path / "agent-1.life1")
        os.kill(int(str(first["pid"])), signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            await farm.told.wait()
        assert farm.ended == ["agent-1"]
        second = await told(tmp_path / "agent-1.life2")
        assert second["token"] == first["token"]
        assert second["pid"] != first["pid"]


async def test_every_agent_has_a_name_and_a_token_of_its_own(
    farm: Coordinator, tmp_path: Path
) -> None:
    async with started(Children(farm, options(tmp_path, OBEDIENT)), count=3):
        lives = [await told(tmp_path / f"agent-{n}.life1") for n in (1, 2, 3)]
    assert [life["token"] for life in lives] == [f"secret-of-agent-{n}" for n in (1, 2, 3)]
    assert sorted(farm.ended) == ["agent-1", "agent-2", "agent-3"]
    assert not any(alive(life["pid"]) for life in lives)


async def test_an_agent_that_will_not_end_is_killed_when_its_grace_is_over(
    farm: Coordinator, tmp_path: Path
) -> None:
    children = Children(farm, options(tmp_path, DEAF))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(children.run(Staff(browsers=1)))
        life = await told(tmp_path / "agent-1.life1")
        await children.stop(0.2)
    assert not alive(life["pid"])
    assert farm.ended == ["agent-1"]


async def test_cancelling_leaves_no_agent_behind(farm: Coordinator, tmp_path: Path) -> None:
    children = Children(farm, options(tmp_path, DEAF))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        running = group.create_task(children.run(Staff(browsers=2)))
        lives = [await told(tmp_path / f"agent-{n}.life1") for n in (1, 2)]
        running.cancel()
    assert not any(alive(life["pid"]) for life in lives)
    assert children.pids == {}


async def test_an_agent_that_never_runs_is_given_up_with_its_last_words(
    farm: Coordinator, tmp_path: Path
) -> None:
    children = Children(farm, options(tmp_path, BROKEN, give_up_after=3))
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(PATIENCE_S):
            await children.run(Staff(browsers=1))
    assert caught.group_contains(AgentsUnusableError, match="there is no browser")
    assert farm.ended == ["agent-1"] * 3


async def test_an_agent_that_can_not_read_its_settings_is_not_started_again(
    farm: Coordinator, tmp_path: Path
) -> None:
    children = Children(farm, options(tmp_path, CONFUSED))
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(PATIENCE_S):
            await children.run(Staff(browsers=1))
    assert caught.group_contains(AgentsUnusableError, match="AGENT_SLOTS is no number")
    assert farm.ended == ["agent-1"]


@pytest.mark.parametrize(("said", "slots"), [(None, "3"), ("7", "7")])
async def test_agents_are_given_their_slots_unless_a_variable_says(
    farm: Coordinator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, slots: str
) -> None:
    monkeypatch.delenv("AGENT_SLOTS", raising=False)
    if said is not None:
        monkeypatch.setenv("AGENT_SLOTS", said)
    children = Children(farm, replace(options(tmp_path, OBEDIENT), slots=3))
    async with started(children):
        environment = (await told(tmp_path / "agent-1.life1"))["env"]
        assert isinstance(environment, dict)
        assert environment["AGENT_SLOTS"] == slots


def test_agents_on_one_machine_share_two_jobs_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert [fair_share(agents) for agents in (1, 2, 3, 8, 64)] == [8, 4, 2, 1, 1]
