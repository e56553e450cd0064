"""Who is let in on a link, who is not, and what each is told."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from agent.machine.events import Heard, LinkDown, LinkUp
from agent.ports import LinkRefused
from farm.api import convert
from farm.api.metrics import ConnectedAgents
from farm.api.request_state import Principal
from farm.core.admission import Bounds
from farm.core.model import Namespace
from farm.protocol import messages as wire
from tests.api.agent_ends import A, Dialled, Served, agent, client, dialling, served, serving, way
from tests.jobs.farm import WINDOW_S, until
from tests.stores.conftest import new_redis_registry, redis_url

__all__ = ["agent", "new_redis_registry", "redis_url", "served", "way"]


async def test_an_agent_is_let_in_and_told_what_was_granted(served: Served, agent: Dialled) -> None:
    welcome = await agent.greeted()
    assert welcome.epoch_number == 1
    assert welcome.capacity == wire.Capacity(max_concurrency=1, max_windows=2)
    assert (welcome.heartbeat_interval_s, welcome.window_s) == (2.5, WINDOW_S)
    assert served.tokens.owns("token-1", A)
    assert not served.tokens.owns("token-2", A)


async def test_a_wrong_token_is_told_so_and_does_not_dial_again(served: Served) -> None:
    with pytest.raises(ExceptionGroup) as refused:
        async with dialling(served.url, "bad"):
            await asyncio.Event().wait()
    assert refused.value.subgroup(LinkRefused) is not None


async def test_a_second_agent_of_the_same_name_is_refused_and_the_first_goes_on(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted()
    async with dialling(served.url) as second:
        await until(lambda: second.count(LinkUp))
        await second.hello(instance="another")
        await until(lambda: second.heard(wire.Refused))
        assert second.heard(wire.Refused)[0].reason == "client_id_in_use"
        assert second.heard(wire.Refused)[0].retry
    await agent.link.send(wire.Heartbeat(epoch_number=1, nonce="n"))
    await until(lambda: agent.heard(wire.Ping))
    assert agent.heard(wire.Ping)[-1].nonce == "n"


async def test_a_protocol_that_is_not_spoken_is_refused_for_good(
    served: Served, agent: Dialled
) -> None:
    await until(lambda: agent.count(LinkUp))
    await agent.hello(protocol=99)
    await until(lambda: agent.heard(wire.Refused))
    assert not agent.heard(wire.Refused)[0].retry


async def test_an_agent_gets_no_work_of_a_namespace_its_token_is_not_for(
    served: Served, agent: Dialled
) -> None:
    await until(lambda: agent.count(LinkUp))
    await agent.hello(namespaces=("default", "other"))
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("namespace", False)


async def test_an_agent_that_takes_no_job_at_a_time_is_refused_by_name(
    served: Served, agent: Dialled
) -> None:
    await until(lambda: agent.count(LinkUp))
    await agent.hello(capacity=wire.Capacity(max_concurrency=0))
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("capacity", False)
    assert "max_concurrency is 0" in refused.detail
    assert await client(served) is None


async def test_the_acknowledgement_precedes_any_task_and_echoes_the_stored_capacity(
    served: Served, agent: Dialled
) -> None:
    await served.farm.waits(await served.farm.submit())
    await agent.greeted()
    await until(lambda: agent.heard(wire.Command))
    first = next(event.message for event in agent.told if isinstance(event, Heard))
    assert isinstance(first, wire.Welcome)
    assert first.capacity == convert.capacity((await client(served)).capacity)


ENROLLED = Principal(
    token_id="token-1",
    scope="agent",
    namespace=Namespace("shop"),
    bounds=Bounds(
        namespaces=frozenset({Namespace("shop"), Namespace("default")}),
        nodes=frozenset({"rack-1"}),
        metadata={"region": ["eu"]},
    ),
)


@pytest.mark.parametrize(
    ("claimed", "reason"),
    [
        ({"namespaces": ("shop", "default", "more")}, "namespace"),
        ({"node": "rack-2"}, "node"),
        ({"metadata": {"region": "us"}}, "metadata"),
    ],
)
async def test_an_agent_may_be_all_that_its_token_says_and_no_more(
    tmp_path: Path, claimed: dict[str, Any], reason: str
) -> None:
    async with serving(tmp_path, bearer=ENROLLED) as served:
        within: dict[str, Any] = {
            "namespaces": ("shop", "default"),
            "node": "rack-1",
            "metadata": {"region": "eu", "records": True},
        }
        async with dialling(served.url) as agent:
            await until(lambda: agent.count(LinkUp))
            await agent.hello(**(within | claimed))
            await until(lambda: agent.heard(wire.Refused))
            assert agent.heard(wire.Refused)[0].reason == reason
            assert await client(served) is None
        async with dialling(served.url) as agent:
            await agent.greeted(**within)
            assert (await client(served)).namespaces == ("shop", "default")
            assert served.registrations.connected() == {"shop": 1, "default": 1}


async def test_who_is_connected_is_a_gauge_by_namespace(served: Served, agent: Dialled) -> None:
    metrics = CollectorRegistry()
    metrics.register(ConnectedAgents(served.registrations.connected))

    def shown() -> str:
        return generate_latest(metrics).decode()

    await agent.greeted()
    assert 'farm_agents_connected{namespace="default"} 1.0' in shown()
    await agent.link.send(wire.Bye())
    await until(lambda: "farm_agents_connected{" not in shown())


@pytest.mark.parametrize(
    ("metadata", "detail"),
    [
        ('{"load": [1, NaN]}', "metadata.load[1] is nan"),
        ('{"a": {"b": -Infinity}}', "metadata.a.b is -inf"),
        ('{"a": 1e999}', "metadata.a is inf"),
    ],
)
async def test_metadata_that_is_no_json_is_refused_for_good_and_its_place_named(
    served: Served, agent: Dialled, metadata: str, detail: str
) -> None:
    await until(lambda: agent.count(LinkUp))
    hello = f'"op":"hello","client_id":"a","instance":"i","epoch":"e","metadata":{metadata}'
    await agent.raw(f"{{{hello}}}")
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("metadata", False)
    assert detail in refused.detail
    assert await client(served) is None
    assert not agent.heard(wire.Welcome)


async def test_an_agent_that_announces_no_slots_is_refused_by_name_and_keeps_what_it_had(
    served: Served, agent: Dialled
) -> None:
    await agent.greeted(capacity=wire.Capacity(max_concurrency=2, max_windows=2))
    await agent.link.send(wire.CapacityAnnounced(max_concurrency=0))
    await until(lambda: agent.heard(wire.Refused))
    refused = agent.heard(wire.Refused)[0]
    assert (refused.reason, refused.retry) == ("capacity", True)
    assert (await client(served)).capacity.max_concurrency == 2


async def test_an_agent_with_a_job_of_another_coordinator_is_refused_until_it_has_given_it_up(
    tmp_path: Path, new_redis_registry: Any
) -> None:
    registry = await new_redis_registry(1)
    entry = wire.Running(
        command_id="cmd-of-another",
        attempt_id="att-of-another",
        context_id="T1",
        token=wire.Token(store_epoch=1, counter=1),
        epoch="browser-1",
    )
    async with (
        serving(tmp_path, registry=registry, name="two") as served,
        dialling(served.url) as agent,
    ):
        await until(lambda: agent.count(LinkUp))
        await agent.hello(running=(entry,))
        await until(lambda: agent.heard(wire.Refused))
        refused = agent.heard(wire.Refused)[0]
        assert (refused.reason, refused.retry) == ("runs_elsewhere", True)
        assert await client(served) is None
        await served.farm.passes(WINDOW_S * 1.25 + 1)
        await until(lambda: agent.count(LinkUp) > agent.count(LinkDown))
        await agent.greeted(running=(entry,))
        await until(lambda: agent.heard(wire.Stored))
        over = agent.heard(wire.Stored)[0]
        assert (over.command_id, over.refused, over.done) == ("cmd-of-another", True, True)
