"""Where a coordinator keeps files, by its settings."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from farm.config import ArtifactSettings, Settings
from farm.errors import InvalidInputError, StoreUnavailableError
from farm.main.files import artifacts_of
from tests.stores import bucket_server
from tests.stores.bucket_server import Server
from tests.stores.conftest import s3, s3_server
from tests.stores.test_artifacts import MB, content, kept

__all__ = ["s3", "s3_server"]


def settings(folder: Path, **artifacts: object) -> Settings:
    return Settings(data_dir=folder, artifacts=ArtifactSettings.model_validate(artifacts))


async def test_they_are_in_the_data_directory_unless_something_else_is_said(tmp_path: Path) -> None:
    key, _, _ = await kept(await artifacts_of(settings(tmp_path)), b"x")
    assert (tmp_path / "artifacts" / key).read_bytes() == b"x"
    key, _, _ = await kept(await artifacts_of(settings(tmp_path, dir=tmp_path / "o")), b"y")
    assert (tmp_path / "o" / key).read_bytes() == b"y"


async def test_in_a_bucket_nothing_is_on_the_disk_nor_left_of_the_trial(
    tmp_path: Path, s3: Server
) -> None:
    url = s3.new()
    store = await artifacts_of(settings(tmp_path, url=url, allow_http=True))
    assert s3.keys(url) == []
    key, _, _ = await kept(store, bytes(6 * MB))
    assert await content(store, key) == bytes(6 * MB)
    assert s3.keys(url) == [f"some/where/{key}"]
    assert list(tmp_path.iterdir()) == []


async def test_a_bucket_that_is_not_there_is_refused(tmp_path: Path, s3: Server) -> None:
    with pytest.raises(
        StoreUnavailableError, match=r"s3://none.*FARM_ARTIFACTS__URL.*NoSuchBucket"
    ):
        await artifacts_of(settings(tmp_path, url="s3://none", allow_http=True))


async def test_without_tls_it_is_spoken_to_only_where_that_is_asked_for(
    tmp_path: Path, s3: Server
) -> None:
    url = s3.new()
    with pytest.raises(StoreUnavailableError, match="FARM_ARTIFACTS__ALLOW_HTTP"):
        await artifacts_of(settings(tmp_path, url=url))
    assert s3.keys(url) == []


@pytest.fixture
def strict(s3: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with bucket_server.running() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


async def test_a_wrong_key_is_refused(tmp_path: Path, strict: Server) -> None:
    url = strict.new()
    strict.check_keys()
    with pytest.raises(StoreUnavailableError, match=r"AWS_ACCESS_KEY_ID.*InvalidAccessKeyId"):
        await artifacts_of(settings(tmp_path, url=url, allow_http=True))


async def test_a_store_that_does_not_answer_is_refused(tmp_path: Path, strict: Server) -> None:
    url = strict.new()
    strict.stop()
    with pytest.raises(StoreUnavailableError, match=r"did not answer within 0\.5 s|HTTP error"):
        await artifacts_of(settings(tmp_path, url=url, allow_http=True, answer_s=0.5))


async def test_without_the_extra_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.split(".")[0] == "obstore" or name == "farm.stores.artifacts.bucket":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(InvalidInputError, match=r"tabfarm\[s3\]"):
        await artifacts_of(settings(tmp_path, url="s3://bucket"))


@pytest.mark.parametrize(
    "url",
    ["bucket", "https://bucket", "s3://", "s3://bucket/../up", "s3://bucket//a", "s3://b/a?b"],
)
def test_what_names_no_bucket_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValidationError, match="url"):
        settings(tmp_path, url=url)


def test_a_directory_and_a_bucket_are_not_both_set(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="not both"):
        settings(tmp_path, url="s3://bucket", dir=tmp_path)
