"""The agent's composition root: the one place that knows every concrete class."""

import asyncio
import contextlib
import ctypes
import os
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING

import aiohttp
import structlog

from agent.channels import WebSocketChannels
from agent.chromium.workspace import Room
from agent.clock import monotonic, wall_clock
from agent.config import Settings, environment
from agent.connecting import Dial, longpoll, websocket
from agent.link import FarmLink, HttpUploads
from agent.loans import HttpLoans
from agent.machine import Limits, Machine, Profile
from agent.machine.events import Exit, StopRequested
from agent.ports import BrowserUnavailable, Host, LinkRefused
from agent.runner import Runner
from agent.telemetry import configure_logging
from agent.xvfb import Xvfb, XvfbUnavailable
from farm.protocol.messages import Capacity, Hello
from farm.protocol.recordings import RECORDS, RECORDS_VIDEO

if TYPE_CHECKING:
    from agent.chromium.browser import ChromiumBrowser

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_DIALS: Mapping[str, tuple[Dial, ...]] = {
    "websocket": (websocket,),
    "longpoll": (longpoll,),
    "auto": (websocket, longpoll),
}
_PR_SET_PDEATHSIG = 1
_LOOK_S = 1.0
"""So often an agent with windows looks where these are and which tab is in front."""


async def run(settings: Settings) -> Exit:
    """Run the agent until it is stopped, drained or refused; return how it ended.

    Raises:
        ValueError: If there is no token.
    """
    configure_logging(json=settings.log_json, level=settings.log_level)
    secret = settings.secret()
    if settings.exit_with_parent:
        _end_with_parent()
    try:
        async with _display(settings, environment()) as env:
            return await _run(settings, secret, env)
    except (XvfbUnavailable, BrowserUnavailable) as error:
        return Exit(1, str(error))
    except ExceptionGroup as group:
        refused, others = group.split(LinkRefused)
        if refused is None or others is not None:
            raise
        return Exit(1, str(refused.exceptions[0]))


def _prepared(settings: Settings) -> int:
    """Return how many windows are kept ready; say so where there can be none."""
    if settings.type == "console":
        return 0
    if settings.prepared_windows and (settings.max_windows or 2 * settings.slots) <= settings.slots:
        log.warning(
            "windows.none_prepared",
            because="each free slot keeps the room of one window",
            would_help="AGENT_MAX_WINDOWS greater than AGENT_SLOTS",
        )
    return settings.prepared_windows


async def _run(settings: Settings, secret: str, env: Mapping[str, str]) -> Exit:
    headers = {"Authorization": f"Bearer {secret}"}
    flows_only = settings.type == "console"
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=None)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        ffmpeg = None if flows_only else await _ffmpeg(settings, env)
        machine = Machine(
            Profile(
                hello=_hello(settings, video=ffmpeg is not None),
                identity_idle_s=settings.identity_idle_s,
                look_s=_LOOK_S if settings.headed and not flows_only else None,
                limits=_limits(settings),
                prepared_windows=_prepared(settings),
                prepared_options=settings.prepared_options,
            ),
            new_epoch=lambda: uuid.uuid4().hex,
        )

        def may_act() -> bool:
            return machine.may_act(monotonic())

        flows = _flows(settings, may_act) if flows_only else None
        browser = _browser(settings, env, ffmpeg, may_act) if flows is None else None
        link = FarmLink(session, *map(str, settings.farm_urls), dials=_DIALS[settings.transport])
        runner = Runner(
            machine,
            browser=browser,
            flows=flows,
            link=link,
            uploads=HttpUploads(session, lambda: link.url),
            loans=HttpLoans(session, lambda: link.url),
            channels=WebSocketChannels(session, lambda: link.url),
            monotonic=monotonic,
            wall_clock=wall_clock,
            short=Room(
                least_bytes=settings.min_free_bytes, least_inodes=settings.min_free_inodes
            ).short,
        )
        _listen_for_signals(runner, settings)
        with _people_seen(settings, env, browser):
            return await runner.run()


