"""Fixtures every room may use."""

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, settings

from agent.chromium.discovery import find
from agent.ports import BrowserUnavailable

# What a shell starts in the background ignores Ctrl-C, and so would everything the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# An example that takes long on a busy machine is none that fails.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def chromium_executable() -> str:
    """The browser used without windows, as the agent would find it.

    Skips where there is none, unless CI is set: there it fails.
    """
    search = find(headless=True, env=dict(os.environ))
    try:
        # In a thread of its own, because another plugin's loop may be running in this one.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, search).result().executable
    except BrowserUnavailable as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the rooms that take longest, so that none of them is waited for at the end."""
    ranks = [
        {item.path for item in items if item.get_closest_marker(mark)}
        for mark in ("images", "slow", "browser")
    ]
    items.sort(
        key=lambda item: [
            item.path not in ranks[0],
            "e2e" not in item.path.parts,
            *(item.path not in rank for rank in ranks[1:]),
        ]
    )
