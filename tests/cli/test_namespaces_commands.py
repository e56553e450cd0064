"""`farm namespaces …`, and the bounds of `farm token create`."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.cli.exits import ExitCode
from farm.core.admission import Bounds
from farm.core.model import Namespace
from tests.api.stack import Stack, running
from tests.cli.test_jobs_commands import farm


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as stack:
        yield stack


async def test_a_namespace_is_made_placed_and_listed(stack: Stack) -> None:
    made = await farm(stack, "namespaces", "create", "shop", "--json")
    assert json.loads(made.stdout)["origin"] == "explicit"
    for option, kind in (("--pin", "pinned"), ("--prefer", "prefer")):
        nodes = (option, "eu-2", option, "eu-1")
        placed = await farm(stack, "namespaces", "place", "shop", *nodes, "--json")
        view = json.loads(placed.stdout)
        assert (view["placement"], view["labels"]) == (kind, ["eu-1", "eu-2"])
    listed = await farm(stack, "namespaces", "list")
    assert "shop" in listed.stdout
    assert "prefer" in listed.stdout
    anywhere = await farm(stack, "namespaces", "place", "shop", "--anywhere", "--json")
    assert json.loads(anywhere.stdout)["placement"] == "unplaced"


@pytest.mark.parametrize(
    "options", [(), ("--anywhere", "--pin", "x"), ("--pin", "x", "--prefer", "y")]
)
async def test_a_placement_is_said_in_one_way(stack: Stack, options: tuple[str, ...]) -> None:
    ended = await farm(stack, "namespaces", "place", "default", *options)
    assert ended.exit_code == ExitCode.USAGE


async def test_a_token_is_made_with_bounds(stack: Stack) -> None:
    await stack.namespaces.create(Namespace("shop"))
    options = ("--namespace", "default", "--namespace", "shop", "--queue", "fast", "--node", "n")
    metadata = ("--metadata", "region=eu", "--metadata", "region=us", "--metadata", "disk")
    made = await farm(stack, "token", "create", "--scope", "agent", *options, *metadata)
    assert made.exit_code == ExitCode.SUCCEEDED, made.stderr
    bearer = await stack.tokens.principal(made.stdout.strip())
    assert bearer is not None
    assert bearer.bounds == Bounds(
        namespaces=frozenset({Namespace("default"), Namespace("shop")}),
        task_queues=frozenset({"fast"}),
        nodes=frozenset({"n"}),
        metadata={"region": ["eu", "us"], "disk": None},
    )


async def test_metadata_without_a_key_is_not_taken(stack: Stack) -> None:
    ended = await farm(stack, "token", "create", "--scope", "agent", "--metadata", "=eu")
    assert ended.exit_code == ExitCode.USAGE


async def test_tokens_are_listed_with_what_their_agents_may_be(stack: Stack) -> None:
    bounds = ("--queue", "fast", "--node", "eu-1", "--metadata", "region=eu")
    made = await farm(stack, "token", "create", "--scope", "agent", *bounds, "--json")
    token = json.loads(made.stdout)
    listed = json.loads((await farm(stack, "token", "list", "--json")).stdout)
    assert {key: token[key] for key in token if key != "token"} in listed
    table = (await farm(stack, "token", "list")).stdout
    (line,) = [line for line in table.splitlines() if token["id"] in line]
    assert all(word in line for word in ("agent", "fast", "eu-1", "region"))
    assert token["token"] not in table
    assert (await farm(stack, "token", "revoke", token["id"])).exit_code == ExitCode.SUCCEEDED
    assert token["id"] not in (await farm(stack, "token", "list")).stdout
