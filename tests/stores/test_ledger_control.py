"""Who has control of a job, as every implementation of the `Ledger` port keeps it."""

import pytest

from farm.core.control import Control
from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.errors import NotFoundError
from farm.stores.ports.ledger import Ledger
from farm.stores.records import Controlled, Evidence, Job
from tests.stores.ledger_queue import next_id, next_start
from tests.stores.ledger_rows import NS, TOKEN, accepted, at, finish, running, said, started

HUMAN = Controlled(control=Control.HUMAN, by="", asked="solve it")
PAUSING = Controlled(control=Control.PAUSING, by="anna")


def told(seq: int, controlled: Controlled) -> Evidence:
    return said(seq, controlled.control.value, controlled=controlled)


async def hold(ledger: Ledger, *, paused: bool = True, by: str = "anna", after: int = 1) -> Job:
    job = await ledger.hold_queued(NS, "j1", paused=paused, by=by, now=at(after))
    assert job is not None
    return job


async def test_a_paused_job_is_not_due_and_can_not_be_begun_until_it_is_resumed(
    ledger: Ledger,
) -> None:
    await accepted(ledger)
    job = await hold(ledger)
    assert (job.state, job.control, job.control_by) == (JobState.QUEUED, Control.PAUSED, "anna")
    counts = await ledger.controls()
    assert counts == dict.fromkeys(Control, 0) | {Control.PAUSED: 1}
    assert await next_id(ledger, now=at(9)) is None
    assert await started(ledger) is None
    job = await hold(ledger, paused=False, by="bert", after=2)
    assert (job.control, job.control_by) == (Control.AUTOMATION, "")
    assert await ledger.job(NS, "j1") == job
    assert await next_id(ledger, now=at(9)) == "j1"
    lines = [(e.type, e.data.get("by")) for e in await ledger.events("j1", after=1)]
    assert lines == [("paused", "anna"), ("resumed", "bert")]


async def test_asking_twice_changes_nothing(ledger: Ledger) -> None:
    await accepted(ledger)
    first = await hold(ledger)
    assert await hold(ledger, by="bert", after=2) == first
    assert len(await ledger.events("j1", after=0)) == 2


async def test_only_what_is_queued_is_held_in_the_queue(ledger: Ledger) -> None:
    await running(ledger)
    assert await ledger.hold_queued(NS, "j1", paused=True, by="anna", now=at(1)) is None
    assert (await ledger.job(NS, "j1")).control is Control.AUTOMATION
    with pytest.raises(NotFoundError):
        await ledger.hold_queued(Namespace("other"), "j1", paused=True, by="a", now=at(1))


async def test_a_job_has_what_its_attempt_told_last(ledger: Ledger) -> None:
    await running(ledger)
    await ledger.record("a1", TOKEN, [told(1, PAUSING), told(2, HUMAN), said(3)], now=at(1))
    job = await ledger.job(NS, "j1")
    assert (job.control, job.control_by, job.asked) == (Control.HUMAN, "", "solve it")


@pytest.mark.parametrize(
    ("held", "left"), [(PAUSING, (Control.PAUSED, "anna")), (HUMAN, (Control.AUTOMATION, ""))]
)
async def test_a_job_that_is_to_be_tried_again_waits_where_it_was_paused(
    ledger: Ledger, held: Controlled, left: tuple[Control, str]
) -> None:
    await running(ledger)
    await ledger.record("a1", TOKEN, [told(1, held)], now=at(1))
    job = await ledger.finish(finish(JobState.QUEUED, not_before=at(5)), now=at(2))
    assert job is not None
    assert ((job.control, job.control_by), job.asked) == (left, "")
    waits = left[0] is Control.PAUSED
    assert (await next_start(ledger, now=at(3)) is None) is waits
    assert (await next_id(ledger, now=at(9)) is None) is waits


async def test_a_job_that_has_ended_is_in_nobodys_hands(ledger: Ledger) -> None:
    await running(ledger)
    await ledger.record("a1", TOKEN, [told(1, HUMAN)], now=at(1))
    job = await ledger.finish(finish(JobState.SUCCEEDED), now=at(2))
    assert job is not None
    assert (job.control, job.asked) == (Control.AUTOMATION, "")


async def test_a_paused_job_is_cancelled_by_name(ledger: Ledger) -> None:
    await accepted(ledger)
    await hold(ledger)
    job = await ledger.request_cancel(NS, "j1", now=at(2), by="bert")
    assert (job.state, job.control) == (JobState.CANCELLED, Control.AUTOMATION)
    assert sum((await ledger.controls()).values()) == 0
    assert (await ledger.events("j1", after=2))[0].data["by"] == "bert"
