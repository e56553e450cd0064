"""What goes wrong before a handler is reached, or when nobody is left to answer."""

import asyncio
import json
import logging

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from farm.api.serving import MAX_REQUEST_LINE, ApiRunner
from tests.api.stack import Stack
from tests.patience import PATIENCE_S

SECRET = "s3cret"


async def ask(url: str, head: str) -> tuple[int, dict[str, str]]:
    """Send a request by hand; return status and problem."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head.encode())
    await writer.drain()
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    assert "application/problem+json" in answer
    return int(answer.split()[1]), json.loads(answer.partition("\r\n\r\n")[2])


@pytest.mark.parametrize(
    ("head", "status", "slug"),
    [
        (f"GET /{SECRET}?a={'x' * MAX_REQUEST_LINE} HTTP/1.1\r\n", 414, "uri-too-long"),
        (f"GET / HTTP/1.1\r\nX-{SECRET}: {'x' * 9000}\r\n", 431, "header-too-long"),
        (f"GET / HTTP/1.1\r\n{SECRET}\r\n", 400, "bad-request"),
    ],
)
async def test_what_cannot_be_read_is_a_problem_and_in_no_log(
    stack: Stack, caplog: pytest.LogCaptureFixture, head: str, status: int, slug: str
) -> None:
    with capture_logs() as logs, caplog.at_level(logging.DEBUG):
        answered, problem = await ask(stack.url, f"{head}Host: localhost\r\n\r\n")
    assert (answered, problem["type"]) == (status, f"/problems/{slug}")
    assert [line["event"] for line in logs] == ["request.unreadable"]
    assert SECRET not in repr(logs) + caplog.text + repr(problem)
    assert "xxx" not in repr(logs) + caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_query_of_moderate_length_is_read(stack: Stack) -> None:
    url = f"{stack.url}/v1/jobs?param.q={'x' * 20_000}"
    job = {"name": "a", "params": {"q": ""}, "steps": ["back"]}
    async with stack.http.post(url, json=job, headers=stack.as_admin()) as response:
        assert response.status == 201, await response.text()


async def test_nothing_is_logged_where_an_agent_has_gone_while_it_dialled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    over = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        while request.transport is not None:
            await asyncio.sleep(0)
        try:
            socket = web.WebSocketResponse()
            await socket.prepare(request)
        finally:
            over.set()
        return socket

    app = web.Application()
    app.router.add_get("/v1/agent", serve)
    runner = ApiRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        with caplog.at_level(logging.INFO):
            _, writer = await asyncio.open_connection(*runner.addresses[0][:2])
            writer.write(
                b"GET /v1/agent HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            await writer.drain()
            writer.close()
            async with asyncio.timeout(PATIENCE_S):
                await over.wait()
    finally:
        await runner.cleanup()
    assert caplog.text == ""
