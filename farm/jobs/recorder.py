"""Turns what agents say of their attempts into rows of the ledger."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from farm.clock import Clock
from farm.core.control import AFTER
from farm.core.model import ClientId, Instant, Token
from farm.jobs.feed import JobFeed
from farm.jobs.live import LiveAttempts
from farm.protocol import messages as wire
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Controlled, Effect, Evidence, Item, RecordingEnd


class Recorder:
    """Stores evidence in order and answers how far it is durable (P11)."""

    def __init__(self, ledger: Ledger, live: LiveAttempts, feed: JobFeed, clock: Clock) -> None:
        self._ledger = ledger
        self._live = live
        self._feed = feed
        self._clock = clock

    async def record(self, client_id: ClientId, events: wire.Events) -> wire.Stored:
        """Store an agent's entries; `refused` where the attempt has ended, or is another's.

        Raises:
            StoreUnavailableError: If nothing could be stored; the agent sends it again.
        """
        attempt = self._live.get(events.attempt_id)
        if attempt is None or attempt.client_id != client_id:
            return wire.Stored(command_id=events.command_id, refused=True)
        last = await self._ledger.record(
            events.attempt_id,
            Token(store_epoch=events.token.store_epoch, counter=events.token.counter),
            [_evidence(entry, events.attempt_id, attempt.number) for entry in events.entries],
            now=self._clock(),
        )
        if last is None:
            return wire.Stored(command_id=events.command_id, refused=True)
        attempt.stored = max(attempt.stored, last)
        attempt.follow(events.entries)
        self._feed.publish(attempt.job_id, may_rest=False)
        return wire.Stored(command_id=events.command_id, seq=last)

    def has_all_of(self, result: wire.Result) -> bool:
        """Tell whether nothing that a run told before its result is still to be stored."""
        attempt = self._live.get(result.attempt_id or "")
        return attempt is None or attempt.stored >= result.seq


def _evidence(entry: wire.Entry, attempt_id: str, number: int) -> Evidence:
    at = Instant(entry.at)
    event = entry.event
    match event:
        case wire.Started():
            return _plain(entry, began=True)
        case wire.StepStarted() | wire.StepEnded() | wire.Notice() | wire.HumanAct():
            return _plain(entry)
        case wire.ControlMoved():
            controlled = Controlled(control=AFTER[event.kind], by=event.by, asked=event.detail)
            return Evidence(
                seq=entry.seq,
                event_type=event.kind,
                at=at,
                data=_data(event),
                controlled=controlled,
            )
        case wire.EffectBegun():
            effect = Effect(
                effect_id=event.effect_id,
                attempt_id=attempt_id,
                step_index=event.index,
                effect=event.effect,
                observed=event.observed,
                method=event.method,
                url=event.url,
                begun_at=at,
                done_at=None,
            )
            return Evidence(
                seq=entry.seq, event_type=event.kind, at=at, data=_data(event), effect_begun=effect
            )
        case wire.EffectDone():
            return Evidence(
                seq=entry.seq,
                event_type=event.kind,
                at=at,
                data=_data(event),
                effect_done=event.effect_id,
            )
        case wire.Recorded(recording=recording, state=state, detail=detail):
            recorded = RecordingEnd(recording=recording.value, state=state, detail=detail[:2000])
            return replace(_plain(entry), recording_end=recorded)
        case wire.Items():
            return Evidence(
                seq=entry.seq,
                event_type=event.kind,
                at=at,
                data={"dataset": event.dataset, "first": event.first, "count": len(event.items)},
                items=tuple(
                    Item(
                        attempt_id=attempt_id,
                        attempt_number=number,
                        dataset=event.dataset,
                        index=event.first + offset,
                        data=item,
                    )
                    for offset, item in enumerate(event.items)
                ),
            )
        case _:
            assert_never(event)


def _plain(entry: wire.Entry, *, began: bool = False) -> Evidence:
    return Evidence(
        seq=entry.seq,
        event_type=entry.event.kind,
        at=Instant(entry.at),
        data=_data(entry.event),
        began=began,
    )


def _data(event: wire.AttemptEvent) -> Mapping[str, Any]:
    return event.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
