"""What the compose files promise, read without an engine."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import agent.config
import farm.config
from farm.protocol.variables import variable_names

DOCKER = Path(__file__).parents[2] / "docker"
Services = dict[str, dict[str, Any]]
BALANCER = (DOCKER / "haproxy.cfg").read_text()
PORT = "8700"


def read(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(DOCKER / name)
    return loaded


@pytest.fixture(scope="module", params=["compose.yaml", "compose.shared.yaml"])
def file(request: pytest.FixtureRequest) -> dict[str, Any]:
    return read(request.param)


@pytest.fixture(scope="module")
def services(file: dict[str, Any]) -> Services:
    found: Services = file["services"]
    return found


@pytest.fixture(scope="module")
def shared() -> Services:
    found: Services = read("compose.shared.yaml")["services"]
    return found


def of_image(services: Services, image: str) -> Services:
    return {name: one for name, one in services.items() if one["image"].startswith(image)}


def agents_of(services: Services) -> Services:
    return of_image(services, "tabfarm/agent")


def farms_of(services: Services) -> Services:
    return of_image(services, "tabfarm/farm")


# Every file


def test_nothing_is_published_but_to_this_machine(services: Services) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports == [f"127.0.0.1:{PORT}:{PORT}"]


def test_farm_and_agents_read_one_token_from_a_secret(services: Services) -> None:
    ours = {**farms_of(services), **agents_of(services)}
    places = {
        one["environment"].get("FARM_AGENT_TOKEN_FILE") or one["environment"]["AGENT_TOKEN_FILE"]
        for one in ours.values()
    }
    assert places == {"/run/secrets/agent_token"}
    assert all("agent_token" in one["secrets"] for one in ours.values())


def test_agents_dial_a_service_by_a_name_that_the_farm_answers_to(services: Services) -> None:
    (url,) = {one["environment"]["FARM_URL"] for one in agents_of(services).values()}
    name, _, port = url.removeprefix("http://").partition(":")
    assert name in services
    assert port == PORT
    hosts = {one["environment"]["FARM_ALLOWED_HOSTS"] for one in farms_of(services).values()}
    assert hosts == {name}


def test_agents_have_names_of_their_own_and_time_to_drain(services: Services) -> None:
    agents = agents_of(services).values()
    assert len({one["environment"]["AGENT_CLIENT_ID"] for one in agents}) == len(agents) == 2
    for one in agents:
        drain_s = float(one["environment"]["AGENT_DRAIN_S"])
        assert float(one["stop_grace_period"].removesuffix("s")) > drain_s + 10
        assert one["shm_size"] == "1gb"


def test_every_variable_is_one_that_is_read(services: Services) -> None:
    known = {
        *variable_names(farm.config.Settings, "FARM_"),
        *variable_names(agent.config.Settings, "AGENT_"),
        "FARM_URL",
    }
    ours = {**farms_of(services), **agents_of(services)}
    assert {name for one in ours.values() for name in one["environment"]} <= known


def test_what_a_service_names_there_is(file: dict[str, Any], services: Services) -> None:
    for service in services.values():
        for other, how in service.get("depends_on", {}).items():
            assert other in services
            told = services[other]
            checked = "healthcheck" in told or told["image"].startswith("tabfarm/")
            assert checked or how["condition"] == "service_started"
        assert set(service.get("networks", ())) <= set(file.get("networks", ()))
        assert set(service.get("secrets", ())) <= set(file.get("secrets", ()))
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./"):
                assert (DOCKER / source).is_file()
            else:
                assert source in file["volumes"]


def test_our_images_are_those_of_the_dockerfiles_and_others_have_a_version(
    services: Services,
) -> None:
    for service in services.values():
        repository, _, tag = service["image"].partition(":")
        if not repository.startswith("tabfarm/"):
            assert re.match(r"\d", tag)
            continue
        build = service["build"]
        text = (DOCKER.parent / build["dockerfile"]).read_text()
        assert build["dockerfile"] == f"docker/{repository.removeprefix('tabfarm/')}.Dockerfile"
        assert build.get("target", "") == tag
        assert not tag or re.search(rf"^FROM .* AS {tag}$", text, re.MULTILINE)


def test_the_port_is_that_of_the_image() -> None:
    text = (DOCKER / "farm.Dockerfile").read_text()
    assert f"FARM_PORT={PORT} " in text
    assert f"EXPOSE {PORT}\n" in text


# Several coordinators


def test_three_coordinators_share_redis_ledger_files_and_key(shared: Services) -> None:
    farms = list(farms_of(shared).values())
    assert len(farms) == 3
    for one in farms:
        given = one["environment"]
        assert given["FARM_REDIS__URL"] == "redis://redis:6379"
        assert given["FARM_IDENTITY_KEY_FILE"] == "/run/secrets/identity_key"
        assert f"files:{given['FARM_ARTIFACTS__DIR']}" in one["volumes"]
        assert set(one["depends_on"]) == {"redis", "postgres"}
    data = [volume for one in farms for volume in one["volumes"] if volume.endswith(":/data")]
    assert len(set(data)) == 3
    # A volume belongs to whom its place in the image belongs to.
    text = (DOCKER / "farm.Dockerfile").read_text()
    owned = re.search(r"install -d .* -o farm -g farm (.*)", text)
    assert owned is not None
    assert {"/data", "/files"} <= set(owned[1].split())


def test_the_balancer_knows_each_coordinator_and_where_it_listens(shared: Services) -> None:
    servers = dict(re.findall(r"^ +server (\S+) (\S+)$", BALANCER, re.MULTILINE))
    assert servers == {name: f"{name}:{PORT}" for name in farms_of(shared)}
    assert set(shared["farm"]["depends_on"]) == set(servers)
    assert re.findall(r"^ +bind :(\d+)$", BALANCER, re.MULTILINE) == [PORT]


def test_the_balancer_asks_what_is_open_and_cuts_off_who_is_connected_to_one_that_is_gone() -> None:
    assert "http-check send meth GET uri /healthz" in BALANCER
    assert "on-marked-down shutdown-sessions" in BALANCER


def test_the_balancers_configuration_is_one() -> None:
    if (haproxy := shutil.which("haproxy")) is None:
        pytest.skip("there is no haproxy")
    ended = subprocess.run(
        [haproxy, "-c", "-f", DOCKER / "haproxy.cfg"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_only_coordinators_get_to_redis_and_postgres_which_keep_everything(
    shared: Services,
) -> None:
    within = {name for name, one in shared.items() if "stores" in one["networks"]}
    assert within == {*farms_of(shared), "redis", "postgres"}
    assert shared["redis"]["networks"] == shared["postgres"]["networks"] == ["stores"]
    assert read("compose.shared.yaml")["networks"]["stores"] == {"internal": True}
    command = " ".join(shared["redis"]["command"])
    for wanted in ("--maxmemory-policy noeviction", "--appendonly yes", "--appendfsync always"):
        assert wanted in command


def test_every_secret_is_made_by_the_script_and_once(tmp_path: Path, shared: Services) -> None:
    for name in ("make-token.sh", "make-secrets.sh"):
        shutil.copy(DOCKER / name, tmp_path)
    made: list[dict[str, str]] = []
    for _ in range(2):
        subprocess.run([tmp_path / "make-secrets.sh"], check=True)
        made.append({path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()})
    assert made[0] == made[1]
    files = read("compose.shared.yaml")["secrets"].values()
    wanted = {Path(one["file"]).name for one in files}
    (ledger,) = {one["env_file"] for one in farms_of(shared).values()}
    assert set(made[0]) == {*wanted, Path(ledger).name}
    name, _, url = made[0]["ledger.env"].strip().partition("=")
    assert name in variable_names(farm.config.Settings, "FARM_")
    database = shared["postgres"]["environment"]
    password = made[0]["postgres_password"]
    assert url == f"postgresql://{database['POSTGRES_USER']}:{password}@postgres/farm"
    assert database["POSTGRES_DB"] == "farm"
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
