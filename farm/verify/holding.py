"""Points 4 to 6: what a handle may, and when what it holds ends."""

import asyncio
from collections.abc import Awaitable, Callable

from farm.core.model import Token
from farm.errors import CollaboratorMissingError, StaleAssignmentError
from farm.manager.commands import to_wire_token
from farm.manager.handle import ContextHandle
from farm.verify.outcomes import RefutedError, Seen, UnprovenError, demand
from farm.verify.stage import VERIFY, Stage, held

_TIMEOUT_S = 4.0
_RENEWALS = 5
"""In each timeout."""
_SWEEP_S = 10.0
"""The sweep is to have released abandoned work so long after its time at the latest."""


async def stale_handles_do_nothing(stage: Stage, seen: Seen) -> None:
    """Prove point 4: on a context that a later task holds."""
    probe = await stage.probe(4, "single", tabs=1)
    first = await stage.take(stage.a, probe, "4:first")
    await stage.command(first)
    await first.release()
    await stage.idle(probe, 1)
    later = await stage.take(stage.b, probe, "4:later")
    before = (await stage.known(probe)).assignments
    seen(
        f"4:first held {first.assignment.context_id} under {_text(first.assignment.token)} and"
        f" released it; 4:later holds it under {_text(later.assignment.token)}"
    )
    sent = len(probe.orders)
    await _refused("send", first.probe)
    await _refused("renew", first.renew)
    demand(not await first.release(), "a stale handle released what a later task holds")
    demand(await stage.holds(later), "the later task holds its context no more")
    await stage.command(later)
    stale = to_wire_token(first.assignment.token)
    came = [order for order in probe.orders[sent:] if order.token == stale]
    demand(not came, f"{len(came)} commands under the stale token reached the client")
    after = (await stage.known(probe)).assignments
    demand(after == before, f"the later task's assignment was changed: {before} to {after}")
    seen("the stale handle's send and renewal were refused, its release did nothing")
    seen("no command of it reached the client, and the later handle still commands the context")


async def _refused(what: str, act: Callable[[], Awaitable[object]]) -> None:
    try:
        await act()
    except StaleAssignmentError:
        return
    raise RefutedError(f"a stale handle could {what}")


async def only_abandoned_work_is_swept(stage: Stage, seen: Seen) -> None:
    """Prove point 5: two assignments of one timeout, one renewed, under the farm's own sweep."""
    probe = await stage.probe(5, "two", tabs=2)
    timeout_ms = _TIMEOUT_S * 1000
    kept = await stage.take(stage.a, probe, "5:renewed", timeout_ms=timeout_ms)
    left = await stage.take(stage.b, probe, "5:abandoned", timeout_ms=timeout_ms)
    first_end, over = kept.assignment.expires_at, left.assignment.expires_at
    clock = stage.farm.clock
    renewals = 0
    while await stage.holds(left):
        if clock() > over + _SWEEP_S:
            raise RefutedError(f"abandoned work still holds {_SWEEP_S:g} s after its time")
        await asyncio.sleep(_TIMEOUT_S / _RENEWALS)
        await _renewed(stage, kept)
        renewals += 1
    ended = clock()
    await _renewed(stage, kept)
    demand(ended >= over, f"abandoned work was released {over - ended:.1f} s before its time")
    demand(await stage.holds(kept), "work that renewed in time was released")
    seen(
        f"timeout_ms={timeout_ms:g}: {left.assignment.context_id}, never renewed, was released"
        f" within {ended - over:.1f} s of its end"
    )
    seen(
        f"{kept.assignment.context_id}, renewed {renewals} times, holds"
        f" {clock() - first_end:.1f} s after its first end"
    )
    await stage.idle(probe, 1)
    again = await stage.take(stage.b, probe, "5:next")
    demand(
        again.assignment.context_id == left.assignment.context_id,
        "what was lent next is not what was released",
    )
    seen("what was released was lent to the next task")


async def _renewed(stage: Stage, handle: ContextHandle) -> None:
    try:
        await handle.renew()
    except StaleAssignmentError:
        if stage.farm.clock() > handle.assignment.expires_at:
            raise UnprovenError("this coordinator was too busy to renew in time") from None
        raise RefutedError("an assignment that was renewed in time has ended") from None


async def a_disconnect_releases_its_own(stage: Stage, seen: Seen) -> None:
    """Prove point 6: by the disconnect hook, and by an agent that says that it leaves."""
    stays = await stage.probe(6, "stays", tabs=1)
    leaves = await stage.probe(6, "leaves", tabs=2)
    other = await stage.take(stage.b, stays, "6:stays")
    mine = [await stage.take(stage.a, leaves, f"6:leaves.{n}") for n in range(2)]
    link = (await stage.known(leaves)).link
    await leaves.hang_up()
    await stage.until(leaves, lambda c: c is None or c.link is None, "was not noticed to have gone")
    still = len((await stage.known(leaves)).assignments)
    try:
        released = await stage.a.on_client_disconnect(VERIFY, leaves.client_id, link=link)
    except CollaboratorMissingError as missing:
        raise UnprovenError(missing.detail) from None
    # Fewer where the farm's own policy, which is to release at once, comes in between.
    demand(released <= still, f"the hook released {released} assignments of the client's {still}")
    client = await stage.known(leaves)
    demand(not client.assignments, f"the client that has gone still holds {held(client)}")
    demand(len(client.contexts) == 2, "the hook removed contexts")
    for handle in mine:
        await _refused("renew after its client's disconnect", handle.renew)
    await _still_holds(stage, other)
    seen(
        f"of the 2 assignments of the client whose link closed the hook released {released},"
        f" the farm's own policy {2 - released}; none is left, and the contexts stand"
    )
    await stage.dial(leaves)
    await stage.idle(leaves, 2)
    await stage.take(stage.a, leaves, "6:again")
    await leaves.leave()
    await stage.until(
        leaves,
        lambda c: c is None or not c.assignments,
        "said bye, and what it held was not released",
        error=RefutedError,
    )
    await _still_holds(stage, other)
    seen("the client came back, was lent again, and said bye: the farm released what it held")
    seen(f"the other client held {other.assignment.context_id} throughout, under one token")


async def _still_holds(stage: Stage, handle: ContextHandle) -> None:
    demand(await stage.holds(handle), "the disconnect of one client released another's task")
    await _renewed(stage, handle)


def _text(token: Token) -> str:
    return f"{token.store_epoch}.{token.counter}"
