"""A ledger on PostgreSQL that several coordinators share: lives, claims, owners, orphans."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import psutil
import pytest
from sqlalchemy import func, make_url, select

from farm.core.job_states import JobState
from farm.core.model import ClientId
from farm.errors import ConflictError, NotOwnerError, StoreUnavailableError
from farm.stores.ledger import SqlLedger, membership, owning, schema
from farm.stores.ledger.postgres import PostgresDatabase, Share
from farm.stores.ledger.sharing import SqlSharing
from farm.stores.records import Attempt
from tests.cable import Cable
from tests.patience import PATIENCE_S
from tests.stores.conftest import Databases
from tests.stores.ledger_rows import NS, T0, TOKEN, accepted, finish, new_job, said, started
from tests.stores.stopped import BEGINS, CLAIMS, SAYS_HALF

AGENT = ClientId("agent-1")
LONG_S = 600.0
SHORT_S = 1.0
ROOT = Path(__file__).parents[2]


class Member:
    """One coordinator's ledger."""

    def __init__(self, url: str, name: str, lease_s: float) -> None:
        self.database = PostgresDatabase(url, Share(name=name, lease_s=lease_s))
        self.ledger = SqlLedger(self.database)
        self.shared = SqlSharing(self.database)

    async def running(self, job_id: str = "j1", attempt_id: str = "a1") -> Attempt:
        await accepted(self.ledger, job_id)
        attempt = await started(self.ledger, job_id, attempt_id)
        assert attempt is not None
        return attempt

    async def takes_over(self, attempt_id: str = "a1") -> Attempt | None:
        return await self.shared.take_over(
            attempt_id, client_id=AGENT, token=TOKEN, command_id=f"c-{attempt_id}"
        )

    async def due(self) -> list[str]:
        found = await self.ledger.due(
            now=T0, without_keys=frozenset(), without_jobs=frozenset(), limit=10
        )
        return [job.job_id for job in found.jobs]


@pytest.fixture
def url(postgres: Databases) -> str:
    return postgres.new()


@asynccontextmanager
async def members(url: str, *names: str, lease_s: float = LONG_S) -> AsyncIterator[list[Member]]:
    async with AsyncExitStack() as stack:
        found = []
        for name in names:
            member = Member(url, name, lease_s)
            await member.ledger.open()
            stack.push_async_callback(member.ledger.close)
            found.append(member)
        yield found


@pytest.fixture
async def two(url: str) -> AsyncIterator[list[Member]]:
    async with members(url, "one", "two") as found:
        yield found


def lapse(postgres: Databases, url: str, member: Member) -> None:
    """Let its lease be over, as when it has been stopped for long."""
    postgres.server.sql(
        f"UPDATE coordinators SET lease_until = 0 WHERE life = {member.database.life}",
        str(make_url(url).database),
    )


async def end_lapsed(member: Member) -> None:
    """Renew once, which ends the others that have not."""
    share, life = member.database._share, member.database.life
    assert share is not None
    assert life is not None
    assert await member.database._renew(share, life)


async def test_several_share_what_a_farm_alone_keeps_others_out_of(
    two: list[Member], url: str
) -> None:
    one, other = two
    assert one.database.life != other.database.life
    await accepted(one.ledger, "j1")
    assert (await other.ledger.job(NS, "j1")).state is JobState.QUEUED
    alone = SqlLedger(PostgresDatabase(url))
    with pytest.raises(ConflictError, match="another farm"):
        await alone.open()
    for member in two:
        await member.ledger.close()
    await alone.open()
    late = Member(url, "late", LONG_S)
    with pytest.raises(ConflictError, match="another farm"):
        await late.ledger.open()
    await alone.close()
    await late.ledger.open()
    await late.ledger.close()


