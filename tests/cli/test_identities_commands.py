"""`farm identities`: what is secret goes in by a file, and comes out nowhere."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.cli.exits import ExitCode
from tests.api.stack import Stack, running
from tests.api.test_identities import PROXY, SECRETS, STATE
from tests.cli.test_jobs_commands import farm

CONTENT = """
options: {locale: nb-NO, viewport: {width: 800, height: 600}}
proxy: {server: "http://proxy.example:3128", username: us3r-name, password: pr0xy-password}
"""


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as stack:
        yield stack


async def test_an_identity_is_put_shown_listed_and_deleted(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "shopper.yaml").write_text(CONTENT)
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    files = (str(tmp_path / "shopper.yaml"), "--state", str(tmp_path / "state.json"))
    put = await farm(stack, "identities", "put", "shopper", *files)
    shown = await farm(stack, "identities", "show", "shopper", "--json")
    listed = await farm(stack, "identities", "list")
    for ended in (put, shown, listed):
        assert ended.exit_code == ExitCode.SUCCEEDED, ended.stderr
        assert not any(secret in ended.stdout + ended.stderr for secret in SECRETS)
    view = json.loads(shown.stdout)
    assert (view["proxy"]["server"], view["proxy"]["credentials"]) == (PROXY["server"], True)
    assert view["state"]["cookies"] == 1
    assert "shopper" in listed.stdout
    gone = await farm(stack, "identities", "delete", "shopper")
    assert gone.exit_code == ExitCode.SUCCEEDED
    again = await farm(stack, "identities", "show", "shopper")
    assert again.exit_code == ExitCode.FAILED


@pytest.mark.parametrize(
    ("text", "said"),
    [("proxy: {server: 'http://p:1'", "line"), ("[a]", "not a mapping")],
)
async def test_a_file_that_is_none_is_refused_before_anything_is_sent(
    stack: Stack, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "wrong.yaml").write_text(text)
    ended = await farm(stack, "identities", "put", "shopper", str(tmp_path / "wrong.yaml"))
    assert (ended.exit_code, said in ended.stderr) == (ExitCode.USAGE, True), ended.stderr
