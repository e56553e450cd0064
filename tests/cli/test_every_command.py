"""What holds for every command, those to come included."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from farm.cli import app

WITHOUT_DATA = {"farm up", "farm serve"}
"""Commands that have nothing to write on stdout."""


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for part, inner in command.commands.items():
        yield from _commands(inner, f"{name} {part}")


COMMANDS = dict(_commands(typer.main.get_command(app), "farm"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does_and_what_its_options_mean(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    options = [param for param in command.params if param.param_type_name == "option"]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_DATA))
def test_a_command_with_data_can_write_json(name: str) -> None:
    assert any("--json" in param.opts for param in COMMANDS[name].params)
