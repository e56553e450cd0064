"""Agents that are told to leave, or taken off the register."""

from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from farm.clock import system_clock
from farm.core.model import (
    Assignment,
    Client,
    ClientId,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Snapshot,
)
from farm.core.reservation import Denial
from farm.errors import ClientAbsentError, ForbiddenError
from farm.manager.leaving import Left
from farm.protocol import messages as wire
from tests.api.stack import DEFAULT, Stack
from tests.stores.pool import TIMEOUT_S, hello, registered, reported, request

OTHER = Namespace("other")
A, B, C = ClientId("a"), ClientId("b"), ClientId("c")


async def connected(stack: Stack, client_id: str = "a", **changes: Any) -> list[wire.ToAgent]:
    """Let an agent in that has one idle tab; return what it is sent."""
    link = LinkId(f"link-{client_id}")
    sent: list[wire.ToAgent] = []

    async def receive(message: wire.ToAgent) -> None:
        sent.append(message)

    said = hello(client_id, link=link, **{"namespaces": (DEFAULT,), **changes})
    client = await registered(stack.registry, said, now=system_clock())
    await reported(stack.registry, "T1", client=client, link=link, now=system_clock())
    await stack.node.attach(client.client_id, link, receive)
    return sent


async def known(stack: Stack, client_id: ClientId = A) -> Client | None:
    found = (await stack.registry.snapshot(now=system_clock())).clients
    return next((client for client in found if client.client_id == client_id), None)


async def take(stack: Stack, client_id: ClientId = A) -> Any:
    return await stack.registry.assign(
        request(), client_id, ContextId("T1"), now=system_clock(), timeout_s=TIMEOUT_S
    )


async def post(stack: Stack, path: str, body: Any = None) -> tuple[int, Any]:
    async with stack.http.post(
        f"{stack.url}/v1/agents/{path}", json=body, headers=stack.as_admin()
    ) as response:
        return response.status, await response.json()


async def agents(stack: Stack) -> Sequence[Any]:
    async with stack.http.get(f"{stack.url}/v1/agents", headers=stack.as_admin()) as response:
        found: Sequence[Any] = (await response.json())["items"]
        return found


async def test_a_drained_agent_is_fenced_told_and_shown_with_who_asked(stack: Stack) -> None:
    sent = await connected(stack)
    assert await post(stack, "a/drain") == (202, {"client_id": "a", "outcome": "draining"})
    assert sent == [wire.Drain(deadline_s=60.0)]
    assert await take(stack) is Denial.NOT_READY
    (shown,) = await agents(stack)
    assert shown["draining"]
    assert shown["drain"]["by"] == "admin"


async def test_it_is_fenced_before_it_is_told(stack: Stack) -> None:
    seen: list[bool] = []

    async def receive(message: wire.ToAgent) -> None:
        client = await known(stack)
        seen.append(client is not None and client.draining)

    await connected(stack)
    await stack.node.attach(A, LinkId("link-a"), receive)
    await post(stack, "a/drain")
    assert seen == [True]


async def test_drained_again_it_is_told_again(stack: Stack) -> None:
    sent = await connected(stack)
    await post(stack, "a/drain", {"deadline_s": 9})
    assert (await post(stack, "a/drain", {"deadline_s": 5}))[1]["outcome"] == "draining"
    assert sent == [wire.Drain(deadline_s=9.0), wire.Drain(deadline_s=5.0)]


async def test_what_a_drained_agent_holds_it_goes_on_holding(stack: Stack) -> None:
    await connected(stack)
    held = await take(stack)
    await post(stack, "a/drain")
    assert await stack.registry.holds(A, held.context_id, held.token)


async def test_who_is_not_known_can_not_be_drained_or_removed(stack: Stack) -> None:
    assert (await post(stack, "nobody/drain"))[0] == 404
    assert await stack.leaving.drain(None, ClientId("nobody"), by="x") is Left.UNKNOWN
    assert await stack.leaving.remove(None, ClientId("nobody"), by="x") is Left.UNKNOWN


async def test_who_can_not_be_told_is_deregistered_after_an_error_that_names_it(
    stack: Stack,
) -> None:
    await connected(stack, deployment="v1", node="rack-2")
    await stack.node.detach(A, LinkId("link-a"))
    with capture_logs() as logs:
        assert await post(stack, "a/drain") == (202, {"client_id": "a", "outcome": "deregistered"})
    (error,) = [entry for entry in logs if entry["log_level"] == "error"]
    named = {"client_id": "a", "instance": "process-a", "deployment": "v1", "node": "rack-2"}
    assert named.items() <= error.items()
    assert await known(stack) is None
    assert stack.ended == [A]


