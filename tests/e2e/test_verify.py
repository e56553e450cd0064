"""`farm verify` against `farm serve`, each a process of its own."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from farm.cli.exits import ExitCode
from farm.sdk import FarmClient
from tests.e2e.processes import ended, eventually, interrupt, process
from tests.stores.conftest import Databases, postgres, redis_url

__all__ = ["postgres", "redis_url"]

# Else the first point waits ten seconds for an agent to count as silent.
QUICK = {"FARM_LINK__WINDOW_S": "4", "FARM_LINK__HEARTBEAT_INTERVAL_S": "0.4"}


@pytest.fixture(params=["memory", "redis", "postgres"])
def settings(request: pytest.FixtureRequest) -> Mapping[str, str]:
    if request.param == "memory":
        return QUICK
    if request.param == "postgres":
        databases: Databases = request.getfixturevalue("postgres")
        return {**QUICK, "FARM_LEDGER__URL": databases.new()}
    url: str = request.getfixturevalue("redis_url")
    return {**QUICK, "FARM_REDIS__URL": url, "FARM_REDIS__SHARD": "verify-e2e"}


async def test_a_farm_of_another_process_is_verified_and_has_nothing_left(
    tmp_path: Path, settings: Mapping[str, str]
) -> None:
    announced = tmp_path / ".farm" / "farm.json"
    serve = process("farm.cli", "serve", "--port", "0", cwd=tmp_path, env=settings)
    async with serve as farm:
        await eventually(lambda: announced.exists() or farm.returncode is not None, 30)
        async with process("farm.cli", "verify", "--json", cwd=tmp_path) as command:
            code, out, talk = await ended(command, 60)
        assert code == ExitCode.SUCCEEDED, talk
        told = json.loads(out)
        assert [(p["number"], p["outcome"]) for p in told["points"]] == [
            (number, "pass") for number in range(1, 10)
        ]
        assert told["left_behind"] == []
        assert told["seconds"] < 60
        url = json.loads(announced.read_text())["url"]
        token = (tmp_path / ".farm" / "admin.token").read_text().strip()
        async with FarmClient(url, token) as client:
            assert await client.agents() == ()
        interrupt(farm)
        code, _, talk = await ended(farm, 20)
        assert code == ExitCode.SUCCEEDED, talk
