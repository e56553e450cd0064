"""screenshot, pdf and html: files about the page."""

from pathlib import PurePosixPath
from typing import Literal

from agent.steps.selectors import locate
from agent.steps.stage import Stage
from farm.protocol.steps import Html, Pdf, Screenshot

_SUFFIXES = {"png": (".png",), "jpeg": (".jpg", ".jpeg")}


async def screenshot(stage: Stage, step: Screenshot) -> None:
    """Take a picture of the page, or of one element."""
    kind, name = _kind_and_name(step)
    quality = step.quality if kind == "jpeg" else None
    timeout = stage.clock.playwright_ms
    with stage.using(step.selector):
        if step.selector is None:
            content = await stage.page.screenshot(
                type=kind, quality=quality, full_page=step.full_page, timeout=timeout
            )
        else:
            content = await locate(stage.page, step.selector).screenshot(
                type=kind, quality=quality, timeout=timeout
            )
    await stage.upload(name, content, f"image/{kind}")


async def pdf(stage: Stage, step: Pdf) -> None:
    """Print the page."""
    with stage.using(None):
        content = await stage.page.pdf(
            format=step.format, landscape=step.landscape, print_background=step.print_background
        )
    await stage.upload(step.name, content, "application/pdf")


async def html(stage: Stage, step: Html) -> None:
    """Keep the page's markup as it is now."""
    with stage.using(None):
        content = await stage.page.content()
    await stage.upload(step.name, content.encode("utf-8", "replace"), "text/html")


def _kind_and_name(step: Screenshot) -> tuple[Literal["png", "jpeg"], str]:
    """Return the picture's format, by its name where none was said, and a name that fits it."""
    suffix = PurePosixPath(step.name).suffix.lower()
    by_name = "format" not in step.model_fields_set and suffix in _SUFFIXES["jpeg"]
    kind = "jpeg" if by_name else step.format
    if suffix in _SUFFIXES[kind]:
        return kind, step.name
    stem = step.name[: -len(suffix)] if suffix in (".png", ".jpg", ".jpeg") else step.name
    return kind, stem + _SUFFIXES[kind][0]
