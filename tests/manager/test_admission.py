"""The one way in, whatever an agent dials by."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from farm.core.admission import Claim, Enrolment, Refusal, RefusedFor
from farm.core.model import (
    Capacity,
    Client,
    ClientId,
    ClientType,
    ContextId,
    Instant,
    Namespace,
    Request,
    TaskId,
    link_of,
)
from farm.core.pools import Exclusion
from farm.errors import StoreUnavailableError
from farm.manager import refusals
from farm.manager.admission import Knock, Registration, Registrations
from farm.stores.memory import MemoryRegistry
from tests.stores.pool import reported

A, B, C = Namespace("a"), Namespace("b"), Namespace("c")
NOW = Instant(1_000.0)
BEARER = Enrolment(token_id="tok-1", namespaces=frozenset({A, B}))


class Gate:
    """Notes what it was asked, and refuses what the test wants refused."""

    def __init__(self) -> None:
        self.asked: list[tuple[Namespace, ...]] = []
        self.refusal: Refusal | None = None
        self.unknown: set[Namespace] = set()
        self.minted: list[tuple[Namespace, ...]] = []
        self.minting_fails_with: Refusal | StoreUnavailableError | None = None

    async def missing(
        self, namespaces: tuple[Namespace, ...], node: str | None
    ) -> tuple[Namespace, ...] | Refusal:
        self.asked.append(namespaces)
        return self.refusal or tuple(name for name in namespaces if name in self.unknown)

    async def mint(self, namespaces: tuple[Namespace, ...], node: str | None) -> Refusal | None:
        if isinstance(self.minting_fails_with, StoreUnavailableError):
            raise self.minting_fails_with
        if self.minting_fails_with is None:
            self.minted.append(namespaces)
        return self.minting_fails_with


class House:
    """A registry with its one way in."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Namespace, Mapping[str, Any]]] = []
        self.now = NOW
        self.registry = MemoryRegistry(store_epoch=1, presence_window_s=10.0)
        self.gate = Gate()
        self.metrics = CollectorRegistry()
        self.door = Registrations(
            self.registry,
            lambda: self.now,
            gate=self.gate,
            tell=lambda *told: self.told.append(told),
            metrics=self.metrics,
        )

    def kinds(self) -> list[tuple[str, str]]:
        return [(kind, namespace) for kind, namespace, _ in self.told]

    async def present(self) -> list[str]:
        return [client.client_id for client in (await self.registry.snapshot(now=NOW)).clients]

    async def comes(
        self,
        *namespaces: Namespace,
        link: str = "1",
        client_id: str = "agent",
        instance: str = "i",
        bearer: Enrolment = BEARER,
        kept_out: Refusal | None = None,
        **changes: Any,
    ) -> Registration | Refusal:
        async def keep_out() -> Refusal | None:
            return kept_out

        served = namespaces or (A,)
        values: dict[str, Any] = {"protocol": 1, "task_queue": "default", "node": None}
        client = Client(
            client_id=ClientId(client_id),
            client_type=ClientType.BROWSER,
            link=link_of("farm", link),
            epoch=0,
            instance=instance,
            namespaces=served,
            metadata={},
            capacity=Capacity(max_concurrency=3, max_windows=4),
            seen_at=NOW,
        )
        return await self.door.register(
            Knock(
                claim=Claim(client_id=client.client_id, namespaces=served, **(values | changes)),
                client=client,
                epoch_name="browser-1",
                highest_token=None,
                transport="websocket",
                kept_out=keep_out,
            ),
            bearer,
        )


@pytest.fixture
def house() -> House:
    return House()


async def let_in(knocked: Registration | Refusal) -> Registration:
    assert isinstance(knocked, Registration), knocked
    return knocked


async def test_an_agent_of_two_namespaces_is_counted_and_told_in_each(house: House) -> None:
    await let_in(await house.comes(A, B))
    assert house.door.connected() == {A: 1, B: 1}
    assert house.kinds() == [("agent_connected", A), ("agent_connected", B)]
    assert house.gate.asked == [(A, B)]
    assert await house.present() == ["agent"]


async def test_one_denied_namespace_leaves_nothing_inserted_minted_counted_or_announced(
    house: House,
) -> None:
    refusal = await house.comes(A, C)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is RefusedFor.NAMESPACE
    assert "'c'" in refusal.detail
    assert house.gate.asked == []
    assert await house.present() == []
    assert house.door.connected() == {}
    assert "agent_connected" not in dict(house.kinds())


KEPT_OUT = Refusal(reason=RefusedFor.RUNS_ELSEWHERE, detail="elsewhere")
MISPLACED = Refusal(reason=RefusedFor.PLACEMENT, detail="not here")


