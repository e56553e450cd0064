"""A browser of names only, behind the port of the real one."""

import asyncio
from collections.abc import Callable

import aiohttp

from agent.ports import (
    BrowserEvent,
    BrowserInfo,
    Channel,
    Evidence,
    Lender,
    Outcome,
    SeenWindow,
    StaleAssignment,
)
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from farm.protocol.plan import BrowserOptions, Plan
from farm.protocol.steps import Effect
from tests.simulated.pages import Pace, Turn, turns

_SITE_S = 2.0
"""A site that says nothing for so long has failed."""


class SimulatedBrowser:
    """Implements `agent.ports.Browser`: whatever is asked for is there at once.

    Steps take their time and fail as the seed has it. One with an effect is told to the farm first,
    as real steps are, then done at the site, then told to be done.
    """

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        site: str | None,
        seed: int,
        pace: Pace,
        may_act: Callable[[], bool],
    ) -> None:
        """Take all that is needed.

        Args:
            session: Does what pages do.
            site: Where effects are done; without one they are only told.
            seed: What everything follows from.
            pace: How pages behave.
            may_act: Whether the farm can't have taken the agent for gone; else nothing leaves it.
        """
        self._session = session
        self._site = site
        self._seed = seed
        self._pace = pace
        self._may_act = may_act

    async def start(self, tell: Callable[[BrowserEvent], None]) -> BrowserInfo:
        return BrowserInfo(product="simulated", executable="", pid=0)

    async def run(self, context_id: str, plan: Plan, evidence: Evidence, lender: Lender) -> Outcome:
        await evidence.note(wire.Started(context_id=context_id))
        try:
            for turn in turns(plan, self._pace, self._seed):
                if (failure := await self._step(plan, turn, evidence)) is not None:
                    return Outcome(outcome="failed", failure=failure, page_gone=True)
        except StaleAssignment:
            over = Failure(reason=Reason.STALE_ASSIGNMENT, detail="it has ended for the farm")
            return Outcome(outcome="failed", failure=over, page_gone=True)
        return Outcome(outcome="succeeded")

    async def _step(self, plan: Plan, turn: Turn, evidence: Evidence) -> Failure | None:
        await evidence.note(wire.StepStarted(index=turn.index, verb=turn.verb, label=turn.verb))
        await asyncio.sleep(turn.takes_s)
        if turn.fails:
            return Failure(reason=Reason.NAVIGATION_FAILED, detail="the seed says so")
        if turn.effect is not Effect.NONE:
            effect_id = f"s{turn.index}.0"
            await evidence.settle(
                wire.EffectBegun(effect_id=effect_id, index=turn.index, effect=turn.effect.value)
            )
            done = await self._do(plan, turn)
            if turn.breaks or not done:
                return Failure(reason=Reason.NAVIGATION_FAILED, detail="nobody knows if it is done")
            await evidence.note(wire.EffectDone(effect_id=effect_id))
        await evidence.note(wire.StepEnded(index=turn.index, ms=turn.takes_s * 1000))
        return None

    async def _do(self, plan: Plan, turn: Turn) -> bool:
        if self._site is None:
            return True
        if not self._may_act():
            return False
        line = {"job": plan.job_id, "step": turn.index, "attempt": plan.attempt_id}
        try:
            async with asyncio.timeout(_SITE_S):
                async with self._session.post(f"{self._site}/effects", json=line) as answer:
                    return answer.ok
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    async def open_window(
        self, window_id: str, context_id: str, options: BrowserOptions, *, resets: bool = False
    ) -> None:
        """Nothing is to be done for it."""

    async def open_tab(self, window_id: str, context_id: str) -> None:
        """Nothing is to be done for it."""

    async def intervene(self, context_id: str, wanted: wire.Intervene) -> None:
        raise KeyError(context_id)  # it advertises nothing of the kind

    async def look(self) -> tuple[SeenWindow, ...]:
        return ()

    async def weigh(self) -> tuple[float, float]:
        return 0.0, 0.0

    async def reset(self, context_id: str) -> bool:
        return True

    async def close_tab(self, context_id: str) -> None:
        """Nothing is to be done for it."""

    async def close_window(self, window_id: str) -> None:
        """Nothing is to be done for it."""

    async def watch(self, context_id: str, channel: Channel) -> None:
        """There is nothing to be seen."""

    async def drain(self) -> None:
        """Nobody is there to be shown it."""

    async def probe(self) -> None:
        """It is well."""

    async def kill(self) -> None:
        """Nothing is left of it anyway."""
