"""Saved identities: a running attempt is a lease, and only its holder saves."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.core.job_states import JobState
from farm.core.model import Namespace, Token
from farm.errors import ConflictError, NotFoundError
from farm.stores.identity_records import Change, Mode, NewBorrowing, SealedState, Use, of_job
from farm.stores.ledger import SqlIdentities, SqliteDatabase, SqlLedger
from farm.stores.ports.identities import IdentityStore
from farm.stores.ports.ledger import Ledger
from tests.stores.ledger_rows import NS, T0, TOKEN, accepted, at, finish, started

OTHER = Namespace("other")
STATE = SealedState(sealed=b"sealed", cookies=2, origins=1, size=20)


class Shelf:
    """A ledger and its identities."""

    def __init__(self, ledger: Ledger) -> None:
        assert isinstance(ledger, SqlLedger)
        self.ledger = ledger
        self.identities: IdentityStore = SqlIdentities(ledger.database)

    async def job(self, job_id: str, mode: Mode, name: str = "shopper", **changes: Any) -> None:
        borrowing = NewBorrowing(identity=name, mode=mode, secret=None)
        await accepted(self.ledger, job_id, borrowing=borrowing, **changes)

    async def starts(self, job_id: str, counter: int = 1) -> bool:
        token = Token(store_epoch=1, counter=counter)
        return await started(self.ledger, job_id, f"a-{job_id}-{counter}", token=token) is not None


@pytest.fixture
async def shelf(ledger: Ledger) -> Shelf:
    shelf = Shelf(ledger)
    await shelf.identities.change(NS, "shopper", Change(options={"locale": "en"}), now=T0)
    return shelf


async def test_a_change_touches_what_it_says_and_raises_the_version(shelf: Shelf) -> None:
    store = shelf.identities
    proxy = {"server": "http://p:1"}
    one, new = await store.change(NS, "shopper", Change(proxy=(proxy, b"secret")), now=at(1))
    assert (one.version, new, one.options, one.proxy) == (2, False, {"locale": "en"}, proxy)
    assert (one.created_at, one.updated_at, one.state) == (T0, at(1), None)
    one, _ = await store.change(NS, "shopper", Change(state=(STATE,)), now=at(2))
    assert one.state is not None
    assert (one.state.cookies, one.state.saved_at, one.state.attempt_id) == (2, at(2), None)
    one, _ = await store.change(NS, "shopper", Change(proxy=(None, None), state=(None,)), now=at(3))
    assert (one.version, one.proxy, one.secret, one.state) == (4, None, None, None)
    assert [found.name for found in await store.identities(NS)] == ["shopper"]
    await store.delete(NS, "shopper")
    with pytest.raises(NotFoundError):
        await store.identity(NS, "shopper")


async def test_a_name_means_another_identity_in_another_namespace(shelf: Shelf) -> None:
    with pytest.raises(NotFoundError):
        await shelf.identities.identity(OTHER, "shopper")
    with pytest.raises(NotFoundError):
        await shelf.identities.delete(OTHER, "shopper")
    _, new = await shelf.identities.change(OTHER, "shopper", Change(), now=T0)
    assert new
    await shelf.job("here", Mode.EXCLUSIVE)
    await shelf.job("there", Mode.EXCLUSIVE, namespace=OTHER)
    assert await shelf.starts("here")
    assert await shelf.starts("there")


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (Mode.EXCLUSIVE, Mode.EXCLUSIVE, False),
        (Mode.EXCLUSIVE, Mode.READ_ONLY, False),
        (Mode.READ_ONLY, Mode.EXCLUSIVE, False),
        (Mode.READ_ONLY, Mode.READ_ONLY, True),
        (Mode.EXCLUSIVE, Mode.CLONE, True),
        (Mode.CLONE, Mode.EXCLUSIVE, True),
        (Mode.CLONE, Mode.READ_ONLY, True),
    ],
)
async def test_which_uses_go_together(
    shelf: Shelf, first: Mode, second: Mode, together: bool
) -> None:
    await shelf.job("j1", first)
    await shelf.job("j2", second)
    assert await shelf.starts("j1")
    assert await shelf.identities.users(NS, "shopper") == [
        Use(job_id="j1", attempt_id="a-j1-1", mode=first)
    ]
    assert await shelf.starts("j2") is together
    if not together:
        await shelf.ledger.finish(finish(JobState.QUEUED, "a-j1-1"), now=at(5))
        assert await shelf.starts("j2", 2)


async def test_of_many_who_start_at_once_one_has_it(shelf: Shelf) -> None:
    jobs = [f"j{number}" for number in range(6)]
    for job_id in jobs:
        await shelf.job(job_id, Mode.EXCLUSIVE)
    began = await asyncio.gather(*(shelf.starts(job_id) for job_id in jobs))
    assert sum(began) == 1


async def test_of_two_who_make_one_at_once_both_are_kept_or_one_is_told(shelf: Shelf) -> None:
    made = await asyncio.gather(
        *(shelf.identities.change(NS, "new", Change(), now=T0) for _ in range(4)),
        return_exceptions=True,
    )
    refused = [one for one in made if isinstance(one, BaseException)]
    assert all(isinstance(one, ConflictError) for one in refused)
    found = await shelf.identities.identity(NS, "new")
    assert found.version == len(made) - len(refused)


async def test_other_jobs_and_other_identities_are_nobodys_business(shelf: Shelf) -> None:
    await shelf.identities.change(NS, "other", Change(), now=T0)
    await shelf.job("j1", Mode.EXCLUSIVE)
    await shelf.job("j2", Mode.EXCLUSIVE, "other")
    await accepted(shelf.ledger, "j3")
    await accepted(
        shelf.ledger, "j4", borrowing=NewBorrowing(identity=None, mode=Mode.CLONE, secret=b"s")
    )
    for job_id in ("j1", "j2", "j3", "j4"):
        assert await shelf.starts(job_id)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(moves=st.lists(st.tuples(st.sampled_from(list(Mode)), st.booleans()), max_size=12))
async def test_an_exclusive_use_never_overlaps_with_another_or_a_reading_one(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[Mode, bool]]
) -> None:
    shelf = Shelf(SqlLedger(SqliteDatabase(tmp_path_factory.mktemp("lease") / "farm.db")))
    await shelf.ledger.open()
    await shelf.identities.change(NS, "shopper", Change(), now=T0)
    for number, (mode, ends_one) in enumerate(moves):
        await shelf.job(f"j{number}", mode)
        await asyncio.gather(shelf.starts(f"j{number}"), shelf.starts(f"j{number // 2}", 9))
        uses = await shelf.identities.users(NS, "shopper")
        modes = [use.mode for use in uses if use.mode is not Mode.CLONE]
        assert Mode.EXCLUSIVE not in modes or len(modes) == 1
        if ends_one and uses:
            await shelf.ledger.finish(finish(JobState.FAILED, uses[0].attempt_id), now=at(number))
    await shelf.ledger.close()


async def test_only_the_running_holder_under_its_token_saves(shelf: Shelf) -> None:
    await shelf.job("j1", Mode.EXCLUSIVE)
    await shelf.starts("j1")
    save = shelf.identities.save_state
    stale = Token(store_epoch=1, counter=2)
    assert await save("a-j1-1", stale, STATE, now=at(1)) is None
    assert await save("unknown", TOKEN, STATE, now=at(1)) is None
    assert await save("a-j1-1", TOKEN, STATE, now=at(1)) == 2
    held = await shelf.identities.borrowed("a-j1-1", TOKEN)
    assert held is not None
    assert (held.name, held.state) == ("shopper", b"sealed")
    assert await shelf.identities.borrowed("a-j1-1", stale) is None
    await shelf.ledger.finish(finish(JobState.QUEUED, "a-j1-1"), now=at(2))
    later = SealedState(sealed=b"stale", cookies=0, origins=0, size=5)
    assert await save("a-j1-1", TOKEN, later, now=at(3)) is None
    assert await shelf.identities.borrowed("a-j1-1", TOKEN) is None
    kept = (await shelf.identities.identity(NS, "shopper")).state
    assert kept is not None
    assert (kept.size, kept.saved_at, kept.attempt_id) == (20, at(1), "a-j1-1")


@pytest.mark.parametrize("mode", [Mode.CLONE, Mode.READ_ONLY])
async def test_who_has_it_with_others_saves_nothing(shelf: Shelf, mode: Mode) -> None:
    await shelf.job("j1", mode)
    await shelf.starts("j1")
    assert await shelf.identities.save_state("a-j1-1", TOKEN, STATE, now=at(1)) is None


async def test_what_a_job_has_for_itself_is_neither_changed_nor_forgotten(shelf: Shelf) -> None:
    await shelf.job("j1", Mode.EXCLUSIVE)
    await shelf.starts("j1")
    with pytest.raises(ConflictError, match="in use by job j1"):
        await shelf.identities.change(NS, "shopper", Change(), now=at(1))
    with pytest.raises(ConflictError, match="in use by job j1"):
        await shelf.identities.delete(NS, "shopper")
    await shelf.ledger.finish(finish(JobState.SUCCEEDED, "a-j1-1"), now=at(2))
    await shelf.identities.delete(NS, "shopper")


async def test_what_is_sealed_is_found_and_replaced_unless_it_has_changed(shelf: Shelf) -> None:
    await shelf.identities.change(NS, "shopper", Change(state=(STATE,)), now=T0)
    await accepted(
        shelf.ledger, "j4", borrowing=NewBorrowing(identity=None, mode=Mode.CLONE, secret=b"s")
    )
    of_the_job, of_the_state = await shelf.identities.sealed()
    assert (of_the_job.bound_to, of_the_job.sealed) == (of_job("j4"), b"s")
    assert "default/shopper" in of_the_state.bound_to
    for one in (of_the_job, of_the_state):
        assert await shelf.identities.reseal(one, b"new")
        assert not await shelf.identities.reseal(one, b"newer")
    assert [one.sealed for one in await shelf.identities.sealed()] == [b"new", b"new"]


async def test_jobs_that_are_forgotten_take_their_secrets_along(shelf: Shelf) -> None:
    borrowing = NewBorrowing(identity=None, mode=Mode.CLONE, secret=b"s")
    await accepted(shelf.ledger, "j1", borrowing=borrowing)
    await shelf.starts("j1")
    await shelf.ledger.finish(finish(JobState.SUCCEEDED, "a-j1-1"), now=at(2))
    assert await shelf.ledger.forget_jobs(NS) == 1
    assert await shelf.identities.sealed() == []
