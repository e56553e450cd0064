"""download and upload: files that pages hand out, and files that they are given."""

import asyncio
import mimetypes
from collections.abc import Awaitable
from pathlib import Path

from agent.ports import Handed
from agent.steps.failures import StepFailed
from agent.steps.navigation import open_url, resolve
from agent.steps.pointer import click
from agent.steps.stage import Stage
from farm.protocol.failures import Reason
from farm.protocol.steps import Click, Download, Upload

_PLAIN = "application/octet-stream"
_LONGEST_NAME = 120
_NEWS_S = 1.0
"""How long after a failed navigation a download may turn out to be what came of it."""


async def download(stage: Stage, step: Download) -> None:
    """Keep the file that the page hands out as an artifact, once it is whole."""
    with stage.attempt.files.expecting() as coming:
        await _cause(stage, step, coming)
        try:
            file = await asyncio.wait_for(coming, stage.clock.playwright_ms / 1000)
        except TimeoutError:
            raise StepFailed(
                Reason.DOWNLOAD_FAILED, f"no download began {stage.clock.words}"
            ) from None
    try:
        path = await file.saved(step.max_bytes)
        name = step.name or file.name[-_LONGEST_NAME:]  # an ending says more than a beginning
        kind = mimetypes.guess_type(name)[0] or _PLAIN
        async with stage.clock.stopped():
            await stage.attempt.evidence.upload(name, path, kind)
    finally:
        await file.discard()


async def _cause(stage: Stage, step: Download, coming: asyncio.Future[Handed]) -> None:
    if step.selector is not None:
        await click(stage, Click(selector=step.selector, first=step.first, nth=step.nth))
    elif step.url is not None:
        async with stage.effect():
            await _open(stage, resolve(stage.page, step.url), coming)


async def _open(stage: Stage, url: str, coming: Awaitable[Handed]) -> None:
    try:
        await open_url(stage, url, wait_until="commit", referer=None)
    except StepFailed as failure:
        # To the browser, what is downloaded instead of shown is a navigation that has failed.
        if failure.reason is not Reason.NAVIGATION_FAILED:
            raise
        try:
            await asyncio.wait_for(asyncio.shield(coming), _NEWS_S)
        except TimeoutError:
            raise failure from None


async def upload(stage: Stage, step: Upload) -> None:
    """Bring files from the farm and put them into the page's field."""
    folder = await stage.attempt.files.folder()
    paths: list[Path] = []
    for number, reference in enumerate(step.files):
        # Each in a folder of its own: two may have one name, and pages are told the name.
        into = folder / f"{stage.attempt.index}-{number}"
        async with stage.clock.stopped():
            paths.append(await stage.attempt.evidence.fetch(reference, into, step.max_bytes))
    target = stage.target(step)
    with stage.using(step.selector):
        await target.wait_for(state="attached", timeout=stage.clock.playwright_ms)
        async with stage.effect():
            await target.set_input_files(paths, timeout=stage.clock.playwright_ms)