async def test_a_link_that_takes_nothing_more_is_no_way_to_tell(stack: Stack) -> None:
    async def receive(message: wire.ToAgent) -> None:
        raise ClientAbsentError("it has stopped reading")

    await connected(stack)
    await stack.node.attach(A, LinkId("link-a"), receive)
    assert (await post(stack, "a/drain"))[1]["outcome"] == "deregistered"


async def test_what_an_agent_holds_that_can_not_be_told_is_not_taken_for_dead(
    stack: Stack,
) -> None:
    await connected(stack)
    held = await take(stack)
    await stack.node.detach(A, LinkId("link-a"))
    assert (await post(stack, "a/drain"))[1]["outcome"] == "disconnected"
    client = await known(stack)
    assert client is not None
    assert client.link is None
    assert await stack.registry.holds(A, held.context_id, held.token)


async def test_all_are_fenced_before_the_first_is_told(stack: Stack) -> None:
    fenced: list[bool] = []

    async def receive(message: wire.ToAgent) -> None:
        for client_id in (A, B):
            client = await known(stack, client_id)
            fenced.append(client is not None and client.draining)

    for client_id in ("a", "b"):
        await connected(stack, client_id)
        await stack.node.attach(ClientId(client_id), LinkId(f"link-{client_id}"), receive)
    status, left = await post(stack, "drain", {"all": True})
    assert status == 202
    assert {one["client_id"]: one["outcome"] for one in left["items"]} == {
        "a": "draining",
        "b": "draining",
    }
    assert fenced == [True] * 4


async def test_one_that_leaves_before_its_turn_is_unknown_and_told_nothing(stack: Stack) -> None:
    async def receive(message: wire.ToAgent) -> None:
        other = await known(stack, B)
        assert other is not None
        await stack.registry.remove(B, epoch=other.epoch)

    await connected(stack, "a")
    await stack.node.attach(A, LinkId("link-a"), receive)
    sent = await connected(stack, "b")
    left = await stack.leaving.drain_all(None, lambda _: True, by="anna")
    assert left == {A: Left.DRAINING, B: Left.UNKNOWN}
    assert sent == []


@pytest.mark.parametrize(
    ("wanted", "drained"),
    [
        ({"deployment": "v1"}, ["a", "b"]),
        ({"node": "rack-1"}, ["a", "c"]),
        ({"queue": "fast"}, ["c"]),
        ({"queue": ""}, ["a", "b"]),
        ({"deployment": "v1", "node": "rack-1"}, ["a"]),
        ({"deployment": "v9"}, []),
    ],
)
async def test_agents_are_drained_by_deployment_node_or_queue(
    stack: Stack, wanted: dict[str, str], drained: list[str]
) -> None:
    await connected(stack, "a", deployment="v1", node="rack-1")
    await connected(stack, "b", deployment="v1", node="rack-2")
    await connected(stack, "c", deployment="v2", node="rack-1", task_queue="fast")
    _, left = await post(stack, "drain", wanted)
    assert [one["client_id"] for one in left["items"]] == drained
    assert [one["client_id"] for one in await agents(stack) if one["draining"]] == drained


@pytest.mark.parametrize("wanted", [{}, {"all": True, "node": "x"}, {"all": False}])
async def test_which_agents_are_to_leave_is_said_one_way_or_the_other(
    stack: Stack, wanted: dict[str, Any]
) -> None:
    await connected(stack)
    assert (await post(stack, "drain", wanted))[0] == 422


async def test_a_namespace_lets_no_agent_leave_that_serves_others_too(stack: Stack) -> None:
    await connected(stack, "a", namespaces=(DEFAULT, OTHER))
    await connected(stack, "b", namespaces=(OTHER,))
    _, secret = await stack.tokens.add(scope="admin", namespace=OTHER, name="theirs")
    headers = {"Authorization": f"Bearer {secret}"}
    for method, path, body in (("POST", "a/drain", None), ("DELETE", "a", None)):
        async with stack.http.request(
            method, f"{stack.url}/v1/agents/{path}", json=body, headers=headers
        ) as response:
            assert response.status == 403
    async with stack.http.post(
        f"{stack.url}/v1/agents/drain", json={"all": True}, headers=headers
    ) as response:
        assert [one["client_id"] for one in (await response.json())["items"]] == ["b"]
    async with stack.http.get(f"{stack.url}/v1/agents", headers=headers) as response:
        shown = {one["client_id"]: one["namespaces"] for one in (await response.json())["items"]}
    assert shown == {"a": ["other"], "b": ["other"]}


