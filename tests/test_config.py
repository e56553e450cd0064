"""The coordinator's settings."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from farm import config
from farm.protocol.variables import UnknownVariableError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("FARM_"):
            monkeypatch.delenv(name)


def test_the_defaults_hold_together() -> None:
    settings = config.load()
    assert settings.host == "127.0.0.1"
    assert settings.link.heartbeat_interval_s < settings.link.window_s
    assert settings.egress_allow == ()


def test_nested_settings_and_lists_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FARM_LINK__WINDOW_S", "4")
    monkeypatch.setenv("FARM_EGRESS_ALLOW", "127.0.0.1:80, 10.0.0.0/8,")
    settings = config.load(port=1, data_dir=None)
    assert settings.link.window_s == 4
    assert settings.egress_allow == ("127.0.0.1:80", "10.0.0.0/8")
    assert (settings.port, settings.data_dir) == (1, Path(".farm"))


@pytest.mark.parametrize(
    ("name", "near"),
    [("FARM_PROT", "FARM_PORT"), ("FARM_LINK__WINDOWS", "FARM_LINK__WINDOW_S"), ("FARM_X", "")],
)
def test_a_variable_nobody_reads_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, near: str
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(UnknownVariableError, match=f"no setting {name}.*{near}"):
        config.load()


def test_what_the_command_line_reads_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("FARM_TOKEN", "t")
    config.load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FARM_PORT", "70000"),
        ("FARM_LINK__WINDOW_S", "0"),
        ("FARM_LINK__GONE_AFTER_WINDOWS", "0.5"),
        ("FARM_JOBS__MAX_FREE_LOSSES", "-1"),
        ("FARM_LOG_LEVEL", "loud"),
    ],
)
def test_a_value_out_of_bounds_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        config.load()


def test_the_token_of_agents_is_in_no_text_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FARM_AGENT_TOKEN", "s3cret")
    assert "s3cret" not in repr(config.load())


def test_the_place_of_redis_has_a_scheme_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.load().redis.url is None
    monkeypatch.setenv("FARM_REDIS__URL", "redis://:secret@redis.example:6379/0")
    assert "secret" not in repr(config.load())
    monkeypatch.setenv("FARM_REDIS__URL", "redis.example:6379")
    with pytest.raises(ValidationError, match="begins with one of redis://"):
        config.load()
