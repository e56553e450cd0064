"""What the compose file promises, read without an engine."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import agent.config
import farm.config
from farm.protocol.variables import variable_names

DOCKER = Path(__file__).parents[2] / "docker"


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, dict[str, Any]]] = YAML(typ="safe").load(DOCKER / "compose.yaml")
    return loaded["services"]


def test_nothing_is_published_but_to_this_machine(services: dict[str, dict[str, Any]]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8700:8700"]


def test_farm_and_agents_read_one_token_from_a_secret(services: dict[str, dict[str, Any]]) -> None:
    places = {
        service["environment"].get("FARM_AGENT_TOKEN_FILE")
        or service["environment"].get("AGENT_TOKEN_FILE")
        for service in services.values()
    }
    assert places == {"/run/secrets/agent_token"}
    assert all(service["secrets"] == ["agent_token"] for service in services.values())


def test_the_farm_answers_to_the_name_under_which_agents_dial_it(
    services: dict[str, dict[str, Any]],
) -> None:
    names = {
        service["environment"]["FARM_URL"].removeprefix("http://").split(":")[0]
        for name, service in services.items()
        if name != "farm"
    }
    assert names == {services["farm"]["environment"]["FARM_ALLOWED_HOSTS"]}


def test_agents_have_names_of_their_own_and_time_to_drain(
    services: dict[str, dict[str, Any]],
) -> None:
    agents = [service for name, service in services.items() if name != "farm"]
    assert len({one["environment"]["AGENT_CLIENT_ID"] for one in agents}) == len(agents) == 2
    for one in agents:
        drain_s = float(one["environment"]["AGENT_DRAIN_S"])
        assert float(one["stop_grace_period"].removesuffix("s")) > drain_s + 10
        assert one["shm_size"] == "1gb"


def test_every_variable_is_one_that_is_read(services: dict[str, dict[str, Any]]) -> None:
    known = {
        *variable_names(farm.config.Settings, "FARM_"),
        *variable_names(agent.config.Settings, "AGENT_"),
        "FARM_URL",
    }
    given = {name for service in services.values() for name in service["environment"]}
    assert given <= known