async def test_a_removed_agent_is_forgotten_and_its_link_ended(stack: Stack) -> None:
    await connected(stack)
    async with stack.http.delete(f"{stack.url}/v1/agents/a", headers=stack.as_admin()) as response:
        assert (response.status, (await response.json())["outcome"]) == (200, "deregistered")
    assert await known(stack) is None
    assert stack.ended == [A]
    async with stack.http.delete(f"{stack.url}/v1/agents/a", headers=stack.as_admin()) as response:
        assert response.status == 404


@pytest.mark.parametrize("reading", [1, 2])
async def test_what_is_lent_while_an_agent_is_removed_is_not_taken_for_dead(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, reading: int
) -> None:
    read = stack.registry.snapshot
    taken: list[Assignment | Denial] = []

    async def read_and_lend(*, now: Instant) -> Snapshot:
        snapshot = await read(now=now)
        taken.append(await take(stack) if len(taken) + 1 == reading else Denial.GONE)
        return snapshot

    await connected(stack)
    monkeypatch.setattr(stack.registry, "snapshot", read_and_lend)
    left = await stack.leaving.remove(None, A, by="anna")
    lent = taken[reading - 1]
    if isinstance(lent, Denial):
        assert left is Left.DEREGISTERED
    else:
        assert left is Left.DISCONNECTED
        assert await stack.registry.holds(A, lent.context_id, lent.token)


async def test_a_busy_agent_that_is_removed_is_out_of_reach_and_holds_what_it_held(
    stack: Stack,
) -> None:
    before = stack.events.last()
    await connected(stack)
    held = await take(stack)
    for _ in range(2):
        async with stack.http.delete(
            f"{stack.url}/v1/agents/a", headers=stack.as_admin()
        ) as response:
            assert (response.status, (await response.json())["outcome"]) == (200, "disconnected")
    assert stack.ended == [A]
    client = await known(stack)
    assert client is not None
    assert client.link is None
    assert await stack.registry.holds(A, held.context_id, held.token)
    told = stack.events.read(DEFAULT, before, limit=10)
    assert told is not None
    # Nothing proves that what it runs has ended, so that is not said.
    assert [(e.kind, e.data["reason"]) for e in told.events] == [
        ("agent_disconnected", "disconnect")
    ]
    await stack.registry.release(A, held.context_id, held.token)
    assert await stack.leaving.remove(DEFAULT, A, by="x") is Left.DEREGISTERED
    assert await known(stack) is None


async def test_a_library_reaches_no_agent_of_another_namespace(stack: Stack) -> None:
    """As over HTTP: one that serves others alone is unknown, one that serves both is theirs too."""
    await connected(stack, "a", namespaces=(DEFAULT, OTHER))
    await connected(stack, "b", namespaces=(OTHER,))
    for call in (stack.leaving.drain, stack.leaving.remove):
        assert await call(DEFAULT, B, by="x") is Left.UNKNOWN
        with pytest.raises(ForbiddenError):
            await call(DEFAULT, A, by="x")
    assert await stack.leaving.drain_all(DEFAULT, lambda _: True, by="x") == {}
    for client_id in (A, B):
        client = await known(stack, client_id)
        assert client is not None
        assert not client.draining
        assert client.link is not None
    assert set(await stack.leaving.drain_all(None, lambda _: True, by="x")) == {A, B}


async def test_drains_are_told_and_counted(stack: Stack) -> None:
    before = stack.events.last()
    await connected(stack, "a")
    await connected(stack, "b")
    await stack.node.detach(B, LinkId("link-b"))
    await post(stack, "drain", {"all": True})
    told = stack.events.read(DEFAULT, before, limit=10)
    assert told is not None
    assert [(e.kind, e.data["client_id"], e.data.get("reason")) for e in told.events] == [
        ("agent_draining", "a", None),
        ("agent_disconnected", "b", "deregistered"),
    ]
    assert told.events[0].data["by"] == "admin"
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as response:
        shown = await response.text()
    assert 'farm_drains_total{outcome="draining"} 1.0' in shown
    assert 'farm_drains_total{outcome="deregistered"} 1.0' in shown