def _browser(
    settings: Settings, env: Mapping[str, str], ffmpeg: str | None, may_act: Callable[[], bool]
) -> "ChromiumBrowser":
    from agent.chromium.browser import ChromiumBrowser  # takes long, and flows do without

    return ChromiumBrowser(
        headless=not settings.headed,
        overlay=settings.overlay,
        guard=_guards(settings),
        longest_pause_s=settings.longest_pause_s,
        env=env,
        executable=settings.browser,
        sandbox=settings.sandbox,
        slow_mo_ms=settings.slow_mo_ms,
        keep_open=settings.keep_open,
        may_act=may_act,
        ffmpeg=ffmpeg,
    )


async def _ffmpeg(settings: Settings, env: Mapping[str, str]) -> str | None:
    from agent.chromium.recording.encoder import find_ffmpeg  # takes long, and flows do without

    return await find_ffmpeg(settings.ffmpeg, env)


def _flows(settings: Settings, may_act: Callable[[], bool]) -> Host:
    from agent.console.host import FlowHost  # browsers do without

    return FlowHost(
        max_page_bytes=settings.max_page_bytes, activities=settings.activities, may_act=may_act
    )


def _limits(settings: Settings) -> Limits:
    if settings.type == "console":
        return Limits()
    return Limits(
        window_uses=settings.recycle_window_uses,
        window_age_s=settings.recycle_window_age_s,
        browser_uses=settings.recycle_browser_uses,
        browser_age_s=settings.recycle_browser_age_s,
        browser_mb=settings.recycle_browser_mb,
        renderer_mb=settings.recycle_renderer_mb,
        patience_s=settings.recycle_patience_s,
    )


def _hello(settings: Settings, *, video: bool) -> Hello:
    flows = settings.type == "console"
    records = {} if flows else {RECORDS: True, RECORDS_VIDEO: video}
    return Hello(
        client_id=settings.client_id,
        client_type=settings.type,
        capabilities=() if flows else _can(settings),
        instance=uuid.uuid4().hex,
        epoch="",
        namespaces=settings.namespaces,
        task_queue=settings.task_queue,
        activity_types=settings.activity_types,
        deployment=settings.deployment,
        node=settings.node,
        metadata=settings.metadata | records,
        capacity=Capacity(
            max_concurrency=settings.slots,
            max_windows=settings.max_windows or 2 * settings.slots,
            max_tabs_per_window=settings.max_tabs_per_window,
            max_flows=(settings.max_flows or settings.slots) if flows else 0,
        ),
    )


def _can(settings: Settings) -> tuple[str, ...]:
    shown = settings.headed and settings.overlay
    return ("pause", "resume", "takeover", "hand_back", *(("message",) if shown else ()))


def _guards(settings: Settings) -> bool:
    return settings.headed if settings.input_guard is None else settings.input_guard


def _people_seen(
    settings: Settings, env: Mapping[str, str], browser: "ChromiumBrowser | None"
) -> contextlib.AbstractContextManager[None]:
    """Watch the display for what the guard keeps out of the pages, and so from the overlay."""
    if browser is None or not (settings.headed and settings.overlay and _guards(settings)):
        return contextlib.nullcontext()
    from agent.chromium.screen import Seen, watching  # needed where there is a screen

    loop = asyncio.get_running_loop()

    def tell(press: Seen) -> None:
        loop.call_soon_threadsafe(browser.seen, press)

    return watching(env["DISPLAY"], key=settings.takeover_key, tell=tell)


def _listen_for_signals(runner: Runner, settings: Settings) -> None:
    asked = 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        runner.post(StopRequested(settings.drain_s if asked == 1 else 0.0))

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


@contextlib.asynccontextmanager
async def _display(settings: Settings, env: Mapping[str, str]) -> AsyncIterator[Mapping[str, str]]:
    """Give headed browsers a display: the one there is, else one of our own that nobody sees."""
    if settings.type == "console" or not settings.headed or env.get("DISPLAY"):
        yield env
        return
    xvfb = Xvfb()
    display = await xvfb.start(env)
    log.warning("display.unseen", display=display, reason="DISPLAY is not set: nobody sees this")
    try:
        yield {**env, "DISPLAY": display}
    finally:
        await xvfb.stop()


def _end_with_parent() -> None:
    """Ask the kernel for a SIGTERM when the process that started us ends."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)  # it ended before we had asked
