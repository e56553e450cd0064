"""Whatever happens to commands, in whatever order, both logs say the same of them."""

import asyncio
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.core.commands import CommandState, Mark, Payload, Retention
from farm.core.model import ClientId, Namespace
from farm.stores.memory import MemoryCommandLog
from farm.stores.ports.commands import CommandLog, Forgotten
from farm.stores.redis import RedisCommandLog, RedisRegistry, connect
from tests.stores.conftest import shards
from tests.stores.pool import NS, T0, WINDOW_S, at
from tests.stores.test_commands import OTHER, admitted

IDS = ("c1", "c2", "c3", "c4")
RETENTION = Retention(keep=2, keep_s=30.0)

namespaces = st.sampled_from((NS, NS, OTHER))
payloads = st.none() | st.builds(
    lambda text, size: Payload(text=text, size=size),
    st.none() | st.just('{"n":1}'),
    st.integers(0, 10**6),
)
admissions = st.tuples(namespaces, st.sampled_from(IDS), st.sampled_from("ab").map(ClientId))
marks = st.tuples(
    namespaces,
    st.sampled_from(IDS),
    st.sampled_from(CommandState),
    st.none() | st.sampled_from(("busy", "why")),
    payloads,
)
passing = st.floats(0.001, 1) | st.floats(1, 40)
Step = (
    tuple[Namespace, str, ClientId]
    | tuple[Namespace, str, CommandState, str | None, Payload | None]
)


async def told(log: CommandLog, steps: Sequence[tuple[float, Step]]) -> list[object]:
    """Do the steps; return all that the log says on the way."""
    now, said = 0.0, list[object]()
    for seconds, step in steps:
        now += seconds
        if len(step) == 3:
            namespace, command_id, client_id = step
            evidence = admitted(command_id, namespace=namespace, client_id=client_id, now=at(now))
            said.append(await log.admit(evidence))
        else:
            namespace, command_id, state, reason, payload = step
            mark = Mark(state=state, at=at(now), reason=reason, payload=payload)
            said.append(await log.mark(namespace, command_id, mark))
        for one in IDS:
            found = await log.find(namespace, one, now=at(now))
            # Of a namespace without any command, memory knows since it began.
            said.append(found.expired if isinstance(found, Forgotten) else found)
        said.append(await log.deliveries(namespace, now=at(now), failed_since=at(now - 10)))
    return said


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(st.tuples(passing, admissions | marks), max_size=25))
def test_the_logs_in_memory_and_over_redis_say_the_same(
    redis_url: str, steps: list[tuple[float, Step]]
) -> None:
    async def both() -> None:
        memory = MemoryCommandLog(since=T0, retention=RETENTION)
        redis = connect(redis_url)
        registry = RedisRegistry(redis, presence_window_s=WINDOW_S, shard=f"{next(shards)}")
        await registry.open(store_epoch=1)
        over_redis = RedisCommandLog(registry, retention=RETENTION)
        assert await told(memory, steps) == await told(over_redis, steps)
        await redis.aclose()

    asyncio.run(both())
