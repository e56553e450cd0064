"""The evidence of commands over HTTP: read-only, and each namespace its own."""

from typing import Any

from farm.clock import system_clock
from farm.core.commands import Declared, Effect
from farm.core.model import ClientId, LinkId, Namespace
from farm.manager.awaited import SentCommand
from farm.manager.commands import command
from farm.manager.evidence import Admission
from farm.protocol import messages as wire
from tests.api.stack import AGENT, DEFAULT, Stack
from tests.api.test_pool import ask, connect


async def send(
    stack: Stack,
    command_id: str,
    *,
    namespace: Namespace = DEFAULT,
    declared: Declared | None = None,
    client_id: ClientId = AGENT,
) -> SentCommand:
    async def ignore(message: wire.ToAgent) -> None:
        return

    await stack.node.attach(client_id, LinkId("link"), ignore)
    admission = Admission(namespace=namespace, declared=declared or Declared())
    return await stack.node.send(
        client_id, command(command_id, wire.Probe()), admission=admission, outlives_link=True
    )


async def missing(stack: Stack, command_id: str) -> str:
    async with stack.http.get(
        f"{stack.url}/v1/commands/{command_id}", headers=stack.as_admin()
    ) as response:
        assert response.status == 404
        return str((await response.json())["detail"])


async def test_a_command_is_shown_with_its_five_answers_and_its_payload(stack: Stack) -> None:
    await send(stack, "c", declared=Declared(effect=Effect.ONCE, reconcilable=True))
    result = wire.Result(command_id="c", outcome="succeeded", value={"n": 1})
    await stack.node.answered(AGENT, result)
    shown = await ask(stack, "/v1/commands/c")
    questions = ("send_attempted", "acknowledged", "result_retained")
    assert [shown[question] for question in questions] == ["yes", "yes", "yes"]
    assert (shown["effect_can_be_established"], shown["repeat_is_safe"]) == ("yes", "no")
    known = shown["command"]
    assert (known["state"], known["kind"], known["effect"]) == ("result", "probe", "once")
    assert known["payload"] == {"outcome": "succeeded", "value": {"n": 1}}
    assert known["admitted_at"] <= known["send_attempted_at"] <= known["settled_at"]


async def test_what_was_not_declared_is_unknown(stack: Stack) -> None:
    await send(stack, "c")
    shown = await ask(stack, "/v1/commands/c")
    assert shown["acknowledged"] == "no"
    assert shown["effect_can_be_established"] == shown["repeat_is_safe"] == "unknown"


async def test_a_command_of_another_namespace_is_not_there(stack: Stack) -> None:
    await send(stack, "theirs", namespace=Namespace("theirs"))
    assert await missing(stack, "theirs") == (await missing(stack, "never")).replace(
        "never", "theirs"
    )


async def test_a_command_that_is_retained_no_more_has_expired(stack: Stack) -> None:
    keep = stack.log.retention.keep
    for n in range(keep + 1):
        stack.node.forget(await send(stack, f"c{n}"))
    shown = await ask(stack, "/v1/commands/c0")
    assert shown["send_attempted"] == shown["result_retained"] == "expired"
    assert shown["command"] is None
    assert (await ask(stack, "/v1/commands/c1"))["send_attempted"] == "yes"


async def test_delivery_is_counted_for_each_agent_of_the_namespace(stack: Stack) -> None:
    await connect(stack)
    await connect(stack, "away")
    assert await stack.registry.unlink(ClientId("away"), LinkId("link-away"), now=system_clock())
    for command_id in ("runs", "new", "busy"):
        await send(stack, command_id)
    await send(stack, "foreign", namespace=Namespace("theirs"))
    await stack.node.answered(AGENT, wire.Ack(command_id="runs"))
    await stack.node.answered(AGENT, wire.Ack(command_id="busy", refused="busy"))
    mine, away = sorted(
        (await ask(stack, "/v1/delivery"))["items"], key=lambda one: one["client_id"] != AGENT
    )
    counts = ("admitted", "in_flight", "unacknowledged")
    assert (mine["client_id"], mine["linked"]) == (AGENT, True)
    assert [mine[count] for count in counts] == [0, 2, 1]
    assert mine["failures"] == {"busy": 1}
    oldest = (await ask(stack, "/v1/commands/runs"))["command"]["admitted_at"]
    assert mine["oldest_at"] == oldest
    assert (away["client_id"], away["linked"], away["oldest_at"]) == ("away", False, None)
    assert [away[count] for count in counts] == [0, 0, 0]


async def test_an_attempt_names_the_command_that_ran_it(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    shown: dict[str, Any] = await ask(stack, f"/v1/jobs/{job_id}")
    assert [one["command_id"] for one in shown["history"]] == [attempt.command_id]
