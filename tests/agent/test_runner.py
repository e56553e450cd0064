"""The shell around the machine, with a browser and a link that do what the test says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.machine import Machine, Profile
from agent.machine import events as ev
from agent.machine.control import Holder, Move, OutOfPlaceError
from agent.ports import (
    BrowserEvent,
    BrowserInfo,
    BrowserUnavailable,
    Channel,
    ChannelClosed,
    Evidence,
    Lender,
    LinkRefused,
    StaleAssignment,
)
from agent.runner import Runner
from farm.protocol import messages as wire
from farm.protocol.plan import BrowserOptions, Plan
from farm.protocol.recordings import RecordingKind
from tests.agent.lending import NoLoans
from tests.agent.scene import HELLO, NoChannels, begun, note, plan, token
from tests.patience import PATIENCE_S

Tell = Callable[[ev.LinkUp | ev.LinkDown | ev.Heard], None]


class StandInBrowser:
    """Opens and closes names; a run is the test's coroutine."""

    def __init__(self) -> None:
        self.tell: Callable[[BrowserEvent], None] = lambda _: None
        self.run_with: Callable[[Evidence], object] | None = None
        self.open: set[str] = set()
        self.seen: tuple[ev.SeenWindow, ...] = ()
        self.kills = 0
        self.unavailable = False
        self.drained = asyncio.Event()
        self.started = asyncio.Event()
        self.ran: list[str] = []
        self.wanted: list[tuple[str, str, str]] = []
        self.objection: Exception | None = None

    async def start(self, tell: Callable[[BrowserEvent], None]) -> BrowserInfo:
        if self.unavailable:
            raise BrowserUnavailable("there is none")
        self.tell = tell
        return BrowserInfo(product="Chrome/1", executable="chrome", pid=1)

    async def open_window(
        self, window_id: str, context_id: str, options: BrowserOptions, *, resets: bool = False
    ) -> None:
        if self.unavailable:
            raise BrowserUnavailable("no window")
        self.open.add(context_id)

    async def intervene(self, context_id: str, wanted: wire.Intervene) -> None:
        self.wanted.append((context_id, wanted.kind, wanted.by))
        if self.objection is not None:
            raise self.objection

    async def open_tab(self, window_id: str, context_id: str) -> None:
        self.open.add(context_id)

    async def run(
        self, context_id: str, plan: Plan, evidence: Evidence, lender: Lender
    ) -> ev.Outcome:
        self.ran.append(context_id)
        self.started.set()
        try:
            if self.run_with is not None:
                return await self.run_with(evidence)  # type: ignore[misc, no-any-return]
            return ev.Outcome(outcome="succeeded")
        except asyncio.CancelledError:
            self.open.discard(context_id)
            raise

    async def look(self) -> tuple[ev.SeenWindow, ...]:
        return self.seen

    async def weigh(self) -> tuple[float, float]:
        return 0.0, 0.0

    async def reset(self, context_id: str) -> bool:
        return context_id in self.open

    async def close_tab(self, context_id: str) -> None:
        self.open.discard(context_id)

    async def close_window(self, window_id: str) -> None:
        self.open.discard(window_id.replace("W", "T"))

    async def watch(self, context_id: str, channel: Channel) -> None:
        async for _ in channel.receive():
            pass

    async def drain(self) -> None:
        self.drained.set()

    async def probe(self) -> None:
        if self.unavailable:
            raise BrowserUnavailable("no page")

    async def kill(self) -> None:
        self.kills += 1
        self.open.clear()


