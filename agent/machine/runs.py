"""The attempts an agent is on, or whose results it still holds (P11)."""

from collections.abc import Iterator

from agent.machine import events as ev
from agent.machine.events import Instruction, Outcome
from agent.machine.state import Run
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason

_FLUSH_S = 0.25
"""What is not urgent waits this long for company."""
_ITEMS_FLUSH_S = 0.05
"""Items wait less: whoever is killed takes with him what he has not sent."""
_PER_MESSAGE = 1000
"""So many entries and items go into one message: what gathers while the farm is away must not make
one that is too large to be taken."""

_AT_ONCE = (wire.EffectBegun, wire.ControlMoved)
"""Who has paused a job is answered that it is so, and means its next attempt, too, should this one
be killed."""

_REASONS: dict[str, Failure] = {
    "lost_farm": Failure(
        reason=Reason.AGENT_LOST, detail="the agent gave up: it had lost the farm for too long"
    ),
    "drained": Failure(
        reason=Reason.DRAINED, detail="the agent was stopped before the job had ended"
    ),
    "superseded": Failure(
        reason=Reason.STALE_ASSIGNMENT, detail="the assignment ended before the job did"
    ),
}


class Runs:
    """All of them, by command."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def all(self) -> list[Run]:
        """Return every run the farm has not confirmed the end of."""
        return list(self._runs.values())

    def any_running(self) -> bool:
        """Tell whether any has not ended."""
        return any(run.running for run in self._runs.values())

    def get(self, command_id: str) -> Run | None:
        """Return one."""
        return self._runs.get(command_id)

    def on(self, context_id: str) -> Run | None:
        """Return the run on a tab that has not ended."""
        for run in self._runs.values():
            if run.context_id == context_id and run.running:
                return run
        return None

    def start(self, run: Run) -> None:
        """Begin one."""
        self._runs[run.command_id] = run

    def noted(self, event: ev.Noted, now: float, welcomed: bool) -> list[Instruction]:
        """Keep what a run tells; send at once what the run waits for, effects, and control."""
        run = self._runs.get(event.command_id)
        if run is None:
            return [ev.Disown(event.command_id)] if event.urgent else []
        wait_s = _ITEMS_FLUSH_S if isinstance(event.event, wire.Items) else _FLUSH_S
        run.note(event.event, at=event.at, due_at=now + wait_s)
        if welcomed and (event.urgent or isinstance(event.event, _AT_ONCE)):
            return self._flush(run)
        return []

    def ended(self, run: Run, outcome: Outcome, welcomed: bool) -> list[Instruction]:
        """A run is over; send what is left of it and how it ended."""
        reason = _REASONS.get(run.cancel_reason or "")
        if reason is not None and outcome.outcome == "cancelled":
            outcome = Outcome(outcome="failed", failure=reason, page_gone=outcome.page_gone)
        elif run.cancel_reason == "timed_out" and outcome.outcome == "cancelled":
            outcome = Outcome(
                outcome="timed_out",
                failure=Failure(reason=Reason.JOB_TIMEOUT, detail="the job's time was over"),
                page_gone=outcome.page_gone,
            )
        run.outcome = outcome
        if run.forgotten:
            del self._runs[run.command_id]
            return []
        return self._flush(run) if welcomed else []

    def flush_due(self, now: float, welcomed: bool) -> list[Instruction]:
        """Send what has waited long enough."""
        if not welcomed:
            return []
        due = [run for run in self.all() if run.due_at is not None and now >= run.due_at]
        return [instruction for run in due for instruction in self._flush(run)]

    def flush_all(self) -> list[Instruction]:
        """Send everything that is not stored."""
        return [instruction for run in self.all() for instruction in self._flush(run)]

    def resend_all(self) -> None:
        """Nothing sent on an earlier link counts as sent."""
        for run in self._runs.values():
            run.result_sent = False
            run.sent_seq = run.unstored[0].seq - 1 if run.unstored else run.last_seq

    def _flush(self, run: Run) -> list[Instruction]:
        instructions: list[Instruction] = [
            ev.Send(
                wire.Events(
                    command_id=run.command_id,
                    attempt_id=run.attempt_id,
                    token=run.token,
                    entries=entries,
                )
            )
            for entries in _portions(run.unsent())
        ]
        if run.outcome is not None and not run.result_sent:
            run.result_sent = True
            instructions.append(ev.Send(_result(run, run.outcome)))
        return instructions

    def stored(self, message: wire.Stored) -> list[Instruction]:
        """The farm has something durably, or wants nothing more."""
        run = self._runs.get(message.command_id)
        if run is None:
            return []
        if message.refused:
            return self._disown(run, done=message.done)
        run.stored(message.seq)
        if message.done:
            del self._runs[run.command_id]
            return []
        return [ev.Settled(run.command_id, message.seq)]

    def _disown(self, run: Run, *, done: bool) -> list[Instruction]:
        run.unstored.clear()
        if not run.running:
            del self._runs[run.command_id]
            return []
        run.forgotten = done
        return [ev.Disown(run.command_id), *self.cancel(run.command_id, "superseded")]

    def cancel(self, command_id: str, reason: str) -> list[Instruction]:
        """Stop one, if it has not ended; the first reason given is the one that counts."""
        run = self._runs.get(command_id)
        if run is None or not run.running or run.cancel_reason is not None:
            return []
        run.cancel_reason = reason
        return [ev.CancelRun(command_id)]

    def cancel_all(self, reason: str) -> list[Instruction]:
        """Stop all."""
        return [i for command_id in list(self._runs) for i in self.cancel(command_id, reason)]


def _portions(entries: tuple[wire.Entry, ...]) -> Iterator[tuple[wire.Entry, ...]]:
    portion: list[wire.Entry] = []
    weight = 0
    for entry in entries:
        more = 1 + (len(entry.event.items) if isinstance(entry.event, wire.Items) else 0)
        if portion and weight + more > _PER_MESSAGE:
            yield tuple(portion)
            portion, weight = [], 0
        portion.append(entry)
        weight += more
    if portion:
        yield tuple(portion)


def _result(run: Run, outcome: Outcome) -> wire.Result:
    return wire.Result.model_validate(
        {
            "command_id": run.command_id,
            "attempt_id": run.attempt_id,
            "token": run.token,
            "seq": run.last_seq,
            "outcome": outcome.outcome,
            "failure": outcome.failure,
            "page_gone": outcome.page_gone,
        }
    )
