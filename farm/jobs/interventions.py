"""What a person does to a running attempt: handed to the agent that holds it, and answered."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farm.core.model import ClientId
from farm.errors import ClientAbsentError
from farm.jobs.live import LiveAttempt, LiveAttempts
from farm.manager.commands import to_wire_token
from farm.manager.delivery import AppNode
from farm.protocol import messages as wire

ANSWER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody wants."""

    kind: wire.Intervention
    by: str
    text: str = ""
    """Of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of it."""

    intervention_id: str
    outcome: wire.InterventionOutcome
    detail: str = ""
    attempt_id: str | None = None


class Interventions:
    """Routes them by who holds the attempt, and only to who has said that it can do such.

    Args:
        live: The attempts in hand.
        app_node: Reaches their agents.
        new_id: Makes an id from a prefix.
        answer_s: An agent that says nothing for so long is taken to be out of reach.
    """

    def __init__(
        self,
        live: LiveAttempts,
        app_node: AppNode,
        new_id: Callable[[str], str],
        *,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._live = live
        self._app_node = app_node
        self._new_id = new_id
        self._answer_s = answer_s
        self._can: dict[ClientId, frozenset[str]] = {}
        self._waiting: dict[str, tuple[ClientId, asyncio.Future[wire.Intervened]]] = {}

    def advertised(self, client_id: ClientId, capabilities: Sequence[str]) -> None:
        """Take in what an agent can do; it replaces what was known."""
        self._can[client_id] = frozenset(capabilities)

    def answered(self, client_id: ClientId, answer: wire.Intervened) -> None:
        """Take in what an agent has made of one; an answer nobody waits for is dropped."""
        waiting = self._waiting.get(answer.intervention_id)
        if waiting is not None and waiting[0] == client_id and not waiting[1].done():
            waiting[1].set_result(answer)

    def done_here(self) -> Done:
        """Return the outcome of one for which no agent is needed."""
        return Done(intervention_id=self._new_id("int"), outcome="applied")

    async def carry_out(self, job_id: str, wanted: Wanted) -> Done:
        """Have it done to a job's attempt, and return what became of it. Never raises.

        `stale_target` is said where nobody holds an attempt of the job, or can be reached.
        """
        intervention_id = self._new_id("int")
        live = self._live.of_job(job_id)
        if live is None or live.over or not live.sent:
            detail = "no attempt of the job is running"
            return Done(intervention_id=intervention_id, outcome="stale_target", detail=detail)
        if wanted.kind not in self._can.get(live.client_id, frozenset()):
            return Done(
                intervention_id=intervention_id,
                outcome="capability_not_supported",
                detail=_cannot(live.client_id, wanted.kind),
                attempt_id=live.attempt_id,
            )
        answer = await self._ask(intervention_id, live, wanted)
        return Done(
            intervention_id=intervention_id,
            outcome=answer.outcome,
            detail=answer.detail,
            attempt_id=live.attempt_id,
        )

    async def _ask(
        self, intervention_id: str, live: LiveAttempt, wanted: Wanted
    ) -> wire.Intervened:
        answer: asyncio.Future[wire.Intervened] = asyncio.get_running_loop().create_future()
        self._waiting[intervention_id] = (live.client_id, answer)
        order = wire.Intervene(
            intervention_id=intervention_id,
            command_id=live.command_id,
            token=to_wire_token(live.token),
            kind=wanted.kind,
            by=wanted.by,
            text=wanted.text,
        )
        try:
            await self._app_node.tell(live.client_id, order)
            async with asyncio.timeout(self._answer_s):
                return await answer
        except (ClientAbsentError, TimeoutError):
            return wire.Intervened(
                intervention_id=intervention_id,
                outcome="stale_target",
                detail=f"the agent {live.client_id} can't be reached",
            )
        finally:
            del self._waiting[intervention_id]


def _cannot(client_id: ClientId, kind: wire.Intervention) -> str:
    if kind == "message":
        return f"{client_id} can't show a message: its browser has no windows with the overlay"
    return f"{client_id} can't do that: {kind.replace('_', ' ')}"
