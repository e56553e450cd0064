from collections.abc import Mapping
from typing import Any

import pytest

from farm.core.model import Namespace
from tests.api.stack import Stack


async def ask(
    stack: Stack, method: str, path: str, body: Mapping[str, Any] | None = None, secret: str = ""
) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {secret}"} if secret else stack.as_admin()
    async with stack.http.request(
        method, f"{stack.url}/v1/namespaces{path}", json=body, headers=headers
    ) as response:
        return response.status, await response.json()


async def test_a_namespace_is_made_once_and_listed(stack: Stack) -> None:
    status, made = await ask(stack, "POST", "", {"name": "shop"})
    assert (status, made["name"], made["origin"], made["placement"]) == (
        201,
        "shop",
        "explicit",
        "unplaced",
    )
    assert (await ask(stack, "POST", "", {"name": "shop"})) == (200, made)
    _, listed = await ask(stack, "GET", "")
    assert [(one["name"], one["origin"]) for one in listed["items"]] == [
        ("default", "start_mint"),
        ("shop", "explicit"),
    ]


@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 65, "a/b", "ä"])
async def test_a_name_that_is_none_is_not_taken(stack: Stack, name: str) -> None:
    status, problem = await ask(stack, "POST", "", {"name": name})
    assert status == 422
    assert "begins with a letter or digit" in problem["errors"][0]["detail"]


async def test_a_placement_is_changed_told_and_wakes_the_dispatcher(stack: Stack) -> None:
    await ask(stack, "POST", "", {"name": "shop"})
    woken = stack.dispatcher.woken
    body = {"placement": "pinned", "labels": ["eu-2", "eu-1"]}
    status, placed = await ask(stack, "PUT", "/shop/placement", body)
    assert (status, placed["placement"], placed["labels"]) == (200, "pinned", ["eu-1", "eu-2"])
    assert stack.told[-1][:2] == ("placement_changed", "shop")
    assert stack.dispatcher.woken == woken + 1
    assert (await ask(stack, "PUT", "/nothing/placement", body))[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        {"placement": "somewhere"},
        {"placement": "prefer"},
        {"placement": "unplaced", "labels": ["x"]},
        {"placement": "pinned", "labels": [""]},
    ],
)
async def test_a_placement_that_means_nothing_is_not_taken(
    stack: Stack, body: Mapping[str, Any]
) -> None:
    assert (await ask(stack, "PUT", "/default/placement", body))[0] == 422


async def test_an_admin_of_another_namespace_sees_its_own_and_changes_none(stack: Stack) -> None:
    await ask(stack, "POST", "", {"name": "shop"})
    _, secret = await stack.tokens.add(scope="admin", namespace=Namespace("shop"), name="x")
    _, listed = await ask(stack, "GET", "", secret=secret)
    assert [one["name"] for one in listed["items"]] == ["shop"]
    assert (await ask(stack, "POST", "", {"name": "more"}, secret))[0] == 403
    body = {"placement": "unplaced"}
    assert (await ask(stack, "PUT", "/shop/placement", body, secret))[0] == 403
