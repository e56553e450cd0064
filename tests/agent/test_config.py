"""The agent's settings."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import ValidationError

from agent import config, main
from farm.protocol.plan import BrowserOptions
from farm.protocol.variables import UnknownVariableError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AGENT_", "FARM_")):
            monkeypatch.delenv(name)


def load(monkeypatch: pytest.MonkeyPatch, **variables: str) -> config.Settings:
    for name, value in ({"FARM_URL": "http://127.0.0.1:8700"} | variables).items():
        monkeypatch.setenv(name, value)
    return config.load()


@pytest.mark.parametrize(
    ("variables", "warned"),
    [
        ({}, False),
        ({"AGENT_SLOTS": "3", "AGENT_MAX_WINDOWS": "3"}, True),
        ({"AGENT_SLOTS": "3", "AGENT_MAX_WINDOWS": "4"}, False),
        (
            {"AGENT_SLOTS": "3", "AGENT_MAX_WINDOWS": "3", "AGENT_PREPARED_WINDOWS": "0"},
            False,
        ),
    ],
)
def test_limits_that_leave_no_room_for_windows_ahead_are_said_at_the_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], warned: bool
) -> None:
    settings = load(monkeypatch, **variables)
    with structlog.testing.capture_logs() as logs:
        assert main._prepared(settings) == settings.prepared_windows
    assert [entry["event"] for entry in logs] == ["windows.none_prepared"] * warned


def test_the_farm_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="FARM_URL"):
        config.load()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("AGENT_SLOT", "AGENT_SLOTS"),
        ("AGENT_METADAT", "AGENT_METADATA"),
        ("AGENT_FARM_URL", "FARM_URL"),
    ],
)
def test_a_variable_nobody_reads_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, near: str
) -> None:
    with pytest.raises(UnknownVariableError, match=f"no setting {name}.*{near}"):
        load(monkeypatch, **{name: "1"})


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        ("region=eu, zone=b", {"region": "eu", "zone": "b"}),
        ("cores=4", {"cores": "4"}),
        ('{"cores": 4, "ratio": 1.0, "gpu": null}', {"cores": 4, "ratio": 1.0, "gpu": None}),
        ("a=b=c", {"a": "b=c"}),
        ("", {}),
    ],
)
def test_metadata_is_json_or_pairs(
    monkeypatch: pytest.MonkeyPatch, text: str, metadata: Mapping[str, Any]
) -> None:
    found = load(monkeypatch, AGENT_METADATA=text).metadata
    assert repr(found) == repr(metadata)


@pytest.mark.parametrize("text", ["region", "=eu", "{", "[1]", '{"a": 1', '{"a": NaN}'])
def test_metadata_that_is_neither_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with pytest.raises(ValidationError):
        load(monkeypatch, AGENT_METADATA=text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AGENT_SLOTS", "0"),
        ("AGENT_MAX_WINDOWS", "0"),
        ("AGENT_PREPARED_WINDOWS", "-1"),
        ("AGENT_PREPARED_OPTIONS", "{}"),
        ("AGENT_PREPARED_OPTIONS", "[1]"),
        ("AGENT_PREPARED_OPTIONS", "no json"),
        ("AGENT_PREPARED_OPTIONS", '[{"colour": "red"}]'),
        ("AGENT_NAMESPACES", " , "),
        ("AGENT_CLIENT_ID", ""),
        ("AGENT_TOKEN_FD", "1"),
        ("AGENT_DRAIN_S", "-1"),
        ("AGENT_LOG_LEVEL", "loud"),
        ("FARM_URL", "not a url"),
        ("FARM_URL", "http://one.example,not a url"),
        ("FARM_URL", " , "),
    ],
)
def test_a_value_out_of_bounds_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with pytest.raises(ValidationError):
        load(monkeypatch, **{name: value})


def test_the_windows_to_prepare_are_said_as_a_job_says_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = load(monkeypatch, AGENT_PREPARED_OPTIONS='[{"locale": "de-DE"}, {}]').prepared_options
    assert found == (BrowserOptions(locale="de-DE"), BrowserOptions())


def test_namespaces_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch, AGENT_NAMESPACES="a, b,").namespaces == ("a", "b")


def test_several_coordinators_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = load(monkeypatch, FARM_URL="http://one.example:8700, http://two.example:8700/").farm_urls
    assert [url.host for url in urls] == ["one.example", "two.example"]


def test_the_token_comes_from_exactly_one_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("from-file\n")
    assert load(monkeypatch, AGENT_TOKEN_FILE=str(path)).secret() == "from-file"
    with pytest.raises(ValueError, match=r"exactly one .* not 2"):
        load(monkeypatch, AGENT_TOKEN="s").secret()
    monkeypatch.delenv("AGENT_TOKEN_FILE")
    assert config.load().secret() == "s"
    monkeypatch.delenv("AGENT_TOKEN")
    with pytest.raises(ValueError, match="exactly one"):
        config.load().secret()


def test_a_token_is_read_from_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"from-pipe\n")
    os.close(writer)
    assert load(monkeypatch, AGENT_TOKEN_FD=str(reader)).secret() == "from-pipe"


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_token_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(ValueError, match="empty"):
        load(monkeypatch, AGENT_TOKEN_FILE=str(path)).secret()


def test_the_token_is_in_no_text_of_the_settings_and_no_environment_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load(monkeypatch, AGENT_TOKEN="s3cret")
    assert "s3cret" not in repr(settings)
    assert "s3cret" not in str(config.environment())
    assert "AGENT_TOKEN" not in os.environ


def test_a_prefix_in_common_is_no_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownVariableError, match=r"no setting AGENT_CONCURRENCY$"):
        load(monkeypatch, AGENT_CONCURRENCY="1")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AGENT_TOKEN_FILE", "/nowhere/agent.token"), ("AGENT_TOKEN_FD", "4095")],
)
def test_a_token_that_cannot_be_read_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    with pytest.raises(ValueError, match=f"{variable}={value} can't be read: [A-Z]") as caught:
        load(monkeypatch, **{variable: value}).secret()
    assert "Errno" not in str(caught.value)


def test_an_agent_serves_the_default_queue_with_jobs_from_no_node_unless_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = load(monkeypatch)
    assert (plain.task_queue, plain.activity_types, plain.node) == ("default", ("job",), None)
    said = {"AGENT_TASK_QUEUE": "q", "AGENT_ACTIVITY_TYPES": "job, crawl", "AGENT_NODE": "n1"}
    told = load(monkeypatch, **said)
    assert (told.task_queue, told.activity_types, told.node) == ("q", ("job", "crawl"), "n1")