async def test_many_that_open_an_empty_database_at_once_make_it_once(postgres: Databases) -> None:
    postgres.server.sql("CREATE DATABASE opened_at_once")
    found = [Member(postgres.server.url("opened_at_once"), f"{n}", LONG_S) for n in range(4)]
    async with asyncio.TaskGroup() as group:
        opening = [group.create_task(member.ledger.open()) for member in found]
    assert sorted(task.result() for task in opening) == [1, 2, 3, 4]
    for member in found:
        await member.ledger.close()


async def test_of_two_that_start_a_job_one_does(two: list[Member]) -> None:
    for round_ in range(10):
        job_id = f"j{round_}"
        await accepted(two[0].ledger, job_id)
        async with asyncio.TaskGroup() as group:
            starts = [
                group.create_task(started(member.ledger, job_id, f"{job_id}-{n}"))
                for n, member in enumerate(two * 3)
            ]
        assert len([task for task in starts if task.result() is not None]) == 1


async def test_one_key_at_two_coordinators_at_once_is_one_job(two: list[Member]) -> None:
    for round_ in range(10):
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    member.ledger.accept(
                        new_job(f"j{round_}{n}", idempotency_key=f"{round_}"), now=T0
                    )
                )
                for n, member in enumerate(two * 2)
            ]
        answers = [task.result() for task in asked]
        assert len({job.job_id for job, _ in answers}) == 1
        assert [duplicate for _, duplicate in answers].count(False) == 1


async def test_a_job_that_one_has_claimed_is_not_due_for_the_others_until_it_gives_up(
    two: list[Member],
) -> None:
    one, other = two
    await accepted(one.ledger, "j1")
    assert await one.shared.claim("j1")
    assert await one.shared.claim("j1")
    assert not await other.shared.claim("j1")
    assert (await one.due(), await other.due()) == (["j1"], [])
    await other.shared.give_up_claim("j1")
    assert await other.due() == []
    await one.shared.give_up_claim("j1")
    assert await other.due() == ["j1"]


async def test_who_keeps_some_claims_gives_up_all_its_others_and_nobody_elses(
    two: list[Member],
) -> None:
    one, other = two
    for job_id, member in (("j1", one), ("j2", one), ("j3", other)):
        await accepted(one.ledger, job_id)
        assert await member.shared.claim(job_id)
    await one.shared.keep_claims({"j2"})
    assert (await one.due(), await other.due()) == (["j1", "j2"], ["j1", "j3"])
    await one.shared.keep_claims(())
    assert await other.due() == ["j1", "j2", "j3"]


async def test_a_claim_ends_with_its_life_and_with_the_start(
    two: list[Member], postgres: Databases, url: str
) -> None:
    one, other = two
    await accepted(one.ledger, "j1")
    assert await one.shared.claim("j1")
    assert await started(one.ledger, "j1", "a1")
    assert not await other.shared.claim("j1")
    await one.ledger.finish(finish(JobState.QUEUED, "a1", counts=False), now=T0)
    assert await other.due() == ["j1"]
    assert await one.shared.claim("j1")
    lapse(postgres, url, one)
    assert await other.due() == ["j1"]
    assert await other.shared.claim("j1")


async def test_who_has_taken_an_attempt_over_alone_writes_for_it(two: list[Member]) -> None:
    one, other = two
    await one.running()
    await one.ledger.record("a1", TOKEN, [said(1)], now=T0)
    taken = await other.takes_over()
    assert taken is not None
    assert taken.last_seq == 1
    with pytest.raises(NotOwnerError):
        await one.ledger.record("a1", TOKEN, [said(2)], now=T0)
    with pytest.raises(NotOwnerError):
        await one.ledger.finish(finish(), now=T0)
    assert await other.ledger.record("a1", TOKEN, [said(2)], now=T0) == 2
    assert (await one.shared.standing(["a1"]))["a1"].mine is False
    assert (await other.shared.standing([]))["a1"].mine is True
    await other.ledger.finish(finish(), now=T0)
    assert await one.takes_over() is None
    assert await one.shared.standing(["a1"]) == {}


