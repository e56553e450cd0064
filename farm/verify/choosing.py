"""Points 1 to 3: who is selected, and by how many at once."""

import asyncio
from typing import Any

from farm.core.eligibility import Reason, canonical
from farm.manager.manager import Acquired
from farm.manager.strategies import RoundRobinStrategy
from farm.verify.client import ProbeClient
from farm.verify.outcomes import RefutedError, Seen, UnprovenError, demand
from farm.verify.stage import Stage

_CALLERS = 12
_TABS = 3
_ROUNDS = 4


async def absent_clients_are_not_selected(stage: Stage, seen: Seen) -> None:
    """Prove point 1: by a link that closes, and by silence on one that stays open."""
    mute = await stage.probe(1, "mute", tabs=1)
    gone = await stage.probe(1, "gone", tabs=1)
    for probe in (gone, mute):
        handle = await stage.take(stage.a, probe, f"1:{probe.script.metadata['probe']}")
        await handle.release()
        await stage.idle(probe, 1)
    seen("connected, each of the two clients was lent")
    mute.fall_silent()
    await gone.hang_up()
    await stage.until(gone, lambda c: c is None or c.link is None, "was not noticed to have gone")
    await _not_selected(stage, gone, seen, "its link closed")
    window_s = (await stage.snapshot()).presence_window_s
    await _past(stage, mute, window_s)
    await _not_selected(stage, mute, seen, f"silent for {window_s:g} s on an open link")


async def _past(stage: Stage, mute: ProbeClient, window_s: float) -> None:
    while True:
        left_s = (await stage.known(mute)).seen_at + window_s - stage.farm.clock()
        if left_s < 0:
            return
        await asyncio.sleep(left_s + 0.01)


async def _not_selected(stage: Stage, probe: ProbeClient, seen: Seen, why: str) -> None:
    client = await stage.known(probe)
    if not client.contexts:
        raise UnprovenError(f"the report of {probe.client_id} does not stand any more")
    for manager in (stage.a, stage.b):
        outcome = await stage.ask(manager, stage.only(probe), "1:absent")
        if isinstance(outcome, Acquired):
            raise RefutedError(f"{stage.named(manager)} was lent {probe.client_id}, {why}")
        reason = outcome.verdict.clients.get(probe.client_id)
        if reason is not Reason.ABSENT:
            raise UnprovenError(f"{probe.client_id} was passed over for another reason: {reason}")
    seen(
        f"{probe.client_id}, {why}, with {len(client.contexts)} tab in its last report:"
        f" neither manager was lent it; verdict: {Reason.ABSENT}"
    )


_ONE: dict[str, Any] = {"region": "eu", "level": 1, "none": None, "tags": {"a": [1, True]}}
_TWO: dict[str, Any] = {"region": "us", "level": "1"}
_CASES: tuple[tuple[dict[str, Any], str | None], ...] = (
    ({"region": "eu"}, "one"),
    ({"region": "us"}, "two"),
    ({"level": 1}, "one"),
    ({"level": "1"}, "two"),
    ({"level": 1.0}, None),
    ({"level": True}, None),
    ({"none": None}, "one"),
    ({"missing": None}, None),
    ({"tags": {"a": [1, True]}}, "one"),
    ({"tags": {"a": [1]}}, None),
    ({"region": "eu", "level": "1"}, None),
)


async def requirements_admit_whom_they_mean(stage: Stage, seen: Seen) -> None:
    """Prove point 2: equality of JSON values, types counted, of every key required."""
    probes = {
        "one": await stage.probe(2, "one", tabs=1, metadata=_ONE),
        "two": await stage.probe(2, "two", tabs=1, metadata=_TWO),
    }
    seen(f"one has {canonical(_ONE)}, two has {canonical(_TWO)}")
    for number, (required, meant) in enumerate(_CASES):
        manager = stage.b if number % 2 else stage.a
        outcome = await stage.ask(manager, {**stage.required(2), **required}, f"2:{number}")
        if isinstance(outcome, Acquired):
            lent = outcome.handle.assignment.client_id
            got = next((name for name, p in probes.items() if p.client_id == lent), lent)
        else:
            got = None
        asked = canonical(required)
        demand(
            got == meant,
            f"{asked} was to admit {meant or 'nobody'}, and admitted {got or 'nobody'}",
        )
        if isinstance(outcome, Acquired):
            await outcome.handle.release()
            await stage.idle(probes[str(meant)], 1)
        seen(f"{asked} admits {meant or 'nobody'}")


async def one_context_is_lent_once(stage: Stage, seen: Seen) -> None:
    """Prove point 3: of many callers over two managers, as many hold as there are contexts."""
    probe = await stage.probe(3, "shared", tabs=_TABS)
    for number in range(_ROUNDS):
        strategy = RoundRobinStrategy(scope="process") if number % 2 else None
        async with asyncio.TaskGroup() as group:
            calls = [
                group.create_task(
                    stage.ask(
                        stage.b if caller % 2 else stage.a,
                        stage.only(probe),
                        f"3:{number}.{caller}",
                        strategy=strategy,
                    ),
                    name=f"caller {caller}",
                )
                for caller in range(_CALLERS)
            ]
        handles = [o.handle for o in (c.result() for c in calls) if isinstance(o, Acquired)]
        contexts = {handle.assignment.context_id for handle in handles}
        tokens = {handle.assignment.token for handle in handles}
        demand(
            len(handles) == len(contexts) == len(tokens),
            f"{len(handles)} callers at once hold {len(contexts)} contexts, {len(tokens)} tokens",
        )
        demand(
            len(handles) == _TABS,
            f"of {_CALLERS} callers at once {len(handles)} hold one of {_TABS} contexts",
        )
        for handle in handles:
            demand(await stage.holds(handle), "a caller was given what the registry has not lent")
            await handle.release()
        seen(
            f"{_CALLERS} callers at once, {'round robin' if strategy else 'no strategy'}:"
            f" {len(handles)} hold {', '.join(sorted(contexts))}, one each"
        )
        await stage.idle(probe, _TABS)
