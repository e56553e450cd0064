"""Finding a browser: in order, by launching it, and with an account of what was tried."""

import json
import os
import shutil
from pathlib import Path

import pytest

from agent.chromium import trial
from agent.chromium.discovery import Found, Kind, find, kind_of
from agent.chromium.features import arguments, disabled_by
from agent.chromium.installing import install, recipes, system_id
from agent.ports import BrowserUnavailable


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing is to be found yet."""
    (tmp_path / "bin").mkdir()
    return {"PATH": f"{tmp_path}/bin", "HOME": str(tmp_path)}


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def real(folder: Path, name: str, executable: str) -> Path:
    """A stand-in that works, at a path of ours."""
    path = f"PATH='{os.environ['PATH']}'"
    return script(folder, name, f"export {path}; exec '{executable}' \"$@\"")


async def test_nothing_to_be_found_names_what_was_searched_and_what_would_help(
    env: dict[str, str],
) -> None:
    with pytest.raises(BrowserUnavailable) as caught:
        await find(headless=True, env=env)
    text = str(caught.value)
    for word in ("Playwright's own", "chromium-headless-shell", "google-chrome", "`make`"):
        assert word in text


@pytest.mark.browser
async def test_what_does_not_launch_is_passed_over_and_named(
    env: dict[str, str], tmp_path: Path, full_browser: Found
) -> None:
    broken = script(tmp_path / "bin", "chromium-headless-shell", "echo it is broken >&2; exit 3")
    works = real(tmp_path / "bin", "chromium", full_browser.executable)
    found = await find(headless=True, env=env)
    assert found.executable == str(works)
    assert found.kind is Kind.FULL
    assert found.disabled
    works.unlink()
    with pytest.raises(BrowserUnavailable) as caught:
        await find(headless=True, env=env)
    assert str(broken) in str(caught.value)
    assert "it is broken" in str(caught.value)


@pytest.mark.browser
async def test_playwrights_own_come_first_and_a_shell_before_a_full_browser(
    env: dict[str, str], tmp_path: Path, headless_browser: Found
) -> None:
    real(tmp_path / "bin", "chromium-headless-shell", headless_browser.executable)
    own = tmp_path / ".cache" / "ms-playwright"
    shell = "chromium_headless_shell-{}/chrome-headless-shell-linux64/chrome-headless-shell"
    real(own, "chromium-9/chrome-linux64/chrome", headless_browser.executable)
    real(own, shell.format(9), headless_browser.executable)
    newest = real(own, shell.format(10), headless_browser.executable)
    found = await find(headless=True, env=env)
    assert found.executable == str(newest)
    assert found.kind is Kind.SHELL
    headed = await find(headless=False, env=env)
    assert headed.executable.endswith("chromium-9/chrome-linux64/chrome")


@pytest.mark.browser
async def test_what_worked_is_believed_until_its_file_changes(
    env: dict[str, str], tmp_path: Path, headless_browser: Found
) -> None:
    path = real(tmp_path / "bin", "chromium-headless-shell", headless_browser.executable)
    assert (await find(headless=True, env=env)).executable == str(path)
    before = path.stat()
    path.write_text("#!/bin/sh\nexit 3\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (await find(headless=True, env=env)).executable == str(path)
    os.utime(path)
    with pytest.raises(BrowserUnavailable):
        await find(headless=True, env=env)


@pytest.mark.browser
@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}'])
async def test_a_spoilt_memory_is_no_harm(
    env: dict[str, str], tmp_path: Path, headless_browser: Found, content: str
) -> None:
    memory = tmp_path / ".cache" / "tabfarm" / "browsers.json"
    memory.parent.mkdir(parents=True)
    memory.write_text(content)
    real(tmp_path / "bin", "chromium-headless-shell", headless_browser.executable)
    await find(headless=True, env=env)
    assert any("chromium-headless-shell" in key for key in json.loads(memory.read_text()))


@pytest.mark.parametrize("by", ["argument", "setting"])
async def test_what_was_set_and_does_not_work_is_an_error_without_a_fallback(
    env: dict[str, str], tmp_path: Path, by: str
) -> None:
    script(tmp_path / "bin", "chromium", "exit 3")
    wanted = str(script(tmp_path, "mine", "exit 3"))
    if by == "setting":
        env["AGENT_BROWSER"] = wanted
    with pytest.raises(BrowserUnavailable) as caught:
        await find(headless=True, executable=wanted if by == "argument" else None, env=env)
    assert wanted in str(caught.value)
    assert "bin/chromium" not in str(caught.value)


async def test_a_shell_cannot_be_set_for_windows(env: dict[str, str], tmp_path: Path) -> None:
    shell = script(tmp_path, "chrome-headless-shell", "exit 3")
    with pytest.raises(BrowserUnavailable, match="windows"):
        await find(headless=False, executable=str(shell), env=env)


async def test_a_missing_library_is_named_with_the_command_that_brings_it(
    env: dict[str, str], tmp_path: Path
) -> None:
    error = "error while loading shared libraries: libnss3.so: cannot open shared object file"
    script(tmp_path / "bin", "chromium", f"echo '$0: {error}: No such file' >&2; exit 127")
    with pytest.raises(BrowserUnavailable, match="sudo apt-get install -y libnss3"):
        await find(headless=False, env=env)


def test_an_unknown_missing_library_is_named_all_the_same() -> None:
    text = "[err] x: error while loading shared libraries: libodd.so.9: cannot open"
    assert trial.explain(text, "/nonexistent") == "system libraries are missing: libodd.so.9"


def test_kinds_are_told_by_name(tmp_path: Path) -> None:
    assert kind_of("/usr/bin/chromium-headless-shell") is Kind.SHELL
    assert kind_of("/x/headless_shell") is Kind.SHELL
    assert kind_of("/usr/bin/google-chrome") is Kind.FULL
    link = tmp_path / "browser"
    link.symlink_to("/x/chrome-headless-shell")
    assert kind_of(str(link)) is Kind.SHELL


def test_a_browser_with_windows_tells_no_server_what_forms_it_sees() -> None:
    (features,) = [a for a in arguments(shell=False, disabled=()) if "disable-features" in a]
    assert "AutofillServerCommunication" in features


def test_the_last_list_of_features_repeats_the_one_before() -> None:
    started = ["chrome", "--disable-features=A", "--disable-features=B,C", "--x"]
    assert disabled_by(started) == ("B", "C")
    (last,) = [a for a in arguments(shell=False, disabled=("B", "C")) if "disable-features" in a]
    assert last.startswith("--disable-features=B,C,")
    assert not any("disable-features" in a for a in arguments(shell=True, disabled=("B",)))


@pytest.mark.parametrize("system", ["debian", "ubuntu", "fedora", ""])
def test_distribution_packages_are_tried_on_debian_by_root_alone(system: str) -> None:
    for root in (True, False):
        commands = [" ".join(command) for command in recipes(root=root, system=system)]
        assert any("playwright install" in command for command in commands)
        assert any("apt-get" in c for c in commands) == (root and system == "debian")
        assert any("--with-deps" in c for c in commands) == root


def test_the_system_is_read_from_its_release_file(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text('NAME="X"\nVERSION_ID="1"\nID="debian"\nID_LIKE=y\n')
    assert system_id(release) == "debian"
    assert system_id(tmp_path / "none") == ""


@pytest.mark.browser
async def test_installing_does_nothing_where_a_browser_works(
    env: dict[str, str], tmp_path: Path, headless_browser: Found
) -> None:
    works = real(tmp_path / "bin", "chromium-headless-shell", headless_browser.executable)
    assert (await install(headed=False, env=env)).executable == str(works)
    assert shutil.which("playwright", path=env["PATH"]) is None


async def test_where_the_sandbox_is_demanded_it_is_named_as_what_is_missing(
    env: dict[str, str], tmp_path: Path
) -> None:
    script(tmp_path / "bin", "chromium", "exit 3")
    with pytest.raises(BrowserUnavailable) as caught:
        await find(headless=False, env=env, sandbox=True)
    text = str(caught.value)
    assert "AGENT_SANDBOX=1 demands it" in text
    assert ("run the agent as another user" in text) == (os.geteuid() == 0)
    assert "`make`" not in text
