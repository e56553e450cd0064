"""goto, back, reload and wait_for_url: steps that have the navigation's clock."""

import re
from collections.abc import Awaitable, Sequence
from typing import Literal
from urllib.parse import urldefrag, urljoin, urlsplit

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, Response
from playwright.async_api import TimeoutError as PlaywrightTimeout

from agent.ports import Denied, ProxyFault
from agent.steps.failures import StepFailed, clean, message_of, page_is_gone
from agent.steps.globs import url_matches
from agent.steps.stage import Stage
from farm.protocol.failures import Reason
from farm.protocol.steps import Back, Goto, Reload, WaitForUrl

EGRESS_HEADER = "x-tabfarm-egress"
"""The egress proxy sets it on its own answers and strips it from what servers say. What comes
through a tunnel, as with https, is never its own and may say anything."""
Wait = Literal["load", "domcontentloaded", "commit", "networkidle"]

MAX_INTERRUPTIONS = 2
"""How often a goto is tried again because the page before went elsewhere by itself meanwhile."""
_INTERRUPTED = "is interrupted by another navigation"
_DROPPED = re.compile(r"[\t\r\n]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FAULTS = {
    ProxyFault.UNREACHABLE: Reason.PROXY_UNREACHABLE,
    ProxyFault.AUTH_REFUSED: Reason.PROXY_AUTH_REFUSED,
}
_DEFAULT_PORTS = {"http": 80, "https": 443}


async def goto(stage: Stage, step: Goto) -> None:
    """Open a URL and check how it was answered."""
    url = resolve(stage.page, step.url)
    response = await open_url(stage, url, wait_until=step.wait_until, referer=step.referer)
    if step.expect_status is None:
        return
    status = None if response is None else response.status
    if status not in step.expect_status:
        wanted = " or ".join(str(code) for code in step.expect_status)
        got = "no HTTP answer" if status is None else str(status)
        raise StepFailed(
            Reason.HTTP_STATUS, clean(f"expected {wanted}, got {got} from {url}"), status=status
        )


async def back(stage: Stage, step: Back) -> None:
    """Go one page back."""
    before = stage.page.url
    going = stage.page.go_back(wait_until=step.wait_until, timeout=stage.clock.playwright_ms)
    response = await _navigate(stage, going, "the page before")
    if response is None and stage.page.url == before:
        raise StepFailed(Reason.NAVIGATION_FAILED, "there is no page to go back to")


async def reload(stage: Stage, step: Reload) -> None:
    """Load the page again."""
    loading = stage.page.reload(wait_until=step.wait_until, timeout=stage.clock.playwright_ms)
    await _navigate(stage, loading, stage.page.url)


async def wait_for_url(stage: Stage, step: WaitForUrl) -> None:
    """Wait until the address matches."""
    try:
        await stage.page.wait_for_url(
            lambda url: url_matches(step.url, url),
            wait_until="commit",
            timeout=stage.clock.playwright_ms,
        )
    except PlaywrightTimeout:
        raise StepFailed(
            Reason.NAVIGATION_TIMEOUT,
            clean(
                f"the address did not become {step.url} {stage.clock.words}; it is {stage.page.url}"
            ),
        ) from None


def resolve(page: Page, url: str) -> str:
    """Return a URL made absolute by the page's address, if it may be opened at all.

    Raises:
        StepFailed: `egress_denied` for any scheme but http, https, data, blob and about:blank;
            `value_invalid` for what is no URL.
    """
    written = _DROPPED.sub("", url.strip("".join(map(chr, range(33)))))
    try:
        absolute = written if _SCHEME.match(written) else urljoin(page.url, written)
        parts = urlsplit(absolute)
        has_host = bool(parts.hostname)
    except ValueError as error:
        raise StepFailed(Reason.VALUE_INVALID, clean(f"{url!r} is not a URL: {error}")) from None
    match parts.scheme:
        case "http" | "https" if has_host:
            return absolute
        case "data" | "blob":
            return absolute
        case "about" if parts.path == "blank":
            return absolute
        case "" | "http" | "https":
            raise StepFailed(
                Reason.VALUE_INVALID, clean(f"{url!r} is not a whole URL, with a host")
            )
        case other:
            raise StepFailed(
                Reason.EGRESS_DENIED,
                clean(f"only http, https, data, blob and about:blank may be opened, not {other}:"),
            )


