"""What is declared to be rolled out, and what agents say they were rolled out as."""

from typing import Any

from tests.api.stack import DEFAULT, Stack
from tests.api.test_leaving import agents, connected


async def ask(stack: Stack, method: str, path: str = "", body: Any = None) -> tuple[int, Any]:
    async with stack.http.request(
        method, f"{stack.url}/v1/deployments{path}", json=body, headers=stack.as_admin()
    ) as response:
        return response.status, await response.json() if response.status != 204 else None


async def test_a_deployment_is_declared_shown_with_its_agents_and_withdrawn(stack: Stack) -> None:
    await connected(stack, "a", deployment="v1")
    await connected(stack, "b", deployment="v2")
    status, made = await ask(stack, "PUT", "/v1", {"queues": ["fast"]})
    assert (status, made["queues"], made["agents"]) == (201, ["fast"], 1)
    assert (await ask(stack, "PUT", "/v1", {}))[0] == 200
    status, shown = await ask(stack, "GET", "/v1")
    assert (status, shown["queues"]) == (200, ["default"])
    assert [one["name"] for one in (await ask(stack, "GET"))[1]["items"]] == ["v1"]
    assert (await ask(stack, "DELETE", "/v1"))[0] == 204
    for method in ("GET", "DELETE"):
        assert (await ask(stack, method, "/v1"))[0] == 404


async def test_an_agent_says_whether_its_deployment_is_known(stack: Stack) -> None:
    await connected(stack, "a", deployment="v1")
    await connected(stack, "b")
    assert [one["association"] for one in await agents(stack)] == ["unchecked", "unchecked"]
    await ask(stack, "PUT", "/v1", {})
    shown = [(one["deployment"], one["association"]) for one in await agents(stack)]
    assert shown == [("v1", "known"), (None, "unknown")]


async def test_a_name_that_is_none_is_refused(stack: Stack) -> None:
    for name in ("-v1", "v%201", "x" * 129):
        assert (await ask(stack, "PUT", f"/{name}", {}))[0] == 422
    assert (await ask(stack, "GET"))[1]["items"] == []


async def test_what_is_declared_is_told(stack: Stack) -> None:
    before = stack.events.last()
    await ask(stack, "PUT", "/v1", {"queues": ["fast"]})
    await ask(stack, "DELETE", "/v1")
    told = stack.events.read(DEFAULT, before, limit=10)
    assert told is not None
    assert [(e.kind, e.data["declared"]) for e in told.events] == [
        ("deployment_changed", True),
        ("deployment_changed", False),
    ]


async def test_what_is_declared_bounds_jobs_at_once_until_it_is_declared_no_more(
    stack: Stack,
) -> None:
    async def submitted(queue: str) -> tuple[int, Any]:
        body = {"name": "j", "steps": [{"goto": "https://example.com/"}], "queue": queue}
        url = f"{stack.url}/v1/jobs"
        async with stack.http.post(url, json=body, headers=stack.as_admin()) as response:
            return response.status, await response.json()

    assert (await submitted("quick"))[0] == 201
    await ask(stack, "PUT", "/v1", {"queues": ["fast", "quicker"]})
    status, refused = await submitted("quick")
    assert status == 422
    (problem,) = refused["errors"]
    assert (problem["pointer"], problem["suggestion"]) == ("/queue", "quicker")
    assert (await submitted("fast"))[0] == 201
    await ask(stack, "DELETE", "/v1")
    assert (await submitted("quick"))[0] == 201
