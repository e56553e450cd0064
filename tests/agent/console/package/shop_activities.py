"""Activities as a package of somebody's own has them."""

import asyncio

from agent.console.fetching import Ask
from agent.console.stage import ActivityContext

release = asyncio.Event()


async def count_links(ctx: ActivityContext, *, times: int = 1) -> dict[str, int]:
    await ctx.notice("counting")
    return {"links": times * ctx.page_markup().count("<a ")}


async def seen(ctx: ActivityContext, url: str, wait: float = 0) -> dict[str, object]:
    await asyncio.sleep(wait)
    answer = await ctx.fetch(Ask(url=url))
    return {"status": answer.status, "body": answer.body.decode()}


async def post(ctx: ActivityContext) -> None:
    """Do something outside, as far as anybody knows."""


async def broken(ctx: ActivityContext) -> None:
    raise ValueError("so")


async def odd(ctx: ActivityContext) -> object:
    return {"a": ctx}


def plain(ctx: ActivityContext) -> None:
    """No coroutine."""


async def stubborn(ctx: ActivityContext) -> None:
    while not release.is_set():
        try:
            await release.wait()
        except asyncio.CancelledError:
            continue