async def open_url(
    stage: Stage, url: str, *, wait_until: Wait = "load", referer: str | None = None
) -> Response | None:
    """Go to an absolute URL.

    Raises:
        StepFailed: `egress_denied`, `navigation_failed`, `navigation_timeout`, or the page is gone.
    """
    for turn in range(MAX_INTERRUPTIONS + 1):
        before = stage.page.url
        going = stage.page.goto(
            url, wait_until=wait_until, referer=referer, timeout=stage.clock.playwright_ms
        )
        try:
            response = await _navigate(stage, going, url)
            if response is not None or turn == MAX_INTERRUPTIONS or not _is_asked_for(url, before):
                return response
            # Another navigation was on its way, and what came is the answer to that one.
        except StepFailed as failure:
            if _INTERRUPTED not in failure.detail or turn == MAX_INTERRUPTIONS:
                raise
        await stage.pause(0.05)
    raise AssertionError("unreachable")


def _is_asked_for(url: str, before: str) -> bool:
    """Tell whether a server has to answer: not where only the fragment changes."""
    there, fragment = urldefrag(url)
    return there.startswith(("http:", "https:")) and not (
        fragment and urldefrag(before)[0] == there
    )


async def _navigate(stage: Stage, going: Awaitable[Response | None], url: str) -> Response | None:
    known = len(stage.attempt.denied())
    try:
        response = await going
    except PlaywrightTimeout:
        raise StepFailed(
            Reason.NAVIGATION_TIMEOUT, clean(f"{url} was not loaded {stage.clock.words}")
        ) from None
    except PlaywrightError as error:
        raise _not_reached(error, url, stage.attempt.denied()[known:]) from None
    if response is not None and response.status in (403, 502):
        _check_own_answer(response)
    return response


def _check_own_answer(response: Response) -> None:
    """Refuse to take the egress proxy's own page for the site's."""
    if urlsplit(response.url).scheme != "http":
        return
    host = clean(urlsplit(response.url).netloc)
    match response.headers.get(EGRESS_HEADER):
        case None:
            return
        case "denied":
            raise StepFailed(
                Reason.EGRESS_DENIED, f"{host} may not be reached from here", status=403
            )
        case ProxyFault.UNREACHABLE | ProxyFault.AUTH_REFUSED as fault:
            raise StepFailed(_FAULTS[ProxyFault(fault)], f"{host} is not reached by the proxy")
        case _:
            raise StepFailed(Reason.NAVIGATION_FAILED, f"nothing answers at {host}")


def _refusal(url: str, denied: Sequence[Denied]) -> StepFailed | None:
    """Return what the egress proxy said during the navigation, of the URL's own host if it did."""
    if not denied:
        return None
    host = _host_and_port(url)
    entry = next((d for d in denied if _host_and_port(d.url) == host), denied[-1])
    where = "{}:{}".format(*_host_and_port(entry.url))
    if entry.proxy is not None:
        return StepFailed(_FAULTS[entry.proxy], clean(f"{where}: {entry.reason}"))
    if entry.unreachable:
        return StepFailed(
            Reason.NAVIGATION_FAILED, clean(f"nothing answers at {where}: {entry.reason}")
        )
    return StepFailed(
        Reason.EGRESS_DENIED, clean(f"{where} may not be reached from here: {entry.reason}")
    )


def _host_and_port(url: str) -> tuple[str, int]:
    """Return where a URL, or the `host:port` of a tunnel, leads."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        return parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 443)
    except ValueError:
        return "", 0


def _not_reached(error: PlaywrightError, url: str, denied: Sequence[Denied]) -> StepFailed:
    gone = page_is_gone(error)
    if gone is not None:
        return gone
    refused = _refusal(url, denied)
    text = message_of(error)
    if refused is not None and "net::" in text:
        return refused
    if "Download is starting" in text:
        return StepFailed(
            Reason.NAVIGATION_FAILED, clean(f"{url} is a file to download, not a page to open")
        )
    if "Cannot navigate to invalid URL" in text:
        return StepFailed(Reason.VALUE_INVALID, clean(f"{url!r} is not a URL"))
    return StepFailed(Reason.NAVIGATION_FAILED, text)
