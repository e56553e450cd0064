"""What attempts borrow, over HTTP: asked for again while the farm is away, and refused by name."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from agent import loans
from agent.loans import HttpLoans
from agent.ports import BorrowRefused, Lender, StaleAssignment
from farm.protocol.failures import Reason
from farm.protocol.messages import Token
from tests.listening import listening

LENT = {"state": {"cookies": [], "origins": []}, "proxy": {"server": "http://p:1"}}


class Farm:
    """Answers in the order that a test says."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, object]] = []
        self.asked: list[tuple[str, str, str]] = []
        self.kept: bytes = b""
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.kept = await request.read()
        self.asked.append((request.method, request.path, request.headers["X-Tabfarm-Token"]))
        status, body = self.answers.pop(0)
        return web.json_response(body, status=status)


@pytest.fixture
async def farm() -> AsyncIterator[Farm]:
    farm = Farm()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", farm.answer)
    async with listening(app) as farm.url:
        yield farm


@pytest.fixture
async def lender(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lender]:
    monkeypatch.setattr(loans, "_FIRST_WAIT_S", 0.001)
    async with aiohttp.ClientSession() as session:
        yield HttpLoans(session, lambda: farm.url).of("a/1", Token(store_epoch=3, counter=7))


async def test_it_is_asked_for_under_the_attempts_token_and_again_while_the_farm_comes_back(
    farm: Farm, lender: Lender
) -> None:
    farm.answers = [(403, {}), (503, {}), (200, LENT)]
    lent = await lender.borrow()
    assert lent.proxy is not None
    assert lent.proxy.server == "http://p:1"
    assert farm.asked == [("GET", "/v1/attempts/a/1/identity", "3.7")] * 3


async def test_what_is_given_back_is_sent_as_it_is(farm: Farm, lender: Lender) -> None:
    farm.answers = [(200, {"version": 2})]
    await lender.give_back(b'{"cookies": []}')
    assert farm.kept == b'{"cookies": []}'


@pytest.mark.parametrize(
    ("status", "body", "reason", "words"),
    [
        (413, {"detail": "too large by far"}, Reason.IDENTITY_TOO_LARGE, "too large by far"),
        (500, {"detail": "no key"}, Reason.IDENTITY_NOT_SAVED, "no key"),
        (404, "gone", Reason.IDENTITY_NOT_SAVED, "answered 404"),
    ],
)
async def test_a_refusal_says_what_the_farm_said(
    farm: Farm, lender: Lender, status: int, body: object, reason: Reason, words: str
) -> None:
    farm.answers = [(status, body)]
    with pytest.raises(BorrowRefused, match=words) as caught:
        await lender.give_back(b"{}")
    assert caught.value.reason is reason
    assert len(farm.asked) == 1


async def test_an_attempt_that_has_ended_is_told_so_at_once(farm: Farm, lender: Lender) -> None:
    farm.answers = [(409, {}), (409, {})]
    with pytest.raises(StaleAssignment):
        await lender.borrow()
    with pytest.raises(StaleAssignment):
        await lender.give_back(b"{}")


async def test_an_answer_that_means_nothing_is_not_quoted(farm: Farm, lender: Lender) -> None:
    farm.answers = [(200, {"state": {"cookies": [{"value": "hush"}]}})]
    with pytest.raises(BorrowRefused) as caught:
        await lender.borrow()
    assert caught.value.reason is Reason.IDENTITY_UNAVAILABLE
    assert "hush" not in caught.value.detail


async def test_a_farm_that_stays_away_is_given_up(farm: Farm, lender: Lender) -> None:
    farm.answers = [(503, {})] * 7
    with pytest.raises(BorrowRefused, match="does not answer") as caught:
        await lender.borrow()
    assert caught.value.reason is Reason.IDENTITY_UNAVAILABLE
    assert farm.answers == []
