"""The port `CommandLog`: what every implementation promises."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from farm.core.commands import (
    AFTER,
    CommandEvidence,
    CommandState,
    Declared,
    Effect,
    Mark,
    Payload,
    Retention,
)
from farm.core.model import ContextId, Instant, Namespace, Token
from farm.stores.memory import MemoryCommandLog
from farm.stores.ports.commands import CommandLog, Forgotten
from farm.stores.redis import RedisCommandLog, RedisRegistry
from tests.stores.pool import NS, T0, A, at

NewLog = Callable[[Retention], Awaitable[CommandLog]]
OTHER = Namespace("other")
S = CommandState
WAYS: dict[CommandState, tuple[CommandState, ...]] = {
    S.ADMITTED: (),
    S.WITHDRAWN: (S.WITHDRAWN,),
    S.SEND_ATTEMPTED: (S.SEND_ATTEMPTED,),
    S.ACKNOWLEDGED: (S.SEND_ATTEMPTED, S.ACKNOWLEDGED),
    S.REFUSED: (S.SEND_ATTEMPTED, S.REFUSED),
    S.RESULT: (S.SEND_ATTEMPTED, S.RESULT),
    S.ERROR: (S.SEND_ATTEMPTED, S.ERROR),
}


@pytest.fixture(params=["memory", "redis"])
def new_log(request: pytest.FixtureRequest) -> NewLog:
    async def memory(retention: Retention) -> CommandLog:
        return MemoryCommandLog(since=T0, retention=retention)

    async def redis(retention: Retention) -> CommandLog:
        return RedisCommandLog(await new(1), retention=retention)

    if request.param == "memory":
        return memory
    new: Callable[[int], Awaitable[RedisRegistry]] = request.getfixturevalue("new_redis_registry")
    return redis


def admitted(command_id: str = "c", *, now: Instant = T0, **changes: Any) -> CommandEvidence:
    given: dict[str, Any] = {"namespace": NS, "client_id": A, "kind": "run"}
    return CommandEvidence(command_id=command_id, admitted_at=now, **(given | changes))


def mark(state: CommandState, seconds: float = 1.0, **more: Any) -> Mark:
    return Mark(state=state, at=at(seconds), **more)


async def found(log: CommandLog, command_id: str = "c", seconds: float = 9.0) -> CommandEvidence:
    evidence = await log.find(NS, command_id, now=at(seconds))
    assert isinstance(evidence, CommandEvidence)
    return evidence


async def test_what_is_admitted_is_found_as_it_was_given(new_log: NewLog) -> None:
    log = await new_log(Retention())
    plain = admitted()
    full = admitted(
        "full: ünïcode\ud800",
        context_id=ContextId("T1"),
        token=Token(store_epoch=3, counter=10**16),
        declared=Declared(effect=Effect.ONCE, reconcilable=False),
    )
    assert await log.admit(plain)
    assert await log.admit(full)
    assert await found(log) == plain
    assert await found(log, full.command_id) == full


async def test_each_step_adds_what_it_knows_and_keeps_what_was_known(new_log: NewLog) -> None:
    log = await new_log(Retention())
    await log.admit(admitted())
    assert await log.mark(NS, "c", mark(S.SEND_ATTEMPTED, 1.1))
    assert await log.mark(NS, "c", mark(S.ACKNOWLEDGED, 2.2))
    payload = Payload(text='{"a":[],"n":null,"ü":1e-9}', size=28)
    assert await log.mark(NS, "c", mark(S.RESULT, 3.3, payload=payload))
    assert await found(log) == replace(
        admitted(),
        state=S.RESULT,
        send_attempted_at=at(1.1),
        acknowledged_at=at(2.2),
        settled_at=at(3.3),
        payload=payload,
    )


async def test_a_result_without_an_acknowledgement_is_one(new_log: NewLog) -> None:
    log = await new_log(Retention())
    await log.admit(admitted())
    await log.mark(NS, "c", mark(S.SEND_ATTEMPTED))
    cut = Payload(text=None, size=10**6)
    await log.mark(NS, "c", mark(S.ERROR, 4.0, reason="timed_out", payload=cut))
    one = await found(log)
    assert (one.acknowledged_at, one.settled_at) == (at(4.0), at(4.0))
    assert (one.reason, one.payload) == ("timed_out", cut)


async def test_an_error_of_our_own_does_not_say_that_the_agent_had_it(new_log: NewLog) -> None:
    log = await new_log(Retention())
    await log.admit(admitted())
    await log.mark(NS, "c", mark(S.SEND_ATTEMPTED))
    await log.mark(NS, "c", mark(S.ERROR, 2.0, reason="client_absent"))
    one = await found(log)
    assert (one.acknowledged_at, one.settled_at) == (None, at(2.0))


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("then", S)
async def test_a_step_is_noted_where_it_can_follow_and_else_changes_nothing(
    new_log: NewLog, state: CommandState, then: CommandState
) -> None:
    log = await new_log(Retention())
    await log.admit(admitted())
    for one in WAYS[state]:
        assert await log.mark(NS, "c", mark(one))
    before = await found(log)
    assert before.state is state
    assert await log.mark(NS, "c", mark(then, 5.0, reason="why")) is (then in AFTER[state])
    after = await found(log)
    assert after.state is (then if then in AFTER[state] else state)
    assert (after == before) is (then not in AFTER[state])


async def test_an_id_is_for_one_command_of_a_namespace(new_log: NewLog) -> None:
    log = await new_log(Retention())
    assert await log.admit(admitted())
    assert not await log.admit(admitted(now=at(5)))
    assert await log.admit(admitted(namespace=OTHER, now=at(7)))
    await log.mark(OTHER, "c", mark(S.SEND_ATTEMPTED))
    assert await found(log) == admitted()


async def test_of_what_never_was_nothing_is_known(new_log: NewLog) -> None:
    log = await new_log(Retention())
    await log.admit(admitted())
    assert await log.find(NS, "other", now=at(1)) == Forgotten(expired=False, since=T0)
    assert not await log.mark(NS, "other", mark(S.SEND_ATTEMPTED))
    assert isinstance(await log.find(OTHER, "c", now=at(1)), Forgotten)


async def test_beyond_the_number_the_oldest_have_expired(new_log: NewLog) -> None:
    log = await new_log(Retention(keep=2))
    for n in range(4):
        await log.admit(admitted(f"c{n}", now=at(n)))
        await log.mark(NS, f"c{n}", mark(S.SEND_ATTEMPTED, n))
        await log.mark(NS, f"c{n}", mark(S.RESULT, n, payload=Payload(text="{}", size=2)))
    for n in (0, 1):
        assert await log.find(NS, f"c{n}", now=at(4)) == Forgotten(expired=True, since=T0)
        assert not await log.mark(NS, f"c{n}", mark(S.ERROR))
        assert not await log.admit(admitted(f"c{n}", now=at(5)))
    for n in (2, 3):
        assert (await found(log, f"c{n}")).payload == Payload(text="{}", size=2)


async def test_beyond_the_age_a_command_has_expired_at_once_and_for_good(new_log: NewLog) -> None:
    log = await new_log(Retention(keep_s=10))
    await log.admit(admitted())
    assert isinstance(await log.find(NS, "c", now=at(9.9)), CommandEvidence)
    assert await log.find(NS, "c", now=at(10)) == Forgotten(expired=True, since=T0)
    await log.admit(admitted("next", now=at(11)))
    assert await log.find(NS, "c", now=at(9)) == Forgotten(expired=True, since=T0)


async def test_of_the_oldest_not_even_that_they_were_is_known_and_it_says_since_when(
    new_log: NewLog,
) -> None:
    log = await new_log(Retention(keep=1))
    for n in range(6):
        await log.admit(admitted(f"c{n}", now=at(n)))
    assert await log.find(NS, "c0", now=at(6)) == Forgotten(expired=False, since=T0)
    assert await log.find(NS, "c1", now=at(6)) == Forgotten(expired=True, since=T0)
    await log.admit(admitted("c6", now=at(6)))
    assert await log.find(NS, "c1", now=at(6)) == Forgotten(expired=False, since=at(1))


async def test_delivery_is_counted_by_agent(new_log: NewLog) -> None:
    log = await new_log(Retention(keep_s=1000))
    steps: dict[str, tuple[Mark, ...]] = {
        "old": (mark(S.SEND_ATTEMPTED),),
        "waits": (),
        "sent": (mark(S.SEND_ATTEMPTED),),
        "runs": (mark(S.SEND_ATTEMPTED), mark(S.ACKNOWLEDGED)),
        "done": (mark(S.SEND_ATTEMPTED), mark(S.RESULT, 50)),
        "busy": (mark(S.SEND_ATTEMPTED), mark(S.REFUSED, 50, reason="busy")),
        "late": (mark(S.SEND_ATTEMPTED), mark(S.REFUSED, 50, reason="busy")),
        "away": (mark(S.WITHDRAWN, 50, reason="client_absent"),),
        "past": (mark(S.WITHDRAWN, 20, reason="client_absent"),),
    }
    for n, (command_id, marks) in enumerate(steps.items()):
        await log.admit(admitted(command_id, now=at(n)))
        for one in marks:
            assert await log.mark(NS, command_id, one)
    await log.admit(admitted("elsewhere", namespace=OTHER, now=at(50)))
    counted = (await log.deliveries(NS, now=at(1000), failed_since=at(30)))[A]
    assert (counted.admitted, counted.in_flight, counted.unacknowledged) == (1, 2, 1)
    assert counted.oldest_at == at(1)
    assert counted.failures == {"busy": 2, "client_absent": 1}


async def test_a_namespace_can_be_forgotten_and_that_is_known_too(new_log: NewLog) -> None:
    log = await new_log(Retention(keep=1))
    for command_id in ("old", "c"):
        await log.admit(admitted(command_id))
    await log.admit(admitted(namespace=OTHER))
    await log.mark(NS, "c", mark(S.SEND_ATTEMPTED))
    await log.mark(NS, "c", mark(S.RESULT, payload=Payload(text="{}", size=2)))
    await log.forget(NS, now=at(5))
    for command_id in ("old", "c"):
        assert await log.find(NS, command_id, now=at(6)) == Forgotten(expired=False, since=at(5))
    assert await log.deliveries(NS, now=at(6), failed_since=T0) == {}
    assert isinstance(await log.find(OTHER, "c", now=at(6)), CommandEvidence)
    # As though it had never been: the id may be used again, and nothing of before comes with it.
    assert await log.admit(admitted(now=at(7)))
    assert await found(log) == admitted(now=at(7))


async def test_to_forget_what_was_never_known_is_no_error(new_log: NewLog) -> None:
    log = await new_log(Retention())
    await log.forget(NS, now=at(5))
    assert await log.deliveries(NS, now=at(6), failed_since=T0) == {}
