"""Acquire: what is looked at, in which order, what is said on a miss, and how long it is waited."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from farm.core.eligibility import Reason
from farm.core.model import Assignment, Client, ClientId, ClientType, ContextId, Instant, Namespace
from farm.core.reservation import Denial
from farm.errors import CollaboratorMissingError, InvalidInputError, StoreUnavailableError
from farm.manager import Acquired, BrowserPlacement, Mode, NotAcquired, WorkerContextManager
from farm.stores.memory import MemoryRegistry
from tests.manager.floor import NS, Floor, named, turns
from tests.patience import PATIENCE_S
from tests.stores.pool import WINDOW_S


async def held_by(manager: WorkerContextManager, task: str, **asked: Any) -> str | None:
    handle = await manager.acquire(NS, task, **asked)
    return None if handle is None else handle.assignment.context_id


async def missed(manager: WorkerContextManager, **asked: Any) -> NotAcquired:
    outcome = await manager.try_acquire(NS, "task", **asked)
    assert isinstance(outcome, NotAcquired), outcome
    return outcome


# Constructing


@pytest.mark.parametrize("name", ["context_registry", "connection_registry"])
def test_a_required_collaborator_that_is_missing_is_named_at_construction(
    floor: Floor, name: str
) -> None:
    with pytest.raises(CollaboratorMissingError, match=name):
        floor.manager(**{name: None})
    arguments: dict[str, Any] = {
        "context_registry": floor.registry,
        "connection_registry": floor.registry,
    }
    del arguments[name]
    with pytest.raises(TypeError, match=name):
        WorkerContextManager(**arguments)


@pytest.mark.parametrize("interval", [0, 0.0, -1.0, math.nan, math.inf, -math.inf])
def test_an_interval_that_would_scan_without_end_or_never_is_refused(
    floor: Floor, interval: float
) -> None:
    with pytest.raises(ValueError, match="task_timeout_check_interval_s"):
        floor.manager(task_timeout_check_interval_s=interval)
    floor.manager(task_timeout_check_interval_s=interval, task_timeout_ms=0)


@pytest.mark.parametrize("timeout", [-1, math.nan, math.inf])
def test_a_timeout_that_is_no_time_is_refused(floor: Floor, timeout: float) -> None:
    with pytest.raises(ValueError, match="task_timeout_ms"):
        floor.manager(task_timeout_ms=timeout)


async def test_the_registries_alone_are_enough_to_borrow_and_give_back(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = WorkerContextManager(
        context_registry=floor.registry,
        connection_registry=floor.registry,
        clock=lambda: floor.now,
    )
    handle = await manager.acquire(NS, "task")
    assert handle is not None
    assert handle.assignment.expires_at - floor.now == 300
    await handle.renew()
    assert await handle.release()
    assert not await handle.release()


# What is looked at


async def test_while_very_many_agents_are_looked_at_others_have_their_turn(floor: Floor) -> None:
    for number in range(1_100):
        await floor.agent(f"a{number:04}")
    turns_had = 0
    async with asyncio.TaskGroup() as group:
        missing = group.create_task(missed(floor.manager()))
        while not missing.done():
            await asyncio.sleep(0)
            turns_had += 1
    assert turns_had > 2
    assert len(missing.result().verdict.clients) == 1_100


async def test_only_who_has_exactly_the_required_metadata_is_asked(floor: Floor) -> None:
    await floor.agent("a", "W1.a", metadata={"region": "eu"})
    await floor.agent("b", "W2.a", metadata={"region": "eu", "account": "billing"})
    manager = floor.manager()
    wanted = {"region": "eu", "account": "billing"}
    assert await held_by(manager, "t1", requirements=wanted) == "W2.a"
    verdict = (await missed(manager, requirements=wanted)).verdict
    assert verdict.clients[ClientId("a")] is Reason.REQUIREMENTS_NOT_MET


async def test_only_who_serves_the_queue_does_the_work_and_is_on_the_node_is_asked(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a")
    crawler: dict[str, Any] = {"task_queue": "q", "activity_types": frozenset({"crawl"})}
    await floor.agent("b", "W2.a", "W3.a", node="n1", **crawler)
    manager = floor.manager()
    there = {"task_queue": "q", "activity_type": "crawl", "node": "n1"}
    assert await held_by(manager, "t1", **there) == "W2.a"
    assert await held_by(manager, "t2", task_queue="") == "W1.a"
    for wrong, reason in (
        ({"task_queue": "x"}, Reason.OTHER_QUEUE),
        ({"activity_type": "x"}, Reason.ACTIVITY_NOT_SERVED),
        ({"node": "x"}, Reason.OTHER_NODE),
    ):
        verdict = (await missed(manager, **{**there, **wrong})).verdict
        assert verdict.clients[ClientId("b")] is reason


@pytest.mark.parametrize("name", ["activity_type", "node"])
async def test_an_empty_name_is_no_name(floor: Floor, name: str) -> None:
    asked: dict[str, Any] = {name: ""}
    with pytest.raises(InvalidInputError, match=name):
        await floor.manager().acquire(NS, "t", **asked)


async def test_affinity_is_tried_first_and_then_anybody_else(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    await floor.agent("b", "W2.a")
    manager = floor.manager()
    assert await held_by(manager, "t1", affinity_client_id="b") == "W2.a"
    assert await held_by(manager, "t2", affinity_client_id="b") == "W1.a"
    assert await held_by(manager, "t3", affinity_client_id="nobody") is None


async def test_affinity_lets_nobody_past_a_hard_condition(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    await floor.agent("b", "W2.a", namespaces=(Namespace("other"),))
    assert await held_by(floor.manager(), "t", affinity_client_id="b") == "W1.a"


@pytest.mark.parametrize("kind", list(ClientType))
async def test_contexts_of_every_client_type_are_lent_where_they_are_reported(
    floor: Floor, kind: ClientType
) -> None:
    await floor.agent("other", "W1.a", client_type=next(t for t in ClientType if t is not kind))
    await floor.agent("wanted", "flow", client_type=kind)
    assert await held_by(floor.manager(), "t", client_type=kind.value) == "flow"


async def test_an_agent_that_has_fallen_silent_lends_nothing_though_its_report_stands(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a")
    floor.passes(WINDOW_S + 1)
    verdict = (await missed(floor.manager())).verdict
    assert verdict.reason is Reason.ABSENT
    assert (await floor.client()).contexts


class Presence:
    """A connection registry of its own, which says who is there."""

    def __init__(self, **metadata: Mapping[str, Any]) -> None:
        self.there = {ClientId(k): v for k, v in metadata.items()}

    async def presence(
        self, namespace: Namespace, *, now: Instant
    ) -> Mapping[ClientId, Mapping[str, Any]]:
        return self.there


async def test_who_is_not_in_a_presence_registry_of_its_own_is_not_there(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    await floor.agent("b", "W2.a")
    manager = floor.manager(connection_registry=Presence(b={"region": "eu"}))
    assert await held_by(manager, "t1", requirements={"region": "eu"}) is None  # the store's no
    assert await held_by(manager, "t2") == "W2.a"
    verdict = (await missed(manager)).verdict
    assert verdict.clients[ClientId("a")] is Reason.ABSENT


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"client_type": "toaster"}, "toaster"),
        ({"requirements": {"a": b"x"}}, r"requirements\.a is of type bytes"),
        ({"requirements": {"a": [1, math.nan]}}, r"requirements\.a\[1\] is nan"),
        ({"requirements": {"a": {1: "x"}}}, r"requirements\.a has the key 1"),
        ({"requirements": {1: "x"}}, "requirements has the key 1"),
        (
            {"client_type": "console", "placement": BrowserPlacement(mode=Mode.NEW_WINDOW)},
            "placement",
        ),
        ({"timeout_ms": 0}, "timeout_ms"),
        ({"timeout_ms": math.nan}, "timeout_ms"),
        ({"timeout_ms": 300_001}, "timeout_ms"),
        ({"wait": -1}, "wait"),
        ({"wait": math.inf}, "wait"),
    ],
    ids=str,
)
async def test_an_argument_that_means_nothing_is_refused(
    floor: Floor, wrong: dict[str, Any], name: str
) -> None:
    with pytest.raises(InvalidInputError, match=name):
        await floor.manager().try_acquire(NS, "task", **wrong)


async def test_a_task_without_a_name_is_refused(floor: Floor) -> None:
    with pytest.raises(InvalidInputError, match="task_id"):
        await floor.manager().acquire(NS, "")


async def test_a_store_that_is_away_is_never_an_empty_answer(floor: Floor) -> None:
    class Away(MemoryRegistry):
        async def snapshot(self, *, now: Instant) -> Any:
            raise StoreUnavailableError("away")

    away = Away(store_epoch=1, presence_window_s=WINDOW_S)
    manager = floor.manager(context_registry=away)
    with pytest.raises(StoreUnavailableError):
        await manager.acquire(NS, "t", wait=10)


# What is said on a miss


async def test_on_a_miss_everybody_who_was_there_has_a_reason(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a")
    await agent.has(named("W2.a", clean=False))
    await floor.agent("b", "W3.a", draining=True)
    manager = floor.manager()
    assert await held_by(manager, "t") == "W1.a"
    verdict = (await missed(manager)).verdict
    assert verdict.clients == {"a": Reason.CREATION_NOT_PERMITTED, "b": Reason.DRAINING}
    assert verdict.contexts == {
        ("a", "W1.a"): Reason.ASSIGNED,
        ("a", "W2.a"): Reason.NOT_CLEAN,
    }
    assert verdict.remedy


class Quicker(MemoryRegistry):
    """Somebody else is always quicker, with the first so many assigns."""

    def __init__(self, times: int) -> None:
        super().__init__(store_epoch=1, presence_window_s=WINDOW_S)
        self.times = times
        self.asked: list[str] = []

    async def assign(self, *args: Any, **options: Any) -> Assignment | Denial:
        self.asked.append(args[2])
        if len(self.asked) <= self.times:
            return Denial.TAKEN
        return await super().assign(*args, **options)


async def test_after_a_lost_assign_the_next_candidate_is_tried(floor: Floor) -> None:
    registry = floor.registry = Quicker(2)
    await floor.agent("a", "W1.a", "W2.a", "W3.a")
    assert await held_by(floor.manager(), "t") == "W3.a"
    assert registry.asked == ["W1.a", "W2.a", "W3.a"]


async def test_who_loses_every_race_looks_afresh_a_few_times_and_then_says_so(
    floor: Floor,
) -> None:
    registry = floor.registry = Quicker(1_000)
    await floor.agent("a", "W1.a", "W2.a")
    verdict = (await missed(floor.manager())).verdict
    assert verdict.reason is Reason.LOST_RACE
    assert set(verdict.contexts.values()) == {Reason.LOST_RACE}
    # Once for what is at hand, and once for each reading.
    assert len(registry.asked) == (1 + 3) * 2


async def test_of_many_at_once_as_many_hold_as_there_are_contexts(floor: Floor) -> None:
    await floor.agent("a", *(f"W{n}.a" for n in range(4)))
    await floor.agent("b", *(f"X{n}.a" for n in range(3)))
    managers = [floor.manager(), floor.manager()]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(managers[n % 2].acquire(NS, f"t{n}")) for n in range(20)]
    held = [h.assignment.context_id for t in tasks if (h := t.result()) is not None]
    assert len(held) == len(set(held)) == 7


# Waiting


async def test_who_waits_is_woken_by_what_is_given_back(floor: Floor) -> None:
    agent = await floor.agent("a", "W1.a")
    manager = floor.manager()
    first = await manager.acquire(NS, "t1")
    assert first is not None
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(manager.acquire(NS, "t2", wait=60))
        await turns(lambda: manager.misses(NS))
        await first.release()
        await asyncio.sleep(0)
        assert not waiting.done()  # released, and not clean yet
        await agent.report()
    second = waiting.result()
    assert second is not None
    assert second.assignment.token > first.assignment.token


async def test_a_change_between_the_look_and_the_wait_is_not_missed(floor: Floor) -> None:
    class Late(MemoryRegistry):
        async def snapshot(self, *, now: Instant) -> Any:
            seen = await super().snapshot(now=now)
            if not seen.clients:
                await floor.agent("a", "W1.a")  # it arrives just after it was looked
            return seen

    floor.registry = Late(store_epoch=1, presence_window_s=WINDOW_S)
    async with asyncio.timeout(PATIENCE_S):
        assert await held_by(floor.manager(), "t", wait=60) == "W1.a"


async def test_wakes_that_help_nothing_leave_the_deadline_where_it_was(floor: Floor) -> None:
    agent = await floor.agent("a")
    over = asyncio.Event()

    async def wake() -> None:
        while not over.is_set():
            await agent.report()
            await asyncio.sleep(0)

    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(wake())
        outcome = await floor.manager().try_acquire(NS, "t", wait=0.05)
        over.set()
    assert isinstance(outcome, NotAcquired)
    assert loop.time() - began >= 0.05
    assert outcome.verdict.reason is Reason.CREATION_NOT_PERMITTED


async def test_to_wait_no_time_is_to_look_once(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager()
    assert await held_by(manager, "t1", wait=0) == "W1.a"
    assert await held_by(manager, "t2", wait=0) is None


async def test_one_who_is_cancelled_while_waiting_holds_nothing(floor: Floor) -> None:
    await floor.agent("a")
    manager = floor.manager()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.acquire(NS, "t", wait=60))
        await turns(lambda: manager.misses(NS))
        task.cancel()
    assert await floor.used() == 0


async def test_a_registry_that_tells_of_no_change_is_looked_at_now_and_then(floor: Floor) -> None:
    """Also through a registry that offers nothing of what is optional."""
    agent = await floor.agent("a")
    plain = Plain(floor.registry)
    manager = floor.manager(context_registry=plain, connection_registry=plain)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        task = group.create_task(manager.acquire(NS, "t", wait=60))
        await turns(lambda: manager.misses(NS))
        await agent.has("W1.a")
    assert task.result() is not None


class Plain:
    """The required methods of a context registry, and nothing else."""

    def __init__(self, registry: MemoryRegistry) -> None:
        for name in ("snapshot", "report", "assign", "restore", "renew", "holds", "release"):
            setattr(self, name, getattr(registry, name))


# Placement, through the manager


async def test_a_mode_that_must_create_misses_without_permission(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager()
    for mode in (Mode.NEW_WINDOW, Mode.NEW_TAB):
        placement = BrowserPlacement(mode=mode, identity="shop")
        outcome = await missed(manager, placement=placement)
        assert outcome.verdict.reason is Reason.CREATION_NOT_PERMITTED


async def test_two_tasks_are_not_lent_tabs_of_one_anonymous_window_unless_both_ask(
    floor: Floor,
) -> None:
    await floor.agent("a", "W1.a", "W1.b", "W1.c")
    manager = floor.manager()
    shared = BrowserPlacement(mode=Mode.REUSE_ONLY)
    assert await held_by(manager, "t1", placement=shared) == "W1.a"
    assert await held_by(manager, "t2") is None
    assert await held_by(manager, "t3", placement=shared) == "W1.b"


async def test_while_one_holds_a_window_alone_nobody_is_lent_a_tab_in_it(floor: Floor) -> None:
    await floor.agent("a", "W1.a", "W1.b")
    manager = floor.manager()
    alone = await manager.acquire(NS, "t1")
    assert alone is not None
    shared = BrowserPlacement(mode=Mode.REUSE_ONLY)
    assert await held_by(manager, "t2", placement=shared) is None
    await alone.release()
    assert await held_by(manager, "t2", placement=shared) == "W1.b"


async def test_the_store_refuses_a_window_that_was_shared_a_moment_ago(floor: Floor) -> None:
    class Stale(MemoryRegistry):
        old: Any = None

        async def snapshot(self, *, now: Instant) -> Any:
            return self.old or await super().snapshot(now=now)

    registry = floor.registry = Stale(store_epoch=1, presence_window_s=WINDOW_S)
    await floor.agent("a", "W1.a", "W1.b")
    manager = floor.manager()
    old = await registry.snapshot(now=floor.now)
    shared = BrowserPlacement(mode=Mode.REUSE_ONLY)
    assert await held_by(manager, "t1", placement=shared) == "W1.a"
    registry.old = old
    assert (await missed(manager)).verdict.reason is Reason.LOST_RACE


async def test_an_identity_of_a_request_is_the_namespaces_own(floor: Floor) -> None:
    both = (NS, Namespace("other"))
    agent = await floor.agent("a", namespaces=both)
    await agent.has("W1.a", identity=f"{NS}/shop")
    manager = floor.manager()
    placement = BrowserPlacement(mode=Mode.IDENTITY, identity="shop")
    assert await manager.acquire("other", "t", placement=placement) is None
    assert await held_by(manager, "t", placement=placement) == "W1.a"


async def test_two_tasks_of_one_exclusive_identity_never_work_at_once(floor: Floor) -> None:
    agent = await floor.agent("a")
    await agent.has("W1.a", "W1.b", identity=f"{NS}/shop")
    manager = floor.manager()
    placement = BrowserPlacement(mode=Mode.IDENTITY, identity="shop", exclusive=True)
    first = await manager.acquire(NS, "t1", placement=placement, auto_provision=True)
    assert first is not None
    assert await held_by(manager, "t2", placement=placement, auto_provision=True) is None
    plain = BrowserPlacement(mode=Mode.IDENTITY, identity="shop")
    assert await held_by(manager, "t3", placement=plain, auto_provision=True) is None
    assert agent.orders == []
    await first.release()
    await agent.report()
    assert await held_by(manager, "t2", placement=placement) is not None


async def test_an_assignment_counts_its_own_timeout(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    manager = floor.manager()
    handle = await manager.acquire(NS, "t", timeout_ms=1_500)
    assert handle is not None
    assert handle.assignment.expires_at == floor.now + 1.5
    floor.passes(1)
    await handle.renew()
    assert handle.assignment.expires_at == floor.now + 1.5


async def test_an_acquired_handle_is_what_acquire_returns(floor: Floor) -> None:
    await floor.agent("a", "W1.a")
    outcome = await floor.manager().try_acquire(NS, "t")
    assert isinstance(outcome, Acquired)
    assert outcome.handle.assignment.context_id == ContextId("W1.a")
    client: Client = await floor.client()
    assert replace(client).assignments[ContextId("W1.a")] == outcome.handle.assignment


def test_an_assignment_says_nothing_of_its_task_but_the_label() -> None:
    of_the_lease = {"namespace", "client_id", "epoch", "context_id", "token", "dedicated"}
    of_the_lease |= {"since", "renewed_at", "expires_at", "reservation_id"}
    assert {field.name for field in fields(Assignment)} == of_the_lease | {"task_id"}
