"""The doctor says what is there, and what would help where something is missing."""

import json
import os
from pathlib import Path

import pytest

from agent.doctor import examine


@pytest.mark.browser
async def test_a_machine_that_is_well_has_no_problems(chromium_executable: str) -> None:
    found = await examine(env=os.environ)
    assert found.problems == ()
    assert found.executable == chromium_executable
    assert found.product
    assert found.round_trip_ms is not None
    assert found.round_trip_ms > 0
    assert any(chromium_executable in line for line in found.lines())
    assert json.loads(json.dumps(found.as_dict()))["executable"] == chromium_executable


async def test_a_machine_without_a_browser_says_what_would_help(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    found = await examine(env=env)
    assert found.executable is None
    assert found.headed is None
    assert not found.ok
    assert any(line.startswith("problem: ") for line in found.lines())
    (problem,) = found.problems
    assert "farm doctor --install" in problem
    assert any("xvfb" in note for note in found.notes)


async def test_what_flows_have_is_told_with_and_without_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "console" / "package"))
    found = await examine(env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert found.flows.startswith("turbohtml ")
    assert "count_links" in found.activities
    assert "count_links" in json.loads(json.dumps(found.as_dict()))["activities"]
    assert any(line.startswith("flows ") for line in found.lines())


async def test_a_setting_that_names_no_executable_is_a_problem(tmp_path: Path) -> None:
    found = await examine(
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "AGENT_BROWSER": "/no"}
    )
    assert any("AGENT_BROWSER=/no" in problem for problem in found.problems)


@pytest.mark.browser
async def test_with_windows_it_looks_at_a_browser_that_has_some(chromium_executable: str) -> None:
    found = await examine(env={k: v for k, v in os.environ.items() if k != "DISPLAY"}, headed=True)
    if found.headed is None and not os.environ.get("CI"):
        pytest.skip("; ".join(found.problems))
    assert found.problems == ()
    assert found.kind == "full"
    assert found.headed == "xvfb"