async def test_what_ends_while_it_is_taken_over_has_one_end(two: list[Member]) -> None:
    one, other = two
    for round_ in range(10):
        await one.running(f"j{round_}", f"a{round_}")
        async with asyncio.TaskGroup() as group:
            taking = group.create_task(other.takes_over(f"a{round_}"))
            ending = group.create_task(ended(one, f"a{round_}"))
        assert (taking.result() is None) == ending.result()


async def ended(member: Member, attempt_id: str) -> bool:
    try:
        return await member.ledger.finish(finish(attempt_id=attempt_id), now=T0) is not None
    except NotOwnerError:
        return False


async def test_what_a_run_is_not_is_not_taken_over(two: list[Member]) -> None:
    one, other = two
    attempt = await one.running()
    for client_id, token, command_id in (
        (ClientId("b"), TOKEN, attempt.command_id),
        (AGENT, TOKEN.__class__(store_epoch=1, counter=2), attempt.command_id),
        (AGENT, TOKEN, "another"),
    ):
        assert not await other.shared.take_over(
            "a1", client_id=client_id, token=token, command_id=command_id
        )
    assert (await one.shared.standing([]))["a1"].mine


async def test_a_coordinator_whose_lease_has_lapsed_writes_nothing(
    two: list[Member], postgres: Databases, url: str
) -> None:
    one, other = two
    await one.running()
    lapse(postgres, url, one)
    for writing in (
        accepted(one.ledger, "j2"),
        started(one.ledger, "j1", "a2"),
        one.ledger.record("a1", TOKEN, [said(1)], now=T0),
        one.ledger.finish(finish(), now=T0),
        one.shared.adopt("a1"),
        one.takes_over(),
    ):
        with pytest.raises(StoreUnavailableError, match="lapsed"):
            await writing
    async with asyncio.timeout(PATIENCE_S):
        await end_lapsed(other)
        with pytest.raises(StoreUnavailableError):
            await one.ledger.attempt("a1")  # its sessions have ended with its life
        await one.shared.lapsed()
    assert (await other.ledger.attempt("a1")).last_seq == 0
    assert [
        job.job_id for job in await other.ledger.jobs(NS, state=None, before=None, limit=9)
    ] == ["j1"]


@asynccontextmanager
async def stopped(url: str, how: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A coordinator that was stopped in the middle of a transaction which has locked things."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stores.stopped", url, f"{SHORT_S}", how),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await line(process) == "stopping"
        async with asyncio.timeout(PATIENCE_S):
            while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
                await asyncio.sleep(0.01)
        yield process
    finally:
        process.kill()
        await process.wait()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("how", [BEGINS, CLAIMS, SAYS_HALF])
async def test_one_that_is_stopped_in_a_transaction_keeps_nobody_waiting_and_writes_nothing_of_it(
    url: str, how: str
) -> None:
    """PostgreSQL ends its session: a signal stops a process, and not what it has locked."""
    async with (
        members(url, "living", lease_s=2 * SHORT_S) as (living,),
        asyncio.TaskGroup() as group,
    ):
        for job_id in ("j1", "j2", "j3"):
            await accepted(living.ledger, job_id)
        async with stopped(url, how) as other:
            lapses = group.create_task(living.shared.lapsed())
            async with asyncio.timeout(SHORT_S + 3.0):
                # Of one namespace only one at a time is begun; and this one it has in hand.
                await begun(living, "j2", "a2")
                await begun(living, "j1", "a1")
            async with asyncio.timeout(PATIENCE_S):
                while await lives(living) > 1:
                    await asyncio.sleep(0.05)
            assert not lapses.done()
            other.send_signal(signal.SIGCONT)
            assert await line(other) == "refused"
            assert await line(other) == "its life is over"
            assert await line(other) == "True"
            assert not lapses.done()
            lapses.cancel()
        history = [await living.ledger.attempts(job_id) for job_id in ("j1", "j2", "j3")]
        assert [len(attempts) for attempts in history] == [1, 1, 1]
        assert history[0][0].attempt_id == "a1"