async def test_the_steps_of_admission_are_in_a_fixed_order(house: House) -> None:
    """Each refusal comes before all that would have refused later."""
    house.gate.refusal = MISPLACED
    faults: list[dict[str, Any]] = [
        {"namespaces": (A,)},
        {"kept_out": KEPT_OUT},
        {"namespaces": (A, C)},
        {"max_concurrency": 0},
        {"protocol": 99},
    ]
    given: dict[str, Any] = {}
    met = []
    for fault in faults:
        given |= fault
        refusal = await house.comes(*given["namespaces"], **_but(given, "namespaces"))
        assert isinstance(refusal, Refusal)
        met.append((refusal.reason.value, len(house.gate.asked)))
    assert met == [
        ("placement", 1),
        ("runs_elsewhere", 1),
        ("namespace", 1),
        ("capacity", 1),
        ("protocol", 1),
    ]
    assert await house.present() == []


def _but(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


async def test_each_refusal_is_counted_by_its_reason(house: House) -> None:
    for _ in range(3):
        assert isinstance(await house.comes(Namespace("not its own")), Refusal)
    counted = house.metrics.get_sample_value(
        "farm_admission_refusals_total", {"reason": "namespace"}
    )
    assert counted == 3


async def test_what_is_found_of_an_agents_reach_is_told_each_of_its_namespaces(
    house: House,
) -> None:
    await let_in(await house.comes(A, B))
    house.told.clear()
    house.door.verdict(ClientId("agent"), Exclusion.REACHABILITY_LOST)
    house.door.verdict(ClientId("nobody"), None)
    assert house.kinds() == [("verdict_changed", A), ("verdict_changed", B)]
    assert {data["exclusion"] for _, _, data in house.told} == {"reachability_lost"}


async def test_a_registration_that_ends_twice_is_discounted_and_told_once(house: House) -> None:
    registration = await let_in(await house.comes(A))
    house.told.clear()
    assert await registration.end("deregistered")
    assert not await registration.end()
    assert house.door.connected() == {}
    assert [(kind, data["reason"]) for kind, _, data in house.told] == [
        ("agent_disconnected", "deregistered")
    ]


async def test_an_agent_on_a_new_link_is_counted_once_and_the_old_link_ends_nothing(
    house: House,
) -> None:
    old = await let_in(await house.comes(A, link="1"))
    new = await let_in(await house.comes(A, link="2"))
    assert house.door.connected() == {A: 1}
    assert not await old.end()
    assert house.door.connected() == {A: 1}
    assert [kind for kind, _ in house.kinds()] == [
        "agent_connected",
        "agent_disconnected",
        "agent_connected",
    ]
    assert await new.end()


async def test_a_second_hello_on_a_link_is_no_news(house: House) -> None:
    first = await let_in(await house.comes(A))
    await let_in(await house.comes(A))
    assert house.kinds() == [("agent_connected", A)]
    await first.end()
    assert house.door.connected() == {}


async def test_the_stored_capacity_is_what_an_agent_is_let_in_with(house: House) -> None:
    registration = await let_in(await house.comes(A))
    (stored,) = (await house.registry.snapshot(now=NOW)).clients
    assert registration.client.capacity == stored.capacity


async def test_who_is_refused_for_its_name_has_minted_nothing(house: House) -> None:
    await let_in(await house.comes(A, instance="first"))
    house.gate.unknown = {B}
    refusal = await house.comes(A, B, instance="second", link="2")
    assert isinstance(refusal, Refusal)
    assert refusal.reason is RefusedFor.CLIENT_ID_IN_USE
    assert house.gate.minted == []
    await let_in(await house.comes(A, B, instance="second", client_id="other", link="2"))
    assert house.gate.minted == [(A, B)]


async def test_where_there_is_nothing_to_mint_nothing_is_written(house: House) -> None:
    await let_in(await house.comes(A, B))
    assert house.gate.minted == []


@pytest.mark.parametrize("failure", [MISPLACED, StoreUnavailableError("away")])
async def test_who_is_in_and_can_not_have_its_namespaces_is_in_no_more(
    house: House, failure: Refusal | StoreUnavailableError
) -> None:
    house.gate.unknown, house.gate.minting_fails_with = {A}, failure
    if isinstance(failure, StoreUnavailableError):
        with pytest.raises(StoreUnavailableError):
            await house.comes(A)
    else:
        assert await house.comes(A) == failure
    assert await house.present() == []
    assert house.door.connected() == {}
    assert "agent_connected" not in dict(house.kinds())
    house.gate.minting_fails_with = None
    await let_in(await house.comes(A))


async def test_who_comes_back_and_can_not_have_its_namespaces_keeps_what_it_holds_and_gets_nothing(
    house: House,
) -> None:
    agent = (await let_in(await house.comes(A))).client
    await reported(house.registry, "T1", client=agent, link=link_of("farm", "1"), now=NOW)
    asked = Request(namespace=A, task_id=TaskId("task"))
    how: dict[str, Any] = {"now": NOW, "timeout_s": 60}
    held = await house.registry.assign(asked, agent.client_id, ContextId("T1"), **how)
    house.gate.unknown, house.gate.minting_fails_with = {B}, MISPLACED
    assert await house.comes(A, B, link="2") == MISPLACED
    (kept,) = (await house.registry.snapshot(now=NOW)).clients
    assert (kept.link, list(kept.assignments.values())) == (None, [held])


# The audit


def lines_of(logs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [line for line in logs if line["event"] == "agent.refused"]


async def test_who_varies_what_it_claims_makes_one_line_and_the_next_says_how_many_were_untold(
    house: House,
) -> None:
    with capture_logs() as logs:
        for number in range(100):
            await house.comes(Namespace(f"x{number}"), node=f"n{number}", client_id=f"c{number}")
        await house.comes(A, protocol=99)
    assert [(line["reason"], line["untold"]) for line in lines_of(logs)] == [
        ("namespace", 0),
        ("protocol", 99),
    ]
    assert [data["untold"] for kind, ns, data in house.told if ns == A] == [0, 99]


async def test_who_goes_to_and_fro_between_reasons_is_told_of_a_bounded_number_of_times(
    house: House,
) -> None:
    async def to_and_fro(times: int) -> int:
        with capture_logs() as logs:
            for _ in range(times):
                await house.comes(C)
                await house.comes(A, protocol=99)
                await house.comes(A)
        return len(lines_of(logs))

    assert await to_and_fro(50) == refusals._LINES_AT_ONCE
    house.now = Instant(house.now + 3 * refusals._LINE_EVERY_S)
    assert await to_and_fro(50) == 3
    house.now = Instant(house.now + 1_000 * refusals._LINE_EVERY_S)
    assert await to_and_fro(50) == refusals._LINES_AT_ONCE


async def test_a_thousand_identical_refusals_are_one_line_and_a_change_another(
    house: House,
) -> None:
    with capture_logs() as logs:
        for _ in range(1_000):
            await house.comes(C)
        for _ in range(3):
            await house.comes(A, protocol=99)
        for _ in range(3):
            await house.comes(C)
    refused = [line for line in logs if line["event"] == "agent.refused"]
    assert [(line["reason"], line["untold"]) for line in refused] == [
        ("namespace", 0),
        ("protocol", 999),
        ("namespace", 2),
    ]
    told = [(ns, data["reason"]) for kind, ns, data in house.told if kind == "agent_refused"]
    assert told == [(ns, line["reason"]) for line in refused for ns in (A, B)]


async def test_after_a_success_the_same_refusal_is_news_again(house: House) -> None:
    with capture_logs() as logs:
        for namespaces in ((C,), (C,), (A,), (C,)):
            await house.comes(*namespaces)
    assert [line["event"] for line in logs].count("agent.refused") == 2


async def test_random_names_of_clients_do_not_grow_the_audit(house: House) -> None:
    await house.comes(A, client_id="taken", instance="first")
    with capture_logs() as logs:
        for number in range(100):
            await house.comes(C, client_id=f"agent-{number}", instance=f"i-{number}")
    assert len(house.door.audit) == 1
    assert [line["event"] for line in logs].count("agent.refused") == 1


async def test_the_name_in_use_is_no_part_of_the_diagnosis(house: House) -> None:
    for name in ("x", "y"):
        await house.comes(A, client_id=name, instance="first")
    with capture_logs() as logs:
        for turn, name in enumerate("xyxyxy"):
            refusal = await house.comes(A, client_id=name, instance="second", link=f"{turn}")
            assert isinstance(refusal, Refusal)
            assert (refusal.reason, refusal.retry) == (RefusedFor.CLIENT_ID_IN_USE, True)
    assert [line["event"] for line in logs].count("agent.refused") == 1


async def test_the_audit_remembers_a_bounded_number_of_tokens(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "_MOST_SITES", 3)
    for number in range(10):
        token = Enrolment(token_id=f"tok-{number}", namespaces=frozenset({A}))
        await house.comes(C, bearer=token)
    assert len(house.door.audit) == 3


async def test_of_many_tokens_the_one_refused_longest_ago_is_news_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "_MOST_SITES", 2)
    with capture_logs() as logs:
        for name in ("one", "two", "one", "three", "one", "two"):
            await house.comes(C, bearer=Enrolment(token_id=name, namespaces=frozenset({A})))
    assert [line["token_id"] for line in lines_of(logs)] == ["one", "two", "three", "two"]
