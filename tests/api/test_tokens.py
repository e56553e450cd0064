"""What tokens are made for, and by whom."""

from collections.abc import Mapping
from typing import Any

import pytest

from farm.core.admission import UNBOUNDED, Bounds
from farm.core.model import Namespace
from tests.api.stack import Stack

SHOP = Namespace("shop")


async def make(stack: Stack, body: Mapping[str, Any], secret: str = "") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {secret}"} if secret else stack.as_admin()
    async with stack.http.post(
        f"{stack.url}/v1/tokens", json={"name": "x", **body}, headers=headers
    ) as response:
        return response.status, await response.json()


async def admin_of(stack: Stack, namespace: Namespace) -> str:
    _, secret = await stack.tokens.add(scope="admin", namespace=namespace, name="x")
    return secret


async def test_an_enrolment_token_carries_its_bounds(stack: Stack) -> None:
    await stack.namespaces.create(SHOP)
    status, made = await make(
        stack,
        {
            "scope": "agent",
            "namespaces": ["shop", "default"],
            "task_queues": ["fast"],
            "nodes": ["rack-1"],
            "metadata": {"region": ["eu", 1], "free": None},
        },
    )
    assert (status, made["namespaces"]) == (201, ["default", "shop"])
    bearer = await stack.tokens.principal(made["token"])
    assert bearer is not None
    assert bearer.namespaces == {"shop", "default"}
    assert bearer.bounds == Bounds(
        namespaces=frozenset({SHOP, Namespace("default")}),
        task_queues=frozenset({"fast"}),
        nodes=frozenset({"rack-1"}),
        metadata={"region": ["eu", 1], "free": None},
    )


async def test_tokens_are_listed_with_what_they_are_for_until_revoked(stack: Stack) -> None:
    await stack.namespaces.create(SHOP)
    bounds = {"task_queues": ["fast"], "nodes": ["rack-1"], "metadata": {"region": ["eu", 1]}}
    _, made = await make(stack, {"scope": "agent", "namespaces": ["shop"], **bounds})
    shop = await admin_of(stack, SHOP)

    async def listed(secret: str = "") -> list[dict[str, Any]]:
        headers = {"Authorization": f"Bearer {secret}"} if secret else stack.as_admin()
        async with stack.http.get(f"{stack.url}/v1/tokens", headers=headers) as response:
            found: list[dict[str, Any]] = (await response.json())["items"]
        return found

    found = next(one for one in await listed() if one["id"] == made["id"])
    assert found == {key: value for key, value in made.items() if key != "token"}
    assert {key: found[key] for key in bounds} == bounds
    # Who is of one namespace sees what was made in it, and so what may be revoked.
    assert {one["namespace"] for one in await listed(shop)} == {"shop"}
    assert {one["namespace"] for one in await listed()} == {"default", "shop"}
    await stack.tokens.revoke(made["id"])
    assert made["id"] not in {one["id"] for one in await listed()}


async def test_a_token_without_bounds_is_for_the_namespace_of_who_asks(stack: Stack) -> None:
    _, made = await make(stack, {"scope": "agent"})
    bearer = await stack.tokens.principal(made["token"])
    assert bearer is not None
    assert bearer.namespaces == {"default"}
    assert bearer.bounds == UNBOUNDED


async def test_a_token_of_a_namespace_that_is_not_there_is_not_made(stack: Stack) -> None:
    for scope in ("agent", "admin"):
        assert (await make(stack, {"scope": scope, "namespaces": ["shop"]}))[0] == 404
    assert [record.name for record in await stack.namespaces.all()] == ["default"]


async def test_an_admin_of_another_namespace_is_made_by_the_operator_only(stack: Stack) -> None:
    await stack.namespaces.create(SHOP)
    status, made = await make(stack, {"scope": "admin", "namespaces": ["shop"]})
    assert (status, made["namespace"]) == (201, "shop")
    for scope in ("agent", "admin"):
        wanted = {"scope": scope, "namespaces": ["default"]}
        assert (await make(stack, wanted, made["token"]))[0] == 403
        own = {"scope": scope, "namespaces": ["shop"]}
        assert (await make(stack, own, made["token"]))[0] == 201


@pytest.mark.parametrize(
    "body",
    [
        {"scope": "admin", "nodes": ["rack-1"]},
        {"scope": "admin", "namespaces": ["default", "shop"]},
        {"scope": "agent", "namespaces": []},
        {"scope": "agent", "namespaces": ["a b"]},
        {"scope": "agent", "nodes": []},
        {"scope": "agent", "task_queues": [""]},
    ],
)
async def test_bounds_that_mean_nothing_are_not_taken(
    stack: Stack, body: Mapping[str, Any]
) -> None:
    assert (await make(stack, body))[0] == 422


async def test_a_token_is_revoked_where_it_was_made_or_by_the_operator(stack: Stack) -> None:
    await stack.namespaces.create(SHOP)
    _, made = await make(stack, {"scope": "agent"})
    for namespace, status in ((SHOP, 404), (Namespace("default"), 204)):
        headers = {"Authorization": f"Bearer {await admin_of(stack, namespace)}"}
        async with stack.http.delete(
            f"{stack.url}/v1/tokens/{made['id']}", headers=headers
        ) as response:
            assert response.status == status
