"""What a coordinator is told by files, by its settings."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.api.auth import TokenBook
from farm.clock import system_clock
from farm.config import Settings
from farm.errors import InvalidInputError
from farm.main.keys import keyring_of, preset_agent_token
from farm.stores.ledger import SqliteDatabase, SqlLedger


@pytest.fixture
async def tokens(tmp_path: Path) -> AsyncIterator[TokenBook]:
    ledger = SqlLedger(SqliteDatabase(tmp_path / "farm.db"))
    await ledger.open()
    try:
        yield TokenBook(ledger, system_clock)
    finally:
        await ledger.close()


def settings(folder: Path, **files: Path) -> Settings:
    return Settings.model_validate({"data_dir": folder, **files})


async def test_who_has_the_token_of_the_file_is_let_in(tmp_path: Path, tokens: TokenBook) -> None:
    (tmp_path / "token").write_text("tf_agents\n")
    await preset_agent_token(settings(tmp_path, agent_token_file=tmp_path / "token"), tokens)
    principal = await tokens.principal("tf_agents")
    assert principal is not None
    assert principal.scope == "agent"


async def test_a_token_file_that_has_none_is_refused_by_the_name_of_its_setting(
    tmp_path: Path, tokens: TokenBook
) -> None:
    missing = settings(tmp_path, agent_token_file=tmp_path / "none")
    with pytest.raises(InvalidInputError, match=r"FARM_AGENT_TOKEN_FILE=\S*none can't be read"):
        await preset_agent_token(missing, tokens)
    (tmp_path / "empty").write_text("\n")
    empty = settings(tmp_path, agent_token_file=tmp_path / "empty")
    with pytest.raises(InvalidInputError, match=r"FARM_AGENT_TOKEN_FILE=\S*empty is empty"):
        await preset_agent_token(empty, tokens)


def test_a_key_file_that_cannot_be_read_is_refused_by_the_name_of_its_setting(
    tmp_path: Path,
) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xd8")
    for name, why in (("none", "No such file"), ("picture", "it is no text")):
        with pytest.raises(InvalidInputError, match=rf"FARM_IDENTITY_KEY_FILE=\S*{name} .*{why}"):
            keyring_of(settings(tmp_path, identity_key_file=tmp_path / name))
