"""The attempts this coordinator has in hand, and what their tasks wait for."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from farm.core.control import AFTER, HELD
from farm.core.model import ClientId, Token
from farm.jobs.ports import Progress
from farm.protocol import messages as wire
from farm.stores.records import Attempt


class AttemptMovedError(Exception):
    """Another coordinator looks after the attempt: nothing of it is to be ended here."""


def _future() -> "asyncio.Future[str]":
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, kw_only=True, eq=False)
class LiveAttempt:
    """One attempt in hand. `lost` and `cancelled` wake the task that watches over it."""

    job_id: str
    attempt_id: str
    number: int
    command_id: str
    client_id: ClientId
    token: Token
    steps: int
    in_flow: bool = False
    """It runs in a flow, and not in a tab."""
    stored: int = 0
    """The number of the last entry that is durable."""
    sent: bool = False
    """The command has gone out; an agent that does not know of it has lost it."""
    over: bool = False
    """It has ended, and only the ledger has to be told."""
    acknowledged: bool = False
    """The agent has taken the command up."""
    progress: Progress | None = None
    held: bool = False
    """A person has paused it, or has taken over: the job's time stands still."""
    lost: asyncio.Future[str] = field(default_factory=_future)
    cancelled: asyncio.Future[str] = field(default_factory=_future)
    """Holds the reason, as `wire.Cancel` says it."""
    moved: asyncio.Future[str] = field(default_factory=_future)
    """Another coordinator has it, or has ended it."""
    let_go: bool = False
    """Its task has ended: nobody waits for what the agent says."""
    takes: int = 0
    """How often it was taken over while it was in hand; what was read of it before is old."""

    def lose(self, why: str) -> None:
        """Let its task know that the attempt is dead and will send nothing more."""
        if not self.lost.done():
            self.lost.set_result(why)

    def cancel(self, why: str) -> None:
        """Let its task know that somebody wants it stopped."""
        if not self.cancelled.done():
            self.cancelled.set_result(why)

    def move(self) -> None:
        """Let its task know that another coordinator looks after the attempt."""
        if not self.moved.done():
            self.moved.set_result("")

    def taken_over(self, attempt: Attempt) -> None:
        """It is this coordinator's, and so far; its task, if it has not let go yet, goes on."""
        self.takes += 1
        if self.moved.done():
            self.moved = _future()
        self.stored = max(self.stored, attempt.last_seq)

    def order_to_stop(self) -> wire.Cancel:
        """Return what tells the agent to stop it, once somebody wants that."""
        return wire.Cancel.model_validate(
            {"command_id": self.command_id, "reason": self.cancelled.result()}
        )

    def follow(self, entries: Iterable[wire.Entry]) -> None:
        """Remember the step that the agent says it is on."""
        for entry in entries:
            if isinstance(entry.event, wire.ControlMoved):
                self.held = AFTER[entry.event.kind] in HELD
            if isinstance(entry.event, wire.StepStarted):
                self.progress = Progress(
                    step_index=entry.event.index,
                    step=entry.event.label,
                    verb=entry.event.verb,
                    steps=self.steps,
                )


class LiveAttempts:
    """All of them, by id."""

    def __init__(self) -> None:
        self._by_id: dict[str, LiveAttempt] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, attempt: LiveAttempt) -> None:
        """Take one in hand."""
        self._by_id[attempt.attempt_id] = attempt
        self._empty.clear()

    def discard(self, attempt: LiveAttempt) -> None:
        """Let one go."""
        attempt.let_go = True
        if self._by_id.get(attempt.attempt_id) is attempt:
            del self._by_id[attempt.attempt_id]
        if not self._by_id:
            self._empty.set()

    def get(self, attempt_id: str) -> LiveAttempt | None:
        """Return one."""
        return self._by_id.get(attempt_id)

    def of_job(self, job_id: str) -> LiveAttempt | None:
        """Return the attempt of a job that is in hand."""
        return next((a for a in self._by_id.values() if a.job_id == job_id), None)

    def all(self) -> list[LiveAttempt]:
        """Return them."""
        return list(self._by_id.values())

    def sent(self) -> list[LiveAttempt]:
        """Return those whose command has gone out."""
        return [a for a in self._by_id.values() if a.sent]

    def of_client(self, client_id: ClientId) -> list[LiveAttempt]:
        """Return those on one agent."""
        return [a for a in self._by_id.values() if a.client_id == client_id]

    async def wait_empty(self) -> None:
        """Return when there is none."""
        await self._empty.wait()
