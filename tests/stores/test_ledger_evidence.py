"""What the `Ledger` port promises about evidence, history, items and artifacts."""

import asyncio

import pytest

from farm.core.control import Control
from farm.core.job_states import JobState
from farm.core.model import Namespace, Token
from farm.errors import ConflictError, NotFoundError
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Controlled, Expected
from tests.stores.ledger_rows import (
    HAR,
    NS,
    T0,
    TOKEN,
    TRACE,
    accepted,
    artifact,
    at,
    effect,
    finish,
    items,
    over,
    recorded,
    running,
    said,
    started,
)

STALE = Token(store_epoch=1, counter=2)
LATER = Token(store_epoch=1, counter=3)


async def titles(ledger: Ledger, **which: object) -> list[str]:
    found = ledger.items("j1", **which)  # type: ignore[arg-type]  # any mixture of its keywords
    return [str(item.data["title"]) async for item in found]


class TestRecording:
    async def test_one_batch_writes_events_effects_items_and_counts(self, ledger: Ledger) -> None:
        await running(ledger)
        last = await ledger.record(
            "a1",
            TOKEN,
            [
                said(1, "started", began=True),
                said(2, "effect_begun", effect_begun=effect()),
                said(3, "effect_done", effect_done="e1"),
                items(4, 2),
            ],
            now=T0,
        )
        assert last == 4
        attempt = await ledger.attempt("a1")
        assert (attempt.began, attempt.last_seq, attempt.item_count) == (True, 4, 2)
        assert (await ledger.job(NS, "j1")).item_count == 2
        assert await ledger.effects("j1") == [effect(done_at=at(3))]
        told = [e for e in await ledger.events("j1", after=0) if e.attempt_id == "a1"][-4:]
        assert [e.type for e in told] == ["started", "effect_begun", "effect_done", "items"]
        assert [e.at for e in told] == [at(1), at(2), at(3), at(4)]

    async def test_an_end_that_rests_on_less_than_was_said_is_refused_and_changes_nothing(
        self, ledger: Ledger
    ) -> None:
        await running(ledger)
        begun = said(2, "effect_begun", effect_begun=effect())
        await ledger.record("a1", TOKEN, [said(1), begun], now=T0)
        with pytest.raises(ConflictError):
            await ledger.finish(finish(JobState.QUEUED, rests_on=1), now=T0)
        assert (await ledger.job(NS, "j1")).state is JobState.RUNNING
        assert await ledger.finish(finish(JobState.UNCERTAIN, rests_on=2), now=T0)
        assert await ledger.finish(finish(JobState.QUEUED, rests_on=1), now=T0) is None

    async def test_what_is_sent_again_is_stored_once(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.record("a1", TOKEN, [said(1), items(2, 2)], now=T0)
        history = await ledger.events("j1", after=0)
        assert await ledger.record("a1", TOKEN, [said(1), items(2, 2)], now=T0) == 2
        assert await ledger.events("j1", after=0) == history
        assert await ledger.record("a1", TOKEN, [items(2, 2), said(3)], now=T0) == 3
        assert await titles(ledger) == ["items 0", "items 1"]

    async def test_nothing_after_a_gap_is_stored(self, ledger: Ledger) -> None:
        await running(ledger)
        assert await ledger.record("a1", TOKEN, [said(2)], now=T0) == 0
        assert await ledger.record("a1", TOKEN, [said(1), items(3, 2)], now=T0) == 1
        assert await titles(ledger) == []
        assert (await ledger.attempt("a1")).last_seq == 1

    async def test_an_entry_repeated_within_a_batch_is_stored_once(self, ledger: Ledger) -> None:
        await running(ledger)
        assert await ledger.record("a1", TOKEN, [items(1, 1), items(1, 1)], now=T0) == 1
        assert len(await titles(ledger)) == 1

    async def test_no_evidence_changes_nothing(self, ledger: Ledger) -> None:
        await running(ledger)
        assert await ledger.record("a1", TOKEN, [], now=T0) == 0

    async def test_another_token_or_an_ended_attempt_stores_nothing(self, ledger: Ledger) -> None:
        await running(ledger)
        history = await ledger.events("j1", after=0)
        assert await ledger.record("a1", STALE, [items(1, 1)], now=T0) is None
        assert await ledger.record("nobody", TOKEN, [said(1)], now=T0) is None
        assert await ledger.events("j1", after=0) == history
        await ledger.finish(finish(), now=at(1))
        assert await ledger.record("a1", TOKEN, [items(1, 1)], now=T0) is None
        assert await titles(ledger) == []

    async def test_that_an_attempt_began_is_not_forgotten(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.record("a1", TOKEN, [said(1, began=True)], now=T0)
        await ledger.record("a1", TOKEN, [said(2)], now=T0)
        assert (await ledger.attempt("a1")).began

    async def test_many_at_once_store_each_entry_once_and_in_order(self, ledger: Ledger) -> None:
        await running(ledger)
        batches = [[items(seq, 1, first=seq) for seq in range(1, n + 1)] for n in range(1, 21)]
        async with asyncio.TaskGroup() as group:
            for n, batch in enumerate(batches):
                group.create_task(ledger.record("a1", TOKEN, batch, now=T0), name=f"record-{n}")
        assert await titles(ledger) == [f"items {n}" for n in range(1, 21)]
        assert (await ledger.attempt("a1")).last_seq == 20


class TestEffects:
    async def test_an_effect_is_begun_until_it_is_known_done(self, ledger: Ledger) -> None:
        await running(ledger)
        seen = effect("e2", observed=True, method="POST", url="http://shop.test/order")
        await ledger.record(
            "a1", TOKEN, [said(1, effect_begun=effect()), said(2, effect_begun=seen)], now=T0
        )
        assert await ledger.effects("j1") == [effect(), seen]
        await ledger.record("a1", TOKEN, [said(3, effect_done="e2")], now=T0)
        assert [e.done_at for e in await ledger.effects("j1")] == [None, at(3)]

    async def test_the_end_of_an_unknown_effect_is_noted_and_harmless(self, ledger: Ledger) -> None:
        await running(ledger)
        assert await ledger.record("a1", TOKEN, [said(1, effect_done="e9")], now=T0) == 1
        assert await ledger.effects("j1") == []

    async def test_effects_are_told_apart_by_attempt(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.record("a1", TOKEN, [said(1, effect_begun=effect())], now=T0)
        await ledger.finish(finish(JobState.QUEUED), now=at(1))
        await started(ledger, "j1", "a2")
        again = effect(attempt_id="a2")
        await ledger.record(
            "a2", TOKEN, [said(1, effect_begun=again), said(2, effect_done="e1")], now=T0
        )
        assert await ledger.effects("j1", attempt_id="a1") == [effect()]
        assert [e.attempt_id for e in await ledger.effects("j1")] == ["a1", "a2"]
        assert await ledger.effects("j2") == []


class TestHistory:
    async def test_numbers_grow_without_gaps_whatever_writes_them(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.record("a1", TOKEN, [said(1), items(2, 1)], now=T0)
        await ledger.add_event("j1", "note", {"text": "a"}, attempt_id=None, now=at(3))
        await ledger.record("a1", TOKEN, [said(3)], now=T0)
        await ledger.request_cancel(NS, "j1", now=at(4))
        await ledger.finish(finish(JobState.UNCERTAIN), now=at(5))
        await ledger.resolve(NS, "j1", JobState.FAILED, now=at(6))
        events = await ledger.events("j1", after=0)
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        assert [e.type for e in events] == [
            "job_accepted",
            "attempt_started",
            "notice",
            "items",
            "note",
            "notice",
            "cancel_requested",
            "attempt_ended",
            "job_resolved",
        ]

    async def test_each_job_has_numbers_of_its_own(self, ledger: Ledger) -> None:
        await accepted(ledger, "j1")
        await accepted(ledger, "j2")
        for job_id in ("j1", "j2"):
            await ledger.add_event(job_id, "note", {}, attempt_id=None, now=T0)
            assert [e.seq for e in await ledger.events(job_id, after=0)] == [1, 2]

    async def test_reading_goes_on_after_a_number_and_has_a_limit(self, ledger: Ledger) -> None:
        await accepted(ledger)
        for n in range(5):
            await ledger.add_event("j1", "note", {"n": n}, attempt_id="a9", now=at(n))
        found = await ledger.events("j1", after=2, limit=2)
        assert [(e.seq, e.data["n"], e.attempt_id) for e in found] == [(3, 1, "a9"), (4, 2, "a9")]
        assert await ledger.events("j1", after=6) == []
        assert await ledger.events("nowhere", after=0) == []

    async def test_many_at_once_leave_no_gap(self, ledger: Ledger) -> None:
        await accepted(ledger)
        async with asyncio.TaskGroup() as group:
            for n in range(30):
                group.create_task(
                    ledger.add_event("j1", "note", {}, attempt_id=None, now=T0), name=f"add-{n}"
                )
        assert [e.seq for e in await ledger.events("j1", after=0)] == list(range(1, 32))

    async def test_a_job_that_is_not_there_has_none(self, ledger: Ledger) -> None:
        with pytest.raises(NotFoundError):
            await ledger.add_event("j1", "note", {}, attempt_id=None, now=T0)


class TestItems:
    async def _two_attempts(self, ledger: Ledger, first: int, second: int) -> None:
        await running(ledger)
        await ledger.record("a1", TOKEN, [items(1, first, dataset="one")], now=T0)
        await ledger.finish(finish(JobState.QUEUED), now=at(1))
        await started(ledger, "j1", "a2")
        await ledger.record("a2", TOKEN, [items(1, second, dataset="two")], now=T0)

    async def test_without_success_the_attempt_with_the_most_counts(self, ledger: Ledger) -> None:
        await self._two_attempts(ledger, 3, 2)
        job = await ledger.finish(finish(JobState.FAILED, "a2"), now=at(2))
        assert await titles(ledger) == ["one 0", "one 1", "one 2"]
        assert job is not None
        assert job.item_count == 3

    async def test_of_equals_the_latest_counts(self, ledger: Ledger) -> None:
        await self._two_attempts(ledger, 2, 2)
        await ledger.finish(finish(JobState.FAILED, "a2"), now=at(2))
        assert await titles(ledger) == ["two 0", "two 1"]

    async def test_the_succeeded_attempt_counts_even_with_fewer(self, ledger: Ledger) -> None:
        await self._two_attempts(ledger, 3, 1)
        job = await ledger.finish(finish(JobState.SUCCEEDED, "a2"), now=at(2))
        assert await titles(ledger) == ["two 0"]
        assert job is not None
        assert job.item_count == 1

    async def test_one_attempt_or_all_can_be_asked_for(self, ledger: Ledger) -> None:
        await self._two_attempts(ledger, 2, 1)
        assert await titles(ledger, attempt=1) == ["one 0", "one 1"]
        assert await titles(ledger, attempt=2) == ["two 0"]
        assert await titles(ledger, attempt=3) == []
        assert await titles(ledger, every=True) == ["one 0", "one 1", "two 0"]
        every = [item async for item in ledger.items("j1", every=True)]
        assert [(i.attempt_id, i.attempt_number, i.index) for i in every] == [
            ("a1", 1, 0),
            ("a1", 1, 1),
            ("a2", 2, 0),
        ]

    async def test_one_data_set_can_be_asked_for(self, ledger: Ledger) -> None:
        await running(ledger)
        mixed = [
            items(1, 1, dataset="a"),
            items(2, 1, dataset="b"),
            items(3, 1, first=1, dataset="a"),
        ]
        await ledger.record("a1", TOKEN, mixed, now=T0)
        assert await titles(ledger) == ["a 0", "b 0", "a 1"]
        assert await titles(ledger, dataset="a") == ["a 0", "a 1"]
        assert await titles(ledger, dataset="c") == []

    async def test_many_come_whole_and_in_order(self, ledger: Ledger) -> None:
        await running(ledger)
        batch = [items(n + 1, 100, first=100 * n) for n in range(12)]
        await ledger.record("a1", TOKEN, batch, now=T0)
        found = [item async for item in ledger.items("j1")]
        assert [item.index for item in found] == list(range(1200))

    async def test_those_of_another_namespaces_job_are_not_found(self, ledger: Ledger) -> None:
        await running(ledger)
        await ledger.record("a1", TOKEN, [items(1, 1)], now=T0)
        assert len(await titles(ledger, namespace=NS)) == 1
        with pytest.raises(NotFoundError):
            await titles(ledger, namespace=Namespace("other"))

    async def test_a_job_without_attempts_has_none(self, ledger: Ledger) -> None:
        await accepted(ledger)
        assert await titles(ledger) == []


class TestArtifacts:
    async def test_a_file_reads_back_as_added_and_is_counted(self, ledger: Ledger) -> None:
        await running(ledger)
        assert await ledger.add_artifact(artifact(), TOKEN) == artifact()
        assert await ledger.artifacts("j1") == [artifact()]
        assert (await ledger.job(NS, "j1")).artifact_count == 1

    async def test_a_name_that_is_taken_gets_a_number_before_its_ending(
        self, ledger: Ledger
    ) -> None:
        await running(ledger)
        for name in ("a.png", "a.png", "a-2.png", "A.PNG", "page", "page", ".x"):
            await ledger.add_artifact(artifact(name), TOKEN)
        assert [a.name for a in await ledger.artifacts("j1")] == [
            "a.png",
            "a-2.png",
            "a-2-2.png",
            "A-3.PNG",
            "page",
            "page-2",
            ".x",
        ]

    async def test_names_are_free_again_in_another_job(self, ledger: Ledger) -> None:
        await running(ledger, "j1", "a1")
        await running(ledger, "j2", "a2")
        await ledger.add_artifact(artifact(), TOKEN)
        other = await ledger.add_artifact(artifact(job_id="j2", attempt_id="a2"), TOKEN)
        assert other is not None
        assert other.name == "a.png"

    async def test_an_ended_attempt_or_another_token_adds_nothing(self, ledger: Ledger) -> None:
        await running(ledger)
        assert await ledger.add_artifact(artifact(), STALE) is None
        await ledger.finish(finish(), now=at(1))
        assert await ledger.add_artifact(artifact(), TOKEN) is None
        assert await ledger.artifacts("j1") == []
        assert (await ledger.job(NS, "j1")).artifact_count == 0


class TestRecordings:
    async def states(self, ledger: Ledger) -> list[tuple[str, str, str, int]]:
        found = await ledger.artifacts("j1")
        return [(a.name, a.state.value, a.detail, a.size) for a in found]

    async def test_one_is_pending_from_the_start_of_its_attempt_and_ready_when_it_is_handed_in(
        self, ledger: Ledger
    ) -> None:
        await accepted(ledger)
        await started(ledger, recordings=(TRACE, HAR))
        pending = [("trace.zip", "pending", "", 0), ("a.har", "pending", "", 0)]
        assert await self.states(ledger) == pending
        assert (await ledger.job(NS, "j1")).artifact_count == 0
        kept = await ledger.add_artifact(recorded(), TOKEN)
        assert kept is not None
        assert kept.name == "trace.zip"
        assert await self.states(ledger) == [("trace.zip", "ready", "", 34), pending[1]]
        assert (await ledger.job(NS, "j1")).artifact_count == 1

    async def test_one_is_handed_in_once_and_only_where_it_is_waited_for(
        self, ledger: Ledger
    ) -> None:
        await accepted(ledger)
        await started(ledger, recordings=(TRACE,))
        assert await ledger.add_artifact(recorded("video"), TOKEN) is None
        assert await ledger.add_artifact(recorded(), STALE) is None
        assert await ledger.add_artifact(recorded(), TOKEN) is not None
        assert await ledger.add_artifact(recorded(), TOKEN) is None
        assert (await ledger.job(NS, "j1")).artifact_count == 1

    async def test_what_the_agent_says_of_one_is_kept_with_it(self, ledger: Ledger) -> None:
        await accepted(ledger)
        video = Expected("video", "v.webm", "video/webm")
        await started(ledger, recordings=(TRACE, HAR, video))
        await ledger.add_artifact(recorded(), TOKEN)
        ends = [
            over(1, "trace", "ready", "it stopped early"),
            over(2, "har", "failed", "the disk is full"),
            over(3, "video", "discarded"),
        ]
        await ledger.record("a1", TOKEN, ends, now=T0)
        assert await self.states(ledger) == [
            ("trace.zip", "ready", "it stopped early", 34),
            ("a.har", "failed", "the disk is full", 0),
        ]

    async def test_what_has_not_come_when_its_attempt_ends_has_failed_and_says_so(
        self, ledger: Ledger
    ) -> None:
        await accepted(ledger)
        await started(ledger, recordings=(TRACE, HAR))
        await ledger.add_artifact(recorded(), TOKEN)
        await ledger.finish(finish(JobState.QUEUED, records=True), now=at(9))
        never = "the attempt ended before it was handed in"
        assert await self.states(ledger) == [
            ("trace.zip", "ready", "", 34),
            ("a.har", "failed", never, 0),
        ]

    async def test_a_second_attempt_has_recordings_of_its_own(self, ledger: Ledger) -> None:
        await accepted(ledger)
        await started(ledger, recordings=(TRACE,))
        await ledger.finish(finish(JobState.QUEUED, records=True), now=T0)
        await started(ledger, attempt_id="a2", token=LATER, recordings=(TRACE,))
        assert [name for name, *_ in await self.states(ledger)] == ["trace.zip", "trace-2.zip"]
        kept = await ledger.add_artifact(recorded(attempt_id="a2"), LATER)
        assert kept is not None
        assert kept.name == "trace-2.zip"

    async def test_their_size_is_counted_by_namespace_and_other_files_are_not(
        self, ledger: Ledger
    ) -> None:
        await accepted(ledger)
        await started(ledger, recordings=(TRACE, HAR))
        await ledger.add_artifact(artifact(), TOKEN)
        assert await ledger.recordings_size(NS) == 0
        await ledger.add_artifact(recorded(), TOKEN)
        await ledger.add_artifact(recorded("har"), TOKEN)
        assert await ledger.recordings_size(NS) == 68
        assert await ledger.recordings_size(Namespace("other")) == 0


class TestFallingBack:
    async def test_nothing_of_the_first_place_is_found_beside_what_the_second_gives(
        self, ledger: Ledger
    ) -> None:
        await running(ledger)
        told = [
            said(1, "started", began=True),
            items(2, 3),
            said(3, "effect_begun", effect_begun=effect(effect="idempotent")),
            said(4, "effect_done", effect_done="e1"),
        ]
        await ledger.record("a1", TOKEN, told, now=T0)
        await ledger.add_artifact(artifact(), TOKEN)
        end = finish(JobState.QUEUED, falls_back_to="a tab", counts=False)
        job = await ledger.finish(end, now=at(5))
        assert job is not None
        assert (job.match_key, job.attempts, job.free_losses) == ("a tab", 0, 0)
        assert (job.item_count, job.artifact_count) == (0, 0)
        assert await titles(ledger) == []
        assert await ledger.artifacts("j1") == []
        # What was done to the world is no finding.
        assert [e.effect_id for e in await ledger.effects("j1")] == ["e1"]
        await started(ledger, attempt_id="a2", token=LATER)
        more = [items(1, 2, attempt_id="a2"), items(2, 1, dataset="more", attempt_id="a2")]
        await ledger.record("a2", LATER, more, now=at(6))
        kept = await ledger.add_artifact(artifact(attempt_id="a2"), LATER)
        assert kept is not None
        assert kept.name == "a.png"
        job = await ledger.finish(finish(attempt_id="a2"), now=at(7))
        assert job is not None
        assert (job.state, job.item_count, job.artifact_count) == (JobState.SUCCEEDED, 3, 1)
        assert len(await titles(ledger)) == 3

    async def test_a_job_that_was_paused_or_cancelled_meanwhile_is_so_afterwards(
        self, ledger: Ledger
    ) -> None:
        await running(ledger)
        pausing = said(2, "pausing", controlled=Controlled(control=Control.PAUSING, by="anna"))
        await ledger.record("a1", TOKEN, [items(1, 1), pausing], now=T0)
        end = finish(JobState.QUEUED, falls_back_to="a tab", counts=False)
        job = await ledger.finish(end, now=at(5))
        assert job is not None
        assert (job.match_key, job.control, job.control_by) == ("a tab", Control.PAUSED, "anna")
        await running(ledger, "j2", "b1")
        await ledger.record("b1", TOKEN, [items(1, 1, attempt_id="b1")], now=T0)
        await ledger.request_cancel(NS, "j2", now=at(4))
        job = await ledger.finish(finish(JobState.QUEUED, "b1", falls_back_to="a tab"), now=at(5))
        assert job is not None
        assert (job.state, job.match_key, job.item_count) == (JobState.CANCELLED, "any", 1)