class StandInLink:
    """The farm's end of the wire."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[wire.FromAgent] = asyncio.Queue()
        self.tell: Tell = lambda _: None
        self.refuse = False

    async def run(self, tell: Tell) -> None:
        if self.refuse:
            raise LinkRefused("no")
        self.tell = tell
        tell(ev.LinkUp())
        await asyncio.Event().wait()

    async def send(self, message: wire.FromAgent) -> None:
        self.sent.put_nowait(message)

    def says(self, message: wire.ToAgent) -> None:
        self.tell(ev.Heard(message))

    async def hears(self, kind: type) -> wire.FromAgent:
        async with asyncio.timeout(PATIENCE_S):
            while not isinstance(message := await self.sent.get(), kind):
                pass
            return message


class StandInUploads:
    def __init__(self) -> None:
        self.files: list[str] = []

    async def upload(
        self,
        attempt_id: str,
        token: wire.Token,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        self.files.append(f"{attempt_id}/{token.counter}/{name}")
        return name

    async def fetch(
        self, attempt_id: str, token: wire.Token, reference: str, into: Path, max_bytes: int
    ) -> Path:
        self.files.append(f"{attempt_id}/{token.counter}/{reference}")
        return into / reference.partition("/")[2]


class Shell:
    def __init__(self) -> None:
        self.browser, self.link, self.uploads = StandInBrowser(), StandInLink(), StandInUploads()
        self.now = 0.0
        self.runner = Runner(
            Machine(Profile(hello=HELLO, identity_idle_s=300), new_epoch=iter("abcdef").__next__),
            browser=self.browser,
            link=self.link,
            uploads=self.uploads,
            loans=NoLoans(),
            channels=NoChannels(),
            monotonic=lambda: self.now,
            wall_clock=lambda: 5.0,
        )

    async def open(self) -> str:
        await self.link.hears(wire.Hello)
        self.link.says(
            wire.Welcome(
                epoch_number=1, capacity=wire.Capacity(), heartbeat_interval_s=2.5, window_s=10
            )
        )
        self.link.says(wire.Command(command_id="open", body=wire.OpenWindow()))
        result = await self.link.hears(wire.Result)
        assert isinstance(result, wire.Result)
        return str(result.value["context_id"])

    def start(self, tab: str) -> None:
        self.link.says(
            wire.Command(
                command_id="run", context_id=tab, token=token(1), body=wire.RunPlan(plan=plan())
            )
        )

    async def result(self) -> wire.Result:
        result = await self.link.hears(wire.Result)
        assert isinstance(result, wire.Result)
        return result


@asynccontextmanager
async def running(shell: Shell) -> AsyncIterator[asyncio.Task[ev.Exit]]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(shell.runner.run())
        yield task
        task.cancel()


@pytest.fixture
def shell() -> Shell:
    return Shell()


@pytest.mark.parametrize(
    ("objection", "outcome"),
    [
        (None, "applied"),
        (OutOfPlaceError(Holder.AUTOMATION, Move.HAND_BACK), "out_of_place"),
        (KeyError("T1"), "stale_target"),
    ],
)
async def test_what_a_person_wants_is_done_in_the_browser_and_what_became_of_it_is_said(
    shell: Shell, objection: Exception | None, outcome: str
) -> None:
    gone = asyncio.Event()

    async def work(_: Evidence) -> ev.Outcome:
        await gone.wait()
        return ev.Outcome(outcome="succeeded")

    shell.browser.run_with, shell.browser.objection = work, objection
    async with running(shell):
        tab = await shell.open()
        shell.start(tab)
        shell.link.says(
            wire.Intervene(
                intervention_id="int",
                command_id="run",
                token=token(1),
                kind="hand_back",
                by="anna",
            )
        )
        said = await shell.link.hears(wire.Intervened)
        assert isinstance(said, wire.Intervened)
        assert (said.intervention_id, said.outcome) == ("int", outcome)
        assert shell.browser.wanted == [(tab, "hand_back", "anna")]
        gone.set()
        assert (await shell.result()).outcome == "succeeded"


async def test_a_run_goes_from_command_to_result(shell: Shell) -> None:
    async def work(evidence: Evidence) -> ev.Outcome:
        await evidence.note(wire.StepStarted(index=0, verb="goto", label="open"))
        assert await evidence.upload("a.png", b"x", "image/png") == "a.png"
        return ev.Outcome(outcome="succeeded")

    shell.browser.run_with = work
    async with running(shell):
        shell.start(await shell.open())
        assert (await shell.result()).outcome == "succeeded"
        assert shell.uploads.files == ["att-1/1/a.png"]


async def test_what_is_to_be_settled_waits_until_it_is_stored(shell: Shell) -> None:
    settled: list[str] = []

    async def work(evidence: Evidence) -> ev.Outcome:
        await evidence.note(note())
        await evidence.settle(begun())
        settled.append("now")
        return ev.Outcome(outcome="succeeded")

    shell.browser.run_with = work
    async with running(shell):
        shell.start(await shell.open())
        told: list[wire.Entry] = []
        while not told or told[-1].event != begun():
            events = await shell.link.hears(wire.Events)
            assert isinstance(events, wire.Events)
            told += events.entries
        assert [entry.seq for entry in told] == [1, 2, 3]
        assert [entry.event.kind for entry in told] == ["started", "notice", "effect_begun"]
        shell.link.says(wire.Stored(command_id="run", seq=2))
        shell.link.says(wire.Ping(nonce="after"))
        await shell.link.hears(wire.Pong)
        assert settled == []
        shell.link.says(wire.Stored(command_id="run", seq=3))
        assert (await shell.result()).seq == 3
        assert settled == ["now"]


async def test_what_is_to_be_settled_gives_up_when_the_farm_wants_no_more(shell: Shell) -> None:
    seen: list[str] = []

    async def work(evidence: Evidence) -> ev.Outcome:
        try:
            await evidence.settle(begun())
        except (StaleAssignment, asyncio.CancelledError) as error:
            seen.append(type(error).__name__)
            with pytest.raises(StaleAssignment):
                await evidence.upload("a", b"", "text/plain")
            raise
        return ev.Outcome(outcome="succeeded")

    shell.browser.run_with = work
    async with running(shell):
        shell.start(await shell.open())
        await shell.link.hears(wire.Events)
        shell.link.says(wire.Stored(command_id="run", refused=True))
        assert (await shell.result()).outcome == "failed"
    assert seen


async def test_a_cancelled_run_closes_its_tab_and_says_so(shell: Shell) -> None:
    async def work(_: Evidence) -> ev.Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    shell.browser.run_with = work
    async with running(shell):
        tab = await shell.open()
        shell.start(tab)
        await shell.browser.started.wait()
        shell.link.says(wire.Cancel(command_id="run"))
        result = await shell.result()
        assert (result.outcome, result.page_gone) == ("cancelled", True)
        assert shell.browser.open == set()


async def test_a_run_cancelled_before_it_could_take_a_step_ends_and_leaves_its_page(
    shell: Shell,
) -> None:
    async with running(shell):
        tab = await shell.open()
        shell.start(tab)
        shell.link.says(wire.Cancel(command_id="run"))
        result = await shell.result()
        assert (result.outcome, result.page_gone) == ("cancelled", False)
        assert shell.browser.ran == []
        assert shell.browser.open == {tab}


async def test_a_browser_that_cannot_be_started_ends_the_agent(shell: Shell) -> None:
    shell.browser.unavailable = True
    async with asyncio.timeout(PATIENCE_S):
        done = await shell.runner.run()
    assert done == ev.Exit(1, "there is none")
    assert shell.browser.kills == 1


async def test_a_window_that_cannot_be_opened_is_answered(shell: Shell) -> None:
    async with running(shell):
        await shell.open()
        shell.browser.unavailable = True
        shell.link.says(wire.Command(command_id="again", body=wire.OpenWindow()))
        assert (await shell.result()).outcome == "failed"
        shell.link.says(wire.Command(command_id="probe", body=wire.Probe()))
        probed = await shell.result()
        assert probed.failure is not None
        assert probed.failure.detail == "no page"


async def test_a_lost_browser_is_started_again(shell: Shell) -> None:
    async with running(shell):
        await shell.open()
        shell.browser.tell(ev.BrowserLost("killed"))
        hello = await shell.link.hears(wire.Hello)
        assert isinstance(hello, wire.Hello)
        assert hello.epoch == "b"


async def test_a_stopped_agent_says_bye_and_leaves_no_browser(shell: Shell) -> None:
    async with running(shell) as task:
        await shell.open()
        shell.runner.post(ev.StopRequested(8))
        await shell.link.hears(wire.Bye)
        async with asyncio.timeout(PATIENCE_S):
            assert (await task).code == 0
        assert shell.browser.kills == 2


async def test_people_are_shown_that_an_agent_drains(shell: Shell) -> None:
    shell.browser.run_with = lambda _: asyncio.Event().wait()
    async with running(shell):
        shell.start(await shell.open())
        shell.runner.post(ev.StopRequested(8))
        async with asyncio.timeout(PATIENCE_S):
            await shell.browser.drained.wait()


async def test_a_refused_link_ends_the_agent_and_its_browser(shell: Shell) -> None:
    shell.link.refuse = True
    with pytest.raises(ExceptionGroup) as refused:
        await shell.runner.run()
    assert refused.value.subgroup(LinkRefused) is not None
    assert shell.browser.kills == 1


async def test_a_cancelled_shell_leaves_no_browser_and_no_run(shell: Shell) -> None:
    async def work(_: Evidence) -> ev.Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    shell.browser.run_with = work
    async with running(shell):
        shell.start(await shell.open())
        await shell.browser.started.wait()
    assert shell.browser.open == set()
    assert shell.browser.kills == 1


async def test_a_channel_is_served_beside_everything_else_and_ends_with_the_agent(
    shell: Shell,
) -> None:
    channels = shell.runner._channels = OneChannel()
    async with running(shell) as task:
        tab = await shell.open()
        for channel_id in ("ch_refused_by_the_farm", "ch_that_is_taken_in"):
            shell.link.says(
                wire.OpenChannel(channel_id=channel_id, kind="live", context_id=tab, epoch_number=1)
            )
        await channels.taken.wait()
        shell.start(tab)
        assert (await shell.result()).outcome == "succeeded"
        assert not channels.over.is_set()
        shell.runner.post(ev.StopRequested(0.0))
        shell.link.says(wire.Stored(command_id="run", seq=1, done=True))
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait({task})
    assert channels.over.is_set()


class OneChannel:
    """The farm takes one channel, and is silent on it."""

    def __init__(self) -> None:
        self.taken, self.over = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def dial(self, channel_id: str) -> AsyncIterator[Channel]:
        if channel_id != "ch_that_is_taken_in":
            raise ChannelClosed("404")
        self.taken.set()
        try:
            yield self
        finally:
            self.over.set()

    async def send(self, message: str, payload: bytes | None = None) -> None: ...

    async def receive(self) -> AsyncIterator[tuple[str | bytes, memoryview | None]]:
        await asyncio.Event().wait()
        yield "", None
