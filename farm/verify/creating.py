"""Points 7 and 8: how much is created, and by whom."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.eligibility import Reason
from farm.core.model import Capacity, Client
from farm.core.placement import BrowserPlacement, Mode
from farm.manager.handle import ContextHandle
from farm.manager.manager import Acquired, NotAcquired, WorkerContextManager
from farm.verify.client import ProbeClient
from farm.verify.outcomes import RefutedError, Seen, demand
from farm.verify.stage import A, B, Stage

_CREATORS = 9
_WINDOWS = 2
_TABS = 3
_CAPACITY = Capacity(max_concurrency=8, max_windows=_WINDOWS, max_tabs_per_window=_TABS)
_WINDOW = BrowserPlacement(mode=Mode.NEW_WINDOW)
_IDENTITY = "farm-verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """What became of creators who all asked before anything was there."""

    orders: int
    """What the client was told to open."""
    reserved: int
    """What was reserved on it at that moment."""
    outcomes: Sequence[Acquired | NotAcquired]

    @property
    def handles(self) -> Sequence[ContextHandle]:
        """What was created and is held."""
        return [outcome.handle for outcome in self.outcomes if isinstance(outcome, Acquired)]


async def creation_keeps_to_the_limits(stage: Stage, seen: Seen) -> None:
    """Prove point 7: of windows, and of the tabs of one window."""
    probe = await stage.probe(7, "limits", capacity=_CAPACITY, closes=True)
    negotiated = (await stage.known(probe)).capacity
    seen(
        f"negotiated: {negotiated.max_windows} windows, {negotiated.max_tabs_per_window} tabs in"
        f" each, {negotiated.max_concurrency} slots"
    )
    managers = (stage.a,)
    windows = await _race(stage, probe, managers, _WINDOW, "7:window")
    _kept_to(windows, negotiated.max_windows, "window")
    seen(_story(windows, "window", managers))
    for handle in windows.handles:
        await handle.release()
    await stage.until(
        probe, lambda c: c is not None and not c.windows, "has not closed its windows"
    )
    in_identity = BrowserPlacement(mode=Mode.IDENTITY, identity=_IDENTITY)
    await stage.take(stage.a, probe, "7:identity", auto_provision=True, placement=in_identity)
    new_tab = BrowserPlacement(mode=Mode.NEW_TAB, identity=_IDENTITY)
    tabs = await _race(stage, probe, managers, new_tab, "7:tab")
    _kept_to(tabs, negotiated.max_tabs_per_window - 1, "further tab")
    seen(_story(tabs, "further tab", managers))
    await _nothing_reserved(stage, probe)


async def only_the_elected_creates(stage: Stage, seen: Seen) -> None:
    """Prove point 8: with an owner the others create nothing; with any, all keep to the limits."""
    probe = await stage.probe(8, "owned", capacity=_CAPACITY)
    elected, other = stage.manager(A, owner=A), stage.manager(B, owner=A)
    refused = await _race(stage, probe, (other,), _WINDOW, "8:refused")
    demand(refused.orders == 0, f"who is not elected had {refused.orders} windows opened")
    demand(refused.reserved == 0, f"who is not elected reserved {refused.reserved} windows")
    _all_refused(refused, probe)
    seen(
        f"provisioning_owner={A}: {_CREATORS} creations of another were refused,"
        f" {Reason.NOT_PROVISIONING_OWNER}; nothing was reserved, nothing sent"
    )
    made = await stage.take(elected, probe, "8:elected", auto_provision=True, placement=_WINDOW)
    demand(probe.opening() == 1, f"one creation of the elected was {probe.opening()} orders")
    await made.release()
    await stage.idle(probe, 1)
    await stage.take(other, probe, "8:lent")
    seen(f"{A} created {made.assignment.context_id}, and the other was lent it afterwards")

    free = await stage.probe(8, "any", capacity=_CAPACITY)
    managers = (stage.a, stage.b)
    race = await _race(stage, free, managers, _WINDOW, "8:any")
    _kept_to(race, (await stage.known(free)).capacity.max_windows, "window")
    seen(f"provisioning_owner=any: {_story(race, 'window', managers)}")
    await _nothing_reserved(stage, free)


async def _race(
    stage: Stage,
    probe: ProbeClient,
    managers: Sequence[WorkerContextManager],
    placement: BrowserPlacement,
    task: str,
) -> Race:
    """Let creators ask at once, and the client open nothing until each has been served or refused.

    So all of them meet the same room, and what is reserved can be counted while it is.
    """
    before, orders, reserved = probe.opening(), 0, 0
    probe.may_open.clear()
    try:
        async with asyncio.TaskGroup() as group:
            calls = [
                group.create_task(
                    stage.ask(
                        managers[n % len(managers)],
                        stage.only(probe),
                        f"{task}.{n}",
                        placement=placement,
                        auto_provision=True,
                    ),
                    name=f"creator {n}",
                )
                for n in range(_CREATORS)
            ]

            def all_served(client: Client | None) -> bool:
                nonlocal orders, reserved
                orders = probe.opening() - before
                reserved = 0 if client is None else _reserved(client)
                return orders + sum(call.done() for call in calls) >= _CREATORS

            await stage.until(probe, all_served, "had creators who were neither served nor refused")
            probe.may_open.set()
    finally:
        probe.may_open.set()
    outcomes = [call.result() for call in calls]
    return Race(orders=probe.opening() - before, reserved=reserved, outcomes=outcomes)


def _reserved(client: Client) -> int:
    return client.opening_windows + sum(client.opening_tabs.values())


def _kept_to(race: Race, room: int, what: str) -> None:
    demand(
        race.orders <= room, f"{race.orders} {what}s were opened where there was room for {room}"
    )
    demand(
        race.reserved == race.orders,
        f"{race.reserved} reservations for {race.orders} {what}s that were being opened",
    )
    held = {(h.assignment.context_id, h.assignment.token) for h in race.handles}
    demand(
        len(race.handles) == len(held) == race.orders,
        f"{race.orders} {what}s were opened, and {len(race.handles)} creators hold {len(held)}",
    )
    demand(race.orders == room, f"{race.orders} {what}s were opened, with room for {room}")


def _all_refused(race: Race, probe: ProbeClient) -> None:
    for outcome in race.outcomes:
        if isinstance(outcome, Acquired):
            raise RefutedError("who is not elected created and holds a window")
        reason = outcome.verdict.clients.get(probe.client_id)
        demand(
            reason is Reason.NOT_PROVISIONING_OWNER,
            f"who is not elected was told {reason}, not {Reason.NOT_PROVISIONING_OWNER}",
        )


async def _nothing_reserved(stage: Stage, probe: ProbeClient) -> None:
    left = _reserved(await stage.known(probe))
    demand(left == 0, f"{left} reservations are left after the creations")


def _story(race: Race, what: str, managers: Sequence[WorkerContextManager]) -> str:
    return (
        f"{_CREATORS} creators at once over {len(managers)} manager(s): {race.orders} {what}(s)"
        f" opened, {race.reserved} reserved meanwhile, {len(race.handles)} held,"
        f" {_CREATORS - len(race.handles)} refused"
    )
