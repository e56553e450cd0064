import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from farm.cli import app, destinations
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError

JOB = """
name: one
steps:
  - goto: https://shop.example/
  - extract: {fields: {title: h1}}
"""
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FARM_URL", "FARM_TOKEN", "FARM_TOKEN_FILE", "FARM_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def farm(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "missing.yaml"],
        ["run", "job.yaml", "--param", "no-equals-sign"],
        ["run", "job.yaml", "--slow-mo", "-1"],
        ["run", "job.yaml", "--no-such-option"],
        ["up", "--agents", "0"],
        ["up", "--port", "70000"],
        ["up", "--allow", "http://127.0.0.1:8000"],
        ["run", "job.yaml", "--allow", ""],
        ["run", "job.yaml", "-o", "job.yaml/out"],
        ["jobs", "list", "--token", "t", "--url", "127.0.0.1:8700"],
        ["jobs", "resolve", "x", "--as", "perhaps"],
        ["token", "create", "--scope", "everything"],
        ["no-such-command"],
    ],
)
def test_a_wrong_command_line_is_said_on_stderr_and_starts_nothing(
    here: Path, arguments: list[str]
) -> None:
    result = farm(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert result.stderr != ""


def test_a_wrong_job_file_is_refused_before_anything_starts(here: Path) -> None:
    (here / "job.yaml").write_text(JOB.replace("extract:", "extrakt:"))
    result = farm("run", "job.yaml", "-o", "out")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr.count("unknown verb") == 1
    assert "did you mean extract?" in result.stderr
    assert not (here / "out").exists()


def test_a_folder_with_something_in_it_is_refused(here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / "notes.txt").write_text("mine")
    result = farm("run", "job.yaml", "-o", "out")
    assert result.exit_code == ExitCode.USAGE
    assert "--force" in result.stderr
    assert [path.name for path in (here / "out").iterdir()] == ["notes.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused_even_with_force(here: Path) -> None:
    (here / "out").write_text("mine")
    result = farm("run", "job.yaml", "-o", "out", "--force")
    assert result.exit_code == ExitCode.USAGE
    assert (here / "out").read_text() == "mine"


@pytest.mark.parametrize("allowed", ["localhost", "shop:80", "127.0.0.1:8000", "10.0.0.0/8"])
@pytest.mark.parametrize("more", ["[::1]:8000", "::1", "fd00::/8", "Shop.Example."])
def test_hosts_ports_and_networks_can_be_allowed(allowed: str, more: str) -> None:
    assert destinations.checked((allowed, more)) == (allowed, more)


@pytest.mark.parametrize(
    "wrong", ["", " ", "http://x:1", "x/y", "x:y", "x:70000", "x:0", "a b", "u@x", "x?y", "[::1"]
)
def test_what_no_page_could_reach_can_t_be_allowed(wrong: str) -> None:
    with pytest.raises(CommandError):
        destinations.checked((wrong,))


def test_without_a_farm_the_way_to_start_one_is_said(here: Path) -> None:
    result = farm("jobs", "list")
    assert result.exit_code == ExitCode.NO_FARM
    assert "farm up" in result.stderr
    assert result.stdout == ""


def test_a_farm_that_does_not_answer_has_its_own_code(here: Path) -> None:
    result = farm("agents", "--url", NOWHERE, "--token", "x")
    assert result.exit_code == ExitCode.NO_FARM
    assert NOWHERE in result.stderr


def test_the_farm_and_its_token_are_found_in_the_data_directory(here: Path) -> None:
    data = here / "data"
    data.mkdir()
    (data / "farm.json").write_text(json.dumps({"url": NOWHERE, "pid": 1}))
    result = farm("agents", "--data-dir", "data")
    assert "admin.token" in result.stderr
    (data / "admin.token").write_text("secret\n")
    result = farm("agents", "--data-dir", "data")
    assert result.exit_code == ExitCode.NO_FARM
    assert NOWHERE in result.stderr
    assert "secret" not in result.output


def test_a_damaged_farm_file_is_named(here: Path) -> None:
    (here / ".farm").mkdir()
    (here / ".farm" / "farm.json").write_text("[]")
    result = farm("jobs", "list", "--token", "x")
    assert result.exit_code == ExitCode.NO_FARM
    assert "farm.json" in result.stderr


def test_csv_and_json_exclude_each_other(here: Path) -> None:
    result = farm("jobs", "items", "x", "--csv", "--json", "--url", NOWHERE, "--token", "x")
    assert result.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("value", [("FARM_PROT", "1"), ("FARM_PORT", "many")])
def test_a_setting_that_is_wrong_stops_the_start_and_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch, value: tuple[str, str]
) -> None:
    monkeypatch.setenv(*value)
    result = farm("serve")
    assert result.exit_code == ExitCode.USAGE
    assert "port" in result.stderr.lower()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (("FARM_REDIS__URL", "http://x"), "FARM_REDIS__URL: begins with one of redis://"),
        (("FARM_REDIS__SHARD", "a b"), "FARM_REDIS__SHARD: has 1 to 64 of: letters, digits, _ . -"),
        (("FARM_LINK__WINDOW_S", "0"), "FARM_LINK__WINDOW_S: should be more than 0"),
    ],
)
def test_what_a_setting_may_be_is_said_in_words(
    here: Path, monkeypatch: pytest.MonkeyPatch, value: tuple[str, str], said: str
) -> None:
    monkeypatch.setenv(*value)
    assert said in farm("serve").stderr


def test_the_version_is_data(here: Path) -> None:
    result = farm("--version")
    assert result.exit_code == ExitCode.SUCCEEDED
    assert result.stdout.startswith("tabfarm")