async def begun(member: Member, job_id: str, attempt_id: str) -> None:
    while True:
        with suppress(StoreUnavailableError):  # it had to wait too long
            assert await started(member.ledger, job_id, attempt_id) is not None
            return


async def test_who_ends_the_lapsed_does_not_wait_for_one_that_is_still_writing(
    two: list[Member], postgres: Databases, url: str
) -> None:
    one, other = two
    life = other.database.life
    assert life is not None
    # In a session that is not ended, as for a moment one is that is being ended.
    async with one.database._engine.begin() as writing:
        await writing.run_sync(lambda db: membership.confirm(db, life))
        lapse(postgres, url, other)
        async with asyncio.timeout(PATIENCE_S):
            await end_lapsed(one)
        assert await lives(one) == 2
    await end_lapsed(one)
    assert await lives(one) == 1


async def test_who_ends_the_lapsed_leaves_what_another_is_just_taking_over_to_that_one(
    url: str, postgres: Databases
) -> None:
    async with members(url, "one", "two", "three") as (one, two, three):
        await one.running()
        lapse(postgres, url, one)
        life = two.database.life
        assert life is not None
        async with two.database._engine.begin() as taking:
            await taking.run_sync(lambda db: owning.take_over(db, "a1", AGENT, TOKEN, "c-a1", life))
            ending = asyncio.create_task(end_lapsed(three))
            async with asyncio.timeout(2):
                await asyncio.shield(ending)
        await ending
        await end_lapsed(three)
        assert (await two.shared.standing([]))["a1"].mine
        assert await three.shared.orphans(for_s=0) == []


async def lives(member: Member) -> int:
    count = select(func.count()).select_from(schema.coordinators)
    return await member.database.read(lambda db: db.execute(count).scalar_one())


async def test_a_life_ends_by_itself_when_it_can_not_be_renewed_in_time() -> None:
    with_no_server = PostgresDatabase(
        "postgresql://nobody@/farm?host=/nowhere", Share(name="one", lease_s=0.2)
    )
    with_no_server._live(1, asyncio.get_running_loop().time() + 0.2)
    assert with_no_server.alive
    async with asyncio.timeout(PATIENCE_S):
        await with_no_server.lapsed()
    assert not with_no_server.alive


async def test_what_is_left_of_one_that_was_cut_off_in_the_middle_keeps_nobody_waiting(
    two: list[Member], postgres: Databases, url: str
) -> None:
    one, other = two
    life = one.database.life
    attempt = await one.running()
    left = await asyncpg.connect(url)
    async with left.transaction():
        await left.execute(f"SELECT 1 FROM coordinators WHERE life = {life} FOR KEY SHARE")
        lapse(postgres, url, one)
        async with asyncio.timeout(PATIENCE_S):
            await end_lapsed(other)
            with pytest.raises(StoreUnavailableError):
                await one.shared.begin_again()  # its sessions have ended with its life
            await one.shared.begin_again()
        assert await other.shared.orphans(for_s=0) == []
    await left.close()
    await end_lapsed(other)
    assert [orphan.attempt_id for orphan in await other.shared.orphans(for_s=0)] == [
        attempt.attempt_id
    ]


async def test_a_coordinator_whose_database_says_nothing_notices_and_begins_again(
    postgres: Databases, url: str
) -> None:
    name = make_url(url).database
    async with Cable(postgres.server.folder / ".s.PGSQL.5432").laid() as cable:
        by_cable = f"postgresql://postgres@127.0.0.1:{cable.port}/{name}"
        async with members(by_cable, "one", lease_s=1.0) as [one]:
            life = one.database.life
            one.database._live(life, asyncio.get_running_loop().time() + 1.0)
            async with asyncio.timeout(PATIENCE_S):
                cable.lose()
                with pytest.raises(StoreUnavailableError):
                    await accepted(one.ledger, "j1")
                await one.shared.lapsed()
                assert not one.shared.alive()
                await accepted_in_another_life(one, "j1")
            assert one.database.life != life


