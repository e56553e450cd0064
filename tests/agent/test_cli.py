"""What the agent's command says where it can't start."""

import os

import pytest
from typer.testing import CliRunner

from agent.cli import app


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AGENT_", "FARM_")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "FARM_URL: Field required"),
        ({"AGENT_SLOTS": "0"}, "AGENT_SLOTS: "),
        ({"AGENT_METADATA": "{"}, "AGENT_METADATA: it begins like JSON"),
        ({"AGENT_TOKEN_FILE": "/nowhere/t"}, "AGENT_TOKEN_FILE=/nowhere/t can't be read: No such"),
        ({"AGENT_SLOT": "1"}, "did you mean AGENT_SLOTS?"),
    ],
)
def test_a_wrong_setting_is_called_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    url = {"FARM_URL": "http://127.0.0.1:1"} if variables else {}
    for name, value in (url | variables).items():
        monkeypatch.setenv(name, value)
    ended = CliRunner().invoke(app, ["run"])
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert "Errno" not in ended.stderr
