"""Something to be asked by HTTP, for as long as a test wants it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def listening(
    app: web.Application, host: str = "127.0.0.1", *, cancels: bool = False
) -> AsyncIterator[str]:
    """Serve on a free port; yield the address. With `cancels` who hangs up ends its handler."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=cancels)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
