"""goto and reload: a page asked for and parsed."""

import asyncio
import base64
import binascii
from urllib.parse import unquote_to_bytes

from agent.console import page as pages
from agent.console import urls
from agent.console.fetching import Ask
from agent.console.page import Page
from agent.console.stage import Stage
from agent.steps.failed import StepFailed, clean
from farm.protocol.failures import Reason
from farm.protocol.steps import Goto, Reload

_NO_PAGE = frozenset({204, 205})


async def goto(stage: Stage, step: Goto) -> None:
    """Open a URL and check how it was answered."""
    url = resolve(stage.flow.page, step.url)
    await open_url(stage, url, referer=step.referer)
    if step.expect_status is None:
        return
    status = stage.flow.page.status
    if status not in step.expect_status:
        wanted = " or ".join(str(code) for code in step.expect_status)
        got = "no HTTP answer" if status is None else str(status)
        raise StepFailed(
            Reason.HTTP_STATUS, clean(f"expected {wanted}, got {got} from {url}"), status=status
        )


async def reload(stage: Stage, step: Reload) -> None:
    """Ask for the page again."""
    await open_url(stage, stage.flow.page.url)


def resolve(page: Page, url: str) -> str:
    """Return a URL made absolute by the page's address, if a flow may open it at all.

    Raises:
        StepFailed: `egress_denied` for any scheme but http, https, data and about:blank;
            `value_invalid` for what is no URL; `needs_browser` for blob.
    """
    absolute = urls.join(page.url, url)
    if absolute is None:
        raise StepFailed(Reason.VALUE_INVALID, clean(f"{url!r} is not a whole URL, with a host"))
    match urls.scheme(absolute):
        case "http" | "https" | "data":
            return absolute
        case "about" if absolute.partition("#")[0] == urls.BLANK:
            return absolute
        case "blob":
            raise StepFailed(Reason.NEEDS_BROWSER, "only a browser has blob: URLs")
        case other:
            raise StepFailed(
                Reason.EGRESS_DENIED,
                clean(f"only http, https, data and about:blank may be opened, not {other}:"),
            )


async def open_url(stage: Stage, url: str, *, referer: str | None = None) -> None:
    """Make an absolute URL the flow's page.

    Raises:
        StepFailed: `egress_denied`, `navigation_failed`, or what a page can't be.
    """
    match urls.scheme(url):
        case "about":
            stage.flow.page = pages.blank()
        case "data":
            content, content_type = _data(url)
            stage.flow.page = await _parsed(url, content, content_type, None)
        case _:
            headers = {} if referer is None else {"Referer": referer}
            answer = await stage.fetch(Ask(url=url, headers=headers))
            if answer.status in _NO_PAGE:
                raise StepFailed(Reason.NAVIGATION_FAILED, f"{answer.status}: there is no page")
            if answer.headers.get("content-disposition", "").lower().startswith("attachment"):
                raise StepFailed(
                    Reason.NAVIGATION_FAILED,
                    clean(f"{answer.url} is a file to download, not a page to open"),
                )
            stage.flow.page = await _parsed(
                answer.url, answer.body, answer.content_type, answer.status
            )


async def _parsed(url: str, content: bytes, content_type: str, status: int | None) -> Page:
    # In a thread: a large page takes its time, and the agent's heartbeats must not wait for it.
    return await asyncio.to_thread(pages.read, url, content, content_type, status)


def _data(url: str) -> tuple[bytes, str]:
    head, comma, body = url.removeprefix("data:").partition(",")
    if not comma:
        raise StepFailed(Reason.NAVIGATION_FAILED, clean(f"{url!r} has no comma"))
    content = unquote_to_bytes(body.partition("#")[0])
    kind, mark, coding = head.rpartition(";")
    if mark and coding.strip().lower() == "base64":
        try:
            return base64.b64decode(content + b"==", validate=False), kind or "text/plain"
        except binascii.Error:
            raise StepFailed(Reason.NAVIGATION_FAILED, clean(f"{url!r} is not base64")) from None
    return content, head or "text/plain"
