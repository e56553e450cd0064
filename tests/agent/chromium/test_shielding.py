"""Waiting that survives cancellation."""

import asyncio

import pytest

from agent.chromium.shielding import to_the_end, within


async def test_a_cancellation_waits_for_the_end_and_then_goes_on() -> None:
    begun, go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go.wait()
        ended.set()

    async with asyncio.TaskGroup() as group:
        outer = group.create_task(to_the_end(work(), hurry=go.set))
        await begun.wait()
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
    assert ended.is_set()


async def test_an_error_after_a_cancellation_is_swallowed_by_it() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go.wait()
        raise RuntimeError("too late to matter")

    async with asyncio.TaskGroup() as group:
        outer = group.create_task(to_the_end(work(), hurry=go.set))
        await begun.wait()
        outer.cancel()
    assert outer.cancelled()


async def test_without_a_cancellation_results_and_errors_come_through() -> None:
    async def one() -> int:
        return 1

    async def error() -> int:
        raise RuntimeError("seen")

    assert await to_the_end(one()) == 1
    with pytest.raises(RuntimeError, match="seen"):
        await to_the_end(error())


async def test_a_bounded_wait_says_whether_it_was_long_enough() -> None:
    assert await within(5, asyncio.sleep(0))
    assert not await within(0.01, asyncio.Event().wait())