@pytest.mark.parametrize("after_s", [0.1, 1.1, 2.0])
async def test_who_asks_a_database_that_says_nothing_again_and_again_can_be_cancelled(
    postgres: Databases, url: str, after_s: float
) -> None:
    name = make_url(url).database
    async with Cable(postgres.server.folder / ".s.PGSQL.5432").laid() as cable:
        by_cable = f"postgresql://postgres@127.0.0.1:{cable.port}/{name}"
        async with members(by_cable, "one", lease_s=1.0) as [one]:

            async def ask_again_and_again() -> None:
                while True:
                    cable.lose()
                    with suppress(StoreUnavailableError):
                        await one.shared.begin_again()

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(after_s):
                    await ask_again_and_again()


async def accepted_in_another_life(member: Member, job_id: str) -> None:
    while True:
        with suppress(StoreUnavailableError):
            await member.shared.begin_again()
            await accepted(member.ledger, job_id)
            return


async def test_what_a_lapsed_coordinator_ran_is_adopted_by_one_of_the_living(
    url: str, postgres: Databases
) -> None:
    async with members(url, "one", "two", "three") as (one, two, three):
        await one.running()
        lapse(postgres, url, one)
        assert await two.shared.orphans(for_s=0) == []
        assert not await two.shared.adopt("a1")
        await end_lapsed(two)
        assert [a.attempt_id for a in await three.shared.orphans(for_s=0)] == ["a1"]
        assert await three.shared.orphans(for_s=LONG_S) == []
        assert await three.shared.orphans(for_s=0, client_id=ClientId("b")) == []
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(m.shared.adopt("a1")) for m in (two, three) * 4]
        assert [task.result() for task in asked].count(True) == 1
        assert await two.shared.orphans(for_s=0) == []


async def test_what_a_coordinator_that_leaves_or_begins_again_ran_is_an_orphan(
    two: list[Member],
) -> None:
    one, other = two
    await one.running("j1", "a1")
    before = one.database.life
    await one.shared.begin_again()
    assert one.database.life != before
    assert [a.attempt_id for a in await other.shared.orphans(for_s=0)] == ["a1"]
    assert await one.takes_over("a1")
    await one.running("j2", "a2")
    await one.shared.disown("a2")
    await other.shared.disown("a1")
    assert [a.attempt_id for a in await other.shared.orphans(for_s=0)] == ["a2"]
    await one.ledger.close()
    assert [a.attempt_id for a in await other.shared.orphans(for_s=0)] == ["a1", "a2"]


async def test_what_a_farm_alone_left_running_is_an_orphan_for_those_that_share_and_back(
    url: str,
) -> None:
    alone = SqlLedger(PostgresDatabase(url))
    await alone.open()
    await accepted(alone, "j1")
    await started(alone, "j1", "a1")
    await alone.close()
    async with members(url, "one") as (one,):
        assert [a.attempt_id for a in await one.shared.orphans(for_s=0)] == ["a1"]
        assert await one.takes_over()
    await alone.open()
    assert await alone.record("a1", TOKEN, [said(1)], now=T0) == 1
    await alone.close()


async def test_a_renewed_life_is_not_ended_and_a_cancelled_job_shows(two: list[Member]) -> None:
    one, other = two
    await one.running()
    await end_lapsed(one)
    await end_lapsed(other)
    await other.ledger.request_cancel(NS, "j1", now=T0)
    standing = await one.shared.standing([])
    assert (standing["a1"].mine, standing["a1"].cancel_requested) == (True, True)


async def test_with_which_token_an_agent_came_is_known_to_all(two: list[Member]) -> None:
    one, other = two
    assert await other.shared.token_of_agent(AGENT) is None
    await one.shared.note_agent(AGENT, "tok_1")
    assert await other.shared.token_of_agent(AGENT) == "tok_1"
    await other.shared.note_agent(AGENT, "tok_2")
    assert await one.shared.token_of_agent(AGENT) == "tok_2"
