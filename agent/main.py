"""The agent's composition root: the one place that knows every concrete class."""

import asyncio
import contextlib
import ctypes
import os
import signal
import uuid
from collections.abc import AsyncIterator, Mapping

import aiohttp
import structlog

from agent.chromium.browser import ChromiumBrowser
from agent.clock import monotonic, wall_clock
from agent.config import Settings, environment
from agent.link import HttpUploads, WebSocketLink
from agent.machine import Machine, Profile
from agent.machine.events import Exit, StopRequested
from agent.ports import BrowserUnavailable, LinkRefused
from agent.runner import Runner
from agent.telemetry import configure_logging
from agent.xvfb import Xvfb, XvfbUnavailable
from farm.protocol.messages import Capacity, Hello

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

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


async def _run(settings: Settings, secret: str, env: Mapping[str, str]) -> Exit:
    headers = {"Authorization": f"Bearer {secret}"}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=None)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        machine = Machine(
            Profile(
                hello=_hello(settings),
                identity_idle_s=settings.identity_idle_s,
                look_s=_LOOK_S if settings.headed else None,
            ),
            new_epoch=lambda: uuid.uuid4().hex,
        )
        browser = ChromiumBrowser(
            headless=not settings.headed,
            overlay=settings.overlay,
            env=env,
            executable=settings.browser,
            sandbox=settings.sandbox,
            slow_mo_ms=settings.slow_mo_ms,
            keep_open=settings.keep_open,
            may_act=lambda: machine.may_act(monotonic()),
        )
        link = WebSocketLink(session, *map(str, settings.farm_urls))
        runner = Runner(
            machine,
            browser=browser,
            link=link,
            uploads=HttpUploads(session, lambda: link.url),
            monotonic=monotonic,
            wall_clock=wall_clock,
        )
        _listen_for_signals(runner, settings)
        return await runner.run()


def _hello(settings: Settings) -> Hello:
    return Hello(
        client_id=settings.client_id,
        client_type="browser",
        capabilities=("pause", "resume", "takeover", "hand_back"),
        instance=uuid.uuid4().hex,
        epoch="",
        namespaces=settings.namespaces,
        metadata=settings.metadata,
        capacity=Capacity(
            max_concurrency=settings.slots,
            max_windows=settings.max_windows or 2 * settings.slots,
            max_tabs_per_window=settings.max_tabs_per_window,
        ),
    )


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
    if not settings.headed or env.get("DISPLAY"):
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
