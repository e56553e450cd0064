"""What a step of a flow works with: client, page, clock, variables, and the journal of effects."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.console.fetching import Answer, Ask, Client, NotSent
from agent.console.page import Page, blank
from agent.ports import Evidence
from agent.steps.collecting import Kept
from agent.steps.failed import StepFailed
from agent.steps.substitution import Names
from agent.steps.timing import StepClock
from farm.protocol.failures import Reason
from farm.protocol.messages import EffectBegun, EffectDone, Notice
from farm.protocol.plan import Plan
from farm.protocol.steps import Effect, StepBase, effect_of

_BEFORE_ACTING = frozenset({Reason.NEEDS_BROWSER, Reason.VALUE_INVALID})


class Activities(Protocol):
    """The coroutines that are installed beside the agent."""

    async def run(self, name: str, args: Mapping[str, Any], context: "ActivityContext") -> object:
        """Run one; see `agent.console.activities`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityContext:
    """What an activity is given first: whom it works for, and the flow's own way to the network."""

    job_id: str
    attempt_id: str
    attempt_number: int
    step: str
    """The step's id, or the activity's name."""
    params: Mapping[str, Any]
    variables: Mapping[str, Any]
    """What earlier steps have kept; to keep something, return it."""
    page_url: str
    page_markup: Callable[[], str]
    """Gives the page as it was read last, as markup."""
    fetch: Callable[[Ask], Any]
    """Asks a server with the flow's cookies, under the job's rules of where it may go."""
    notice: Callable[[str], Any]
    """Awaited with a text, writes it into the job's history."""


@dataclass(slots=True, kw_only=True)
class Flow:
    """What the steps of one attempt share."""

    client: Client
    plan: Plan
    evidence: Evidence
    activities: Activities
    page: Page = field(default_factory=blank)
    variables: dict[str, Any] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    index: int = 0

    def names(self) -> Names:
        """Return what a text may refer to at this moment."""
        page = {"url": self.page.url, "title": self.page.title}
        return {"vars": self.variables, "params": self.plan.params, "page": page}


class Stage:
    """One step of a flow."""

    def __init__(self, flow: Flow, step: StepBase, clock: StepClock) -> None:
        self.flow = flow
        self.clock = clock
        self._step = step
        self._effects = 0

    @property
    def counts_as(self) -> Effect:
        """What the step may do outside: by its own word, else by its verb and the job."""
        return effect_of(self._step, self.flow.plan.effects)

    @asynccontextmanager
    async def effect(
        self, *, method: str | None = None, url: str | None = None
    ) -> AsyncIterator[None]:
        """Journal the body as an effect, as in a tab: durable at the farm before it runs.

        A body that raises leaves the effect begun and not done, unless what it raised says that
        nothing was done yet.

        Raises:
            StaleAssignment: If the attempt has ended for the farm; the body has not run.
        """
        counts_as = self.counts_as
        if counts_as is Effect.NONE:
            yield
            return
        effect_id = f"s{self.flow.index}.{self._effects}"
        self._effects += 1
        begun = EffectBegun(
            effect_id=effect_id,
            index=self.flow.index,
            effect=counts_as.value,
            method=method,
            url=url,
        )
        async with self.clock.stopped():
            await self.flow.evidence.settle(begun)
        try:
            yield
        except StepFailed as failure:
            if isinstance(failure, NotSent) or failure.reason in _BEFORE_ACTING:
                await self.flow.evidence.note(EffectDone(effect_id=effect_id))
            raise
        await self.flow.evidence.note(EffectDone(effect_id=effect_id))

    async def fetch(self, ask: Ask) -> Answer:
        """Ask with the flow's client."""
        return await self.flow.client.fetch(ask)

    async def notice(self, code: str, detail: str) -> None:
        """Note something that fails nothing."""
        await self.flow.evidence.note(
            Notice(code=code, detail=detail[:2000], index=self.flow.index)
        )

    async def upload(self, name: str, content: bytes, media_type: str) -> None:
        """Store an artifact; the step's clock stands still meanwhile.

        Raises:
            UploadRefused: If the farm does not take it.
        """
        async with self.clock.stopped():
            await self.flow.evidence.upload(name, content, media_type)
