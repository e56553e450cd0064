"""Activities of an installed package: found, let in, run, bounded and stopped."""

import asyncio
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import Any

import pytest

from agent.console import activities
from agent.console.activities import ActivityMissing, InstalledActivities
from agent.console.host import FlowHost
from agent.ports import BrowserEvent, BrowserLost, BrowserUnavailable
from farm.protocol.failures import Reason
from tests.agent.console.conftest import FlowRun, answering, plan_of
from tests.agent.steps.conftest import MemoryEvidence, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example package, as if pip had installed it."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    assert any(d.metadata["Name"] == "shop-activities" for d in distributions())
    yield
    sys.modules.pop("shop_activities", None)


@pytest.fixture
def run(flow: FlowRun) -> FlowRun:
    names = ("count_links", "seen", "post", "broken", "stubborn", "odd", "plain")
    flow.activities = InstalledActivities(names, runaway=lambda name: None)
    return flow


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "activity", "name": name, "effect": "none", **more}


async def test_an_activity_gets_the_page_and_its_arguments_and_gives_a_value(
    run: FlowRun, site: Site
) -> None:
    site.pages["/"] = answering(b"<a href=x>x</a><a href=y>y</a>", "text/html")
    goto = {"type": "goto", "url": f"{site.url}/"}
    steps = goto, step("count_links", args={"times": 3}, var="n")
    assert await run(*steps, {"type": "assert", "var": "n", "equals": {"links": 6}}) is None
    assert run.evidence.notices == ["activity"]


async def test_it_asks_servers_as_the_flow_does(run: FlowRun, site: Site) -> None:
    site.pages["/api"] = answering(b'{"a": 1}', "application/json")
    url = f"{site.url}/api"
    assert await run(step("seen", args={"url": url}, var="v")) is None
    assert run.variables["v"] == {"status": 200, "body": '{"a": 1}'}
    failure = await run(step("seen", args={"url": "http://10.0.0.1/"}))
    assert failure is not None
    assert failure.reason is Reason.EGRESS_DENIED


@pytest.mark.parametrize(
    ("wrong", "reason", "says"),
    [
        (step("other"), Reason.VALUE_INVALID, "AGENT_ACTIVITIES lists count_links"),
        (step("count_links", args={"no": 1}), Reason.VALUE_INVALID, "no"),
        (step("broken"), Reason.SCRIPT_ERROR, "ValueError: so"),
        (step("odd"), Reason.SCRIPT_ERROR, "not JSON"),
        (step("plain"), Reason.VALUE_INVALID, "no async function"),
        (step("seen", args={"url": "x" * 3, "wait": 9}, timeout=50), Reason.STEP_TIMEOUT, "50"),
    ],
)
async def test_what_goes_wrong_says_what(
    run: FlowRun, wrong: dict[str, Any], reason: Reason, says: str
) -> None:
    failure = await run(wrong)
    assert failure is not None
    assert failure.reason is reason
    assert says in failure.detail or reason is Reason.STEP_TIMEOUT


async def test_it_counts_as_an_effect_unless_the_step_says_otherwise(run: FlowRun) -> None:
    assert await run({"type": "activity", "name": "post"}) is None
    assert (len(run.evidence.begun), len(run.evidence.done)) == (1, 1)
    await run({"type": "activity", "name": "broken"})
    assert (len(run.evidence.begun), len(run.evidence.done)) == (1, 0)
    await run({"type": "activity", "name": "other"})
    assert (len(run.evidence.begun), len(run.evidence.done)) == (1, 1)


async def test_a_name_that_is_not_installed_or_twice_is_told_at_the_start() -> None:
    with pytest.raises(ActivityMissing, match=r"'nothing': installed are .*count_links"):
        InstalledActivities(["nothing"], runaway=lambda name: None)
    twice = [EntryPoint("a", f"m{n}:f", activities.GROUP) for n in range(2)]
    with pytest.raises(ActivityMissing, match="more than one"):
        InstalledActivities(["a"], runaway=lambda name: None, found=lambda: twice)


async def test_one_that_does_not_stop_ends_the_life_of_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activities, "STOP_S", 0.05)
    told: asyncio.Queue[BrowserEvent] = asyncio.Queue()
    host = FlowHost(max_page_bytes=1024, activities=["stubborn"])
    await host.start(told.put_nowait)
    release = asyncio.Event()
    plan = plan_of(step("stubborn", args={}, timeout=50), params={})
    import shop_activities  # type: ignore[import-not-found]  # installed by the fixture

    shop_activities.release = release
    outcome = await host.run("F1", plan, MemoryEvidence())
    assert outcome.failure is not None
    assert outcome.failure.reason is Reason.STEP_TIMEOUT
    assert isinstance(told.get_nowait(), BrowserLost)
    with pytest.raises(BrowserUnavailable, match="stubborn does not stop"):
        await host.start(told.put_nowait)
    release.set()
    await asyncio.sleep(0)


async def test_the_clock_of_the_job_ends_a_flow() -> None:
    host = FlowHost(max_page_bytes=1024)
    await host.start(lambda _: None)
    plan = plan_of({"type": "wait", "ms": 60_000}, timeouts={"job": 50})
    outcome = await host.run("F1", plan, MemoryEvidence())
    assert (outcome.outcome, outcome.page_gone) == ("timed_out", True)


async def test_a_life_that_is_killed_takes_its_attempts_with_it() -> None:
    host = FlowHost(max_page_bytes=1024)
    await host.start(lambda _: None)
    loop = asyncio.get_running_loop()
    plan = plan_of({"type": "wait", "ms": 60_000})
    run = loop.create_task(host.run("F1", plan, MemoryEvidence()))
    await asyncio.sleep(0)
    await host.kill()
    with pytest.raises(asyncio.CancelledError):
        await run
