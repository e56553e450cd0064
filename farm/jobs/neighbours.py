"""What coordinators of one ledger tell each other of it: hints, and what a person wants.

Nothing rests on a letter's arrival but how soon something is seen: what has changed is in the
ledger, which everybody reads again from time to time.
"""

import asyncio
from collections.abc import Callable

import structlog

from farm.core.model import ClientId, Namespace
from farm.errors import StoreUnavailableError
from farm.jobs.feed import JobFeed
from farm.jobs.ids import random_id
from farm.jobs.interventions import ANSWER_S, Done, Interventions, Wanted
from farm.jobs.ports import Dispatcher
from farm.manager.letters import AboutJobs, Change, Granted, Wish
from farm.manager.relay import Relay
from farm.stores.ports.routes import CoordinatorId

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_TOGETHER_S = 0.05
"""What changes within this goes in one letter."""
_ON_THE_WAY_S = 2.0
_JOBS_AT_ONCE = 500


class Neighbours:
    """Writes to the other coordinators, and does what they write; `run` is to be run.

    Args:
        relay: Carries the letters.
        feed: Whose watchers hear of changes elsewhere, and whose changes the others hear of.
        dispatcher: Hears of queued jobs.
        interventions: Does what people want of attempts that are in hand here.
    """

    def __init__(
        self, relay: Relay, feed: JobFeed, dispatcher: Dispatcher, interventions: Interventions
    ) -> None:
        self._relay = relay
        self._feed = feed
        self._dispatcher = dispatcher
        self._interventions = interventions
        self._changed: dict[str, bool] = {}
        self._due = self._anew = False
        self._namespaces: set[str] = set()
        self._revoked: set[str] = set()
        self.changed: Callable[[Namespace], None] = lambda namespace: None
        """Called when another coordinator has changed what is kept of a namespace."""
        self.revoked: Callable[[str], None] = lambda token_id: None
        """Called when another coordinator has revoked a token."""
        self._stirred = asyncio.Event()
        self._wishes: asyncio.Queue[Wish] = asyncio.Queue()
        self._waiting: dict[str, asyncio.Future[Granted]] = {}
        relay.about_jobs = self._hear
        feed.tell = self._tell

    async def run(self) -> None:
        """Write and do, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write(), name="write of changes")
            while True:
                wish = await self._wishes.get()
                group.create_task(self._grant(wish), name=f"wish {wish.wish_id}")

    async def carry_out(self, client_id: ClientId, job_id: str, wanted: Wanted) -> Done | None:
        """Have what is wanted done by who has the agent's link; None where nobody has done it."""
        wish = Wish(
            sender=self._relay.coordinator,
            wish_id=random_id("wish"),
            job_id=job_id,
            wanted=wanted.kind,
            by=wanted.by,
            text=wanted.text,
        )
        granted = asyncio.get_running_loop().create_future()
        self._waiting[wish.wish_id] = granted
        try:
            holder = await self._relay.holder(client_id)
            if holder is None or holder == self._relay.coordinator:
                return None
            await self._relay.write(wish, to=holder)
            async with asyncio.timeout(ANSWER_S + _ON_THE_WAY_S):
                done: Granted = await granted
        except (StoreUnavailableError, TimeoutError):
            return None
        finally:
            del self._waiting[wish.wish_id]
        return Done(
            intervention_id=done.intervention_id,
            outcome=done.outcome,
            detail=done.detail,
            attempt_id=done.attempt_id,
        )

    def tell_anew(self) -> None:
        """Have the others look anew at what waits."""
        self._anew = True
        self._stirred.set()

    def tell_changed(self, namespace: Namespace) -> None:
        """Let the others know that what they keep of a namespace is old."""
        self._namespaces.add(namespace)
        self._stirred.set()

    def tell_revoked(self, token_id: str) -> None:
        """Let the others know that a token opens nothing any more."""
        self._revoked.add(token_id)
        self._stirred.set()

    def _tell(self, job_id: str, *, may_rest: bool, queued: bool) -> None:
        self._changed[job_id] = may_rest or self._changed.get(job_id, False)
        self._due = self._due or queued
        self._stirred.set()

    def _hear(self, letter: AboutJobs) -> None:
        match letter:
            case Change():
                self._take_in(letter)
            case Wish():
                self._wishes.put_nowait(letter)
            case Granted(wish_id=wish_id):
                waiting = self._waiting.get(wish_id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(letter)

    def _take_in(self, change: Change) -> None:
        for job_id, may_rest in change.jobs.items():
            self._feed.heard(job_id, may_rest=may_rest)
        for namespace in change.namespaces:
            self.changed(Namespace(namespace))
        for token_id in change.revoked:
            self.revoked(token_id)
        if change.anew:
            self._dispatcher.look_anew()
        if change.due:
            self._dispatcher.wake()

    async def _write(self) -> None:
        while True:
            await self._stirred.wait()
            await asyncio.sleep(_TOGETHER_S)
            self._stirred.clear()
            jobs = dict(list(self._changed.items())[-_JOBS_AT_ONCE:])
            letter = Change(
                jobs=jobs,
                due=self._due,
                anew=self._anew,
                namespaces=tuple(sorted(self._namespaces)),
                revoked=tuple(sorted(self._revoked)),
            )
            self._changed, self._due, self._anew = {}, False, False
            self._namespaces, self._revoked = set(), set()
            try:
                await self._relay.write(letter)
            except StoreUnavailableError as error:
                log.debug("change.not_told", reason=error.detail)

    async def _grant(self, wish: Wish) -> None:
        wanted = Wanted(kind=wish.wanted, by=wish.by, text=wish.text)
        done = await self._interventions.carry_out(wish.job_id, wanted)
        letter = Granted(
            wish_id=wish.wish_id,
            intervention_id=done.intervention_id,
            outcome=done.outcome,
            detail=done.detail,
            attempt_id=done.attempt_id,
        )
        try:
            await self._relay.write(letter, to=CoordinatorId(wish.sender))
        except StoreUnavailableError as error:
            log.warning("wish.not_answered", reason=error.detail)
