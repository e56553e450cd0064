"""A session of requests: each may be repeated, lost or answered late, and nothing is lost by it."""

import asyncio
from typing import Any

import pytest

from farm.api import poll_socket
from farm.api.poll_socket import PollSocket
from farm.api.request_state import Principal
from farm.core.model import Namespace
from farm.errors import ConflictError
from farm.protocol.polling import Exchange
from tests.patience import PATIENCE_S

BEARER = Principal(token_id="token-1", scope="agent", namespace=Namespace("default"))


@pytest.fixture
async def socket() -> PollSocket:
    return PollSocket(BEARER, silence_s=1000)


async def read(socket: PollSocket, count: int) -> list[str]:
    texts = socket.texts()
    return [await anext(texts) for _ in range(count)]


def said(*messages: str, seq: int = 1, ack: int = 0, wait_s: float | None = None) -> Exchange:
    return Exchange(seq=seq, messages=messages, ack=ack, wait_s=wait_s)


async def test_what_comes_twice_counts_once(socket: PollSocket) -> None:
    assert (await socket.exchange(said("a", "b"))).ack == 2
    assert (await socket.exchange(said("a", "b"))).ack == 2
    assert (await socket.exchange(said("b", "c", seq=2))).ack == 3
    assert await read(socket, 3) == ["a", "b", "c"]


async def test_a_gap_is_refused_and_nothing_of_it_is_taken(socket: PollSocket) -> None:
    with pytest.raises(ConflictError, match="message 1 is missing"):
        await socket.exchange(said("b", seq=2))
    assert (await socket.exchange(said("a"))).ack == 1


async def test_what_is_not_acknowledged_is_given_again(socket: PollSocket) -> None:
    for text in "abc":
        await socket.send(text)
    for _ in range(2):
        given = await socket.exchange(said(wait_s=0))
        assert (given.seq, given.messages) == (1, ("a", "b", "c"))
    given = await socket.exchange(said(ack=2, wait_s=0))
    assert (given.seq, given.messages) == (3, ("c",))
    given = await socket.exchange(said(ack=1, wait_s=0))
    assert (given.seq, given.messages) == (3, ("c",))


async def test_who_only_hands_in_is_given_nothing(socket: PollSocket) -> None:
    await socket.send("a")
    assert (await socket.exchange(said("x"))).messages == ()


async def test_who_waits_is_answered_as_soon_as_there_is_something(socket: PollSocket) -> None:
    async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
        waiting = group.create_task(socket.exchange(said(wait_s=20)))
        await asyncio.sleep(0)
        assert not waiting.done()
        await socket.send("a")
        assert (await waiting).messages == ("a",)


async def test_the_end_is_told_after_all_that_was_sent_before_it(
    socket: PollSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_socket, "_ANSWER_BYTES", 3)
    await socket.send("why")
    await socket.send("bye")
    await socket.close()
    first = await socket.exchange(said(wait_s=20))
    assert (first.messages, first.closed) == (("why",), False)
    second = await socket.exchange(said(ack=1, wait_s=20))
    assert (second.messages, second.closed) == (("bye",), True)
    with pytest.raises(ConnectionError):
        await socket.send("more")


async def test_what_came_before_the_end_is_read(socket: PollSocket) -> None:
    await socket.exchange(said("bye"))
    await socket.close()
    assert [text async for text in socket.texts()] == ["bye"]


@pytest.mark.parametrize("side", ["farm", "agent"])
async def test_who_sends_more_than_is_taken_has_to_wait(socket: PollSocket, side: str) -> None:
    async def flood() -> None:
        for number in range(1, poll_socket._IN_HAND + 2):
            await (socket.send("x") if side == "farm" else socket.exchange(said("x", seq=number)))

    async def take() -> Any:
        return await (socket.exchange(said(ack=1)) if side == "farm" else read(socket, 2))

    async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
        flooding = group.create_task(flood())
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not flooding.done()
        await take()
        await flooding


async def test_a_session_without_requests_ends_and_one_that_is_asked_lives() -> None:
    socket = PollSocket(BEARER, silence_s=0)
    with socket.request():
        for _ in range(100):
            await asyncio.sleep(0)
        assert not (await socket.exchange(said("a"))).closed
    async with asyncio.timeout(PATIENCE_S):
        assert [text async for text in socket.texts()] == ["a"]
