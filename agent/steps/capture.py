"""What a failed step leaves for people to look at: a picture and the page's markup."""

import asyncio
from collections.abc import Awaitable, Callable

from playwright.async_api import Error as PlaywrightError

from agent.ports import StaleAssignment, UploadRefused
from agent.steps.failures import message_of, still_changing
from agent.steps.stage import Attempt
from farm.protocol.failures import Failure, Reason
from farm.protocol.messages import Notice

TAKE_S = 2.0
"""How long each of the two may take to be taken."""
STORE_S = 5.0
"""How long each may take to be stored."""
_AGAIN_S = 0.05
_NOTHING_TO_SEE = frozenset(
    {Reason.PAGE_CRASHED, Reason.PAGE_CLOSED, Reason.BROWSER_LOST, Reason.STALE_ASSIGNMENT}
)


async def capture(attempt: Attempt, failure: Failure) -> None:
    """Store `failure-<step>.png` and `.html`; what cannot be had is noted and never raised."""
    if failure.reason is Reason.STALE_ASSIGNMENT:
        return
    if failure.reason in _NOTHING_TO_SEE:
        await _sorry(attempt, "the page is gone: no picture and no markup of the failure")
        return
    name = f"failure-{attempt.index}"
    page = attempt.page
    async with asyncio.TaskGroup() as group:
        group.create_task(
            _one(
                attempt, f"{name}.png", "image/png", lambda: page.screenshot(timeout=TAKE_S * 900)
            ),
            name="capture.picture",
        )
        group.create_task(
            _one(attempt, f"{name}.html", "text/html", lambda: _markup(attempt)),
            name="capture.markup",
        )


async def _markup(attempt: Attempt) -> bytes:
    """Return the markup, as soon as the browser's own page of a failed navigation is there."""
    while True:
        try:
            return (await attempt.page.content()).encode("utf-8", "replace")
        except PlaywrightError as error:
            if not still_changing(error):
                raise
        await asyncio.sleep(_AGAIN_S)


async def _one(
    attempt: Attempt, name: str, media_type: str, take: Callable[[], Awaitable[bytes]]
) -> None:
    try:
        async with asyncio.timeout(TAKE_S):
            content = await take()
        async with asyncio.timeout(STORE_S):
            await attempt.evidence.upload(name, content, media_type)
    except TimeoutError:
        await _sorry(attempt, f"{name} could not be had in time")
    except PlaywrightError as error:
        await _sorry(attempt, f"{name} could not be taken: {message_of(error)}")
    except UploadRefused as refused:
        await _sorry(attempt, f"{name} could not be stored: {refused.detail}")
    except StaleAssignment:
        return


async def _sorry(attempt: Attempt, detail: str) -> None:
    await attempt.evidence.note(
        Notice(code="capture_failed", detail=detail[:2000], index=attempt.index)
    )
