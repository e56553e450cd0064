"""The wire: what was recorded parses for ever, and newer peers are understood."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from farm.protocol import messages as wire

RECORDED = sorted((Path(__file__).parent / "recorded").glob("v*/*.json"))
ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "from_agent": wire.from_agent,
    "to_agent": wire.to_agent,
}


def _adapter(path: Path) -> TypeAdapter[Any]:
    return ADAPTERS[path.name.partition(".")[0]]


def _kinds(union: Any) -> set[str]:
    schema = TypeAdapter(union).json_schema()
    return set(schema["discriminator"]["mapping"])


def _with_more(value: Any) -> Any:
    """Add a field nobody knows to every message, but not to what is strict or free."""
    if not isinstance(value, dict):
        return [_with_more(v) for v in value] if isinstance(value, list) else value
    free = ("metadata", "items", "value", "options", "steps", "params", "timeouts")
    return {k: v if k in free else _with_more(v) for k, v in value.items()} | {"new_in_v9": [1]}


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_was_recorded_parses_and_loses_nothing(path: Path) -> None:
    text = path.read_text()
    message = _adapter(path).validate_json(text)
    said = json.loads(message.model_dump_json(exclude_none=True, by_alias=True))
    assert _includes(said, json.loads(text))


def _includes(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return all(k in whole and _includes(whole[k], v) for k, v in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(_includes, whole, part))
    return bool(whole == part) and type(whole) is type(part)


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_field_nobody_knows_is_ignored(path: Path) -> None:
    known = json.loads(path.read_text())
    adapter = _adapter(path)
    assert adapter.validate_python(_with_more(known)) == adapter.validate_python(known)


def test_every_kind_of_message_event_and_command_is_recorded() -> None:
    recorded = [json.loads(path.read_text()) for path in RECORDED]
    assert {m["op"] for m in recorded} == _kinds(wire.FromAgent) | _kinds(wire.ToAgent)
    events = {e["event"]["kind"] for m in recorded for e in m.get("entries", ())}
    assert events == _kinds(wire.AttemptEvent)
    bodies = {m["body"]["kind"] for m in recorded if m["op"] == "command"}
    assert bodies == {"open_window", "open_tab", "create_flow", "run", "release", "probe"}


def test_a_step_key_nobody_knows_is_refused() -> None:
    """An agent that passed over part of a step would do something else than was asked for."""
    path = next(p for p in RECORDED if p.stem == "to_agent.run")
    run = json.loads(path.read_text())
    run["body"]["plan"]["steps"][2]["only_if"] = "new"
    with pytest.raises(ValidationError, match="only_if"):
        wire.to_agent.validate_python(run)
    run["body"]["plan"]["steps"][2] = {"type": "dance"}
    with pytest.raises(ValidationError):
        wire.to_agent.validate_python(run)


def test_nulls_in_what_people_say_stay_on_the_wire() -> None:
    said = wire.Items(dataset="d", first=0, items=({"price": None, "more": {"tax": None}},))
    text = said.model_dump_json(exclude_none=True)
    assert json.loads(text)["items"] == [{"price": None, "more": {"tax": None}}]


def test_a_capacity_of_no_jobs_can_be_read_so_that_it_is_refused_by_name() -> None:
    assert wire.Capacity(max_concurrency=0).max_concurrency == 0
    with pytest.raises(ValidationError):
        wire.Capacity(max_concurrency=-1)


@pytest.mark.parametrize("changes", [{"max_windows": 0}, {"max_tabs_per_window": 0}])
def test_a_capacity_of_nothing_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        wire.Capacity(**changes)


@pytest.mark.parametrize("name", ["", "x" * 129])
def test_an_agent_has_a_name_of_a_sensible_length(name: str) -> None:
    with pytest.raises(ValidationError):
        wire.Hello(client_id=name, instance="i", epoch="e")


@pytest.mark.parametrize("name", ["store_epoch", "counter"])
def test_an_agent_cannot_count_the_farms_tokens_to_their_end(name: str) -> None:
    seen = {"store_epoch": 1, "counter": 1, name: 2**63 - 1}
    with pytest.raises(ValidationError):
        wire.Hello.model_validate(
            {"client_id": "a", "instance": "i", "epoch": "e", "highest_token": seen}
        )


@pytest.mark.parametrize("at", ["NaN", "Infinity", "1e308", "-1"])
def test_a_moment_that_is_none_is_refused(at: str) -> None:
    with pytest.raises(ValidationError):
        wire.Entry.model_validate_json(
            f'{{"seq": 1, "at": {at}, "event": {{"kind": "effect_done", "effect_id": "e"}}}}'
        )
