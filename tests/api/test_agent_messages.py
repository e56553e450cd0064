"""What agents say that can't be understood, and what they are told of it."""

import json
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType

from farm.api.agent_messages import Unreadable, read
from tests.api.agent_ends import Served, client, served

__all__ = ["served"]

HELLO = {"op": "hello", "client_id": "a", "instance": "i", "epoch": "e"}


@pytest.mark.parametrize(
    ("text", "op", "first"),
    [
        ("garbage", None, "is not JSON"),
        ("[" * 100_000, None, "is not JSON"),
        ("[]", None, "should be a mapping"),
        ("{}", None, "op is missing"),
        ('{"op": "\\u001b[31m"}', "\x1b[31m", "op is none that is known here"),
        ('{"op": "hello"}', "hello", "client_id is missing"),
        (json.dumps(HELLO | {"protocol": "x"}), "hello", "protocol should be a whole number"),
        (json.dumps(HELLO | {"client_id": ""}), "hello", "client_id may not be empty"),
        (
            json.dumps(HELLO | {"capacity": {"max_concurrency": -5}}),
            "hello",
            "capacity.max_concurrency should be at least 0",
        ),
    ],
)
def test_where_it_is_wrong_is_said_and_what_would_be_right(
    text: str, op: str | None, first: str
) -> None:
    found = read(text)
    assert isinstance(found, Unreadable)
    assert (found.op, found.first[: len(first)]) == (op, first)


async def test_who_says_hello_and_is_not_understood_is_refused_by_name(served: Served) -> None:
    headers = {"Authorization": "Bearer good"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(f"{served.url}/v1/agent") as socket,
    ):
        # A message of another version is passed over.
        await socket.send_json({"op": "of a later version"})
        await socket.send_json(HELLO | {"namespaces": "default"})
        refused: dict[str, Any] = await socket.receive_json(timeout=5)
        assert refused == {
            "op": "refused",
            "reason": "not_understood",
            "detail": "hello: namespaces should be a list",
            "retry": False,
        }
        assert (await socket.receive(timeout=5)).type is WSMsgType.CLOSE
    assert await client(served) is None
