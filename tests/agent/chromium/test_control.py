"""Who has control of a tab, and what its run tells of it; without a browser."""

import asyncio

import pytest
from playwright.async_api import Error as PlaywrightError

from agent.chromium import between
from agent.chromium.control import Act, Guarding, TabControl
from agent.chromium.countdown import Countdown
from agent.machine.control import Holder, Move, OutOfPlaceError
from farm.protocol.messages import AttemptEvent, ControlMoved, HumanAct
from tests.patience import PATIENCE_S


class Run:
    """A run under a control, and what it tells."""

    def __init__(self) -> None:
        self.control = TabControl(Guarding())
        self.told: list[AttemptEvent] = []
        self.moves = 0
        self.control.begin(self.told.append, self._moved)

    def _moved(self) -> None:
        self.moves += 1

    def kinds(self) -> list[tuple[str, str]]:
        return [(e.kind, e.by) for e in self.told if isinstance(e, ControlMoved | HumanAct)]

    async def waits(self) -> None:
        """Let whatever can go on do so."""
        for _ in range(5):
            await asyncio.sleep(0)


class Page:
    """A CDP session that ignores input or not, and refuses so many orders before it does."""

    def __init__(self) -> None:
        self.ignores = False
        self.refuses: list[str] = []

    def on(self, *_: object) -> None: ...

    async def send(self, _: str, order: dict[str, bool]) -> None:
        if self.refuses:
            raise PlaywrightError(self.refuses.pop())
        self.ignores = order["ignore"]


@pytest.mark.parametrize("why", ["Not attached to an active page", "Target closed"])
async def test_a_guard_that_a_page_refused_is_not_taken_for_what_it_was_to_be(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(between, "_PAUSE_S", 0.0)
    control, page = TabControl(Guarding(guard=True)), Page()
    await control.watch_over(page)  # type: ignore[arg-type]
    assert page.ignores
    page.refuses = [why]
    await control.open_up()  # ends without an error
    await control.open_up()
    assert not page.ignores


async def test_automation_acts_once_there_is_a_page_that_takes_its_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(between, "_PAUSE_S", 0.0)
    control, page = TabControl(Guarding(guard=True)), Page()
    await control.watch_over(page)  # type: ignore[arg-type]
    page.refuses = ["Not attached to an active page"] * 3
    async with control.acting():
        meanwhile = page.ignores
    assert (meanwhile, page.ignores) == (False, True)
    page.refuses = ["Target closed"]
    with pytest.raises(PlaywrightError, match="closed"):
        await control.acting().__aenter__()


async def test_a_pause_takes_effect_between_two_steps_and_lasts_until_it_is_resumed() -> None:
    run = Run()
    await run.control.gate()
    run.control.move(Move.PAUSE, "anna")
    assert (run.control.holder, run.control.held) == (Holder.PAUSING, False)
    async with asyncio.TaskGroup() as group:
        gate = group.create_task(run.control.gate())
        await run.waits()
        assert not gate.done()
        assert (run.control.holder, run.control.by) == (Holder.PAUSED, "anna")
        run.control.move(Move.RESUME, "bert")
    assert run.kinds() == [("pausing", "anna"), ("paused", "anna"), ("resumed", "bert")]
    assert (run.control.holder, run.control.by) == (Holder.AUTOMATION, "")


async def test_a_person_takes_over_and_hands_back_and_only_meanwhile_acts_count() -> None:
    run = Run()
    run.control.acted("key")
    run.control.move(Move.TAKE_OVER, "anna")
    run.control.acted("key")
    async with asyncio.TaskGroup() as group:
        group.create_task(run.control.gate())
        await run.waits()
        assert run.control.human_may_act
        acts: tuple[Act, ...] = ("key", "key", "pointer", "key")
        for act in acts:
            run.control.acted(act)
        run.control.move(Move.HAND_BACK, "anna")
    run.control.acted("key")
    assert run.kinds() == [
        ("taking_over", "anna"),
        ("taken_over", "anna"),
        ("human_act", "anna"),
        ("human_act", "anna"),
        ("handed_back", "anna"),
    ]
    assert [e.act for e in run.told if isinstance(e, HumanAct)] == ["key", "pointer"]


async def test_who_takes_over_from_another_person_is_named() -> None:
    run = Run()
    run.control.move(Move.TAKE_OVER, "anna")
    async with asyncio.TaskGroup() as group:
        group.create_task(run.control.gate())
        await run.waits()
        run.control.move(Move.TAKE_OVER, "anna")
        run.control.move(Move.TAKE_OVER, "bert")
        assert run.control.by == "bert"
        run.control.move(Move.HAND_BACK, "bert")
    kinds = [kind for kind, _ in run.kinds()]
    assert kinds == ["taking_over", "taken_over", "taken_over", "handed_back"]


async def test_a_step_that_asks_lets_a_person_in_until_they_hand_back() -> None:
    run = Run()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(run.control.ask("solve it"))
        await run.waits()
        assert (run.control.holder, run.control.asked) == (Holder.HUMAN, "solve it")
        assert not asking.done()
        run.control.move(Move.HAND_BACK, "anna")
    assert run.control.asked == ""
    assert run.kinds() == [("taken_over", ""), ("handed_back", "anna")]
    assert run.told[0] == ControlMoved(kind="taken_over", detail="solve it")


async def test_a_person_who_does_not_come_in_time_is_waited_for_no_more() -> None:
    run = Run()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run.control.ask("solve it")
    assert run.control.holder is Holder.AUTOMATION
    assert run.kinds() == [("taken_over", ""), ("handed_back", "")]
    await run.control.gate()


async def test_a_click_that_ends_control_is_seen_on_the_screen_after_the_page_has_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run()

    def through_the_page() -> bool:
        return run.control.clicks_come_through_the_page

    assert not through_the_page()
    asked = asyncio.ensure_future(run.control.ask("solve it"))
    await run.waits()
    assert through_the_page()
    run.control.move(Move.HAND_BACK, "anna")
    assert through_the_page()
    await asked
    monkeypatch.setattr("agent.chromium.control._ECHO_S", 0.0)
    assert not through_the_page()


async def test_what_is_out_of_place_changes_nothing_and_nothing_is_moved_without_a_run() -> None:
    run = Run()
    with pytest.raises(OutOfPlaceError):
        run.control.move(Move.HAND_BACK, "anna")
    assert run.kinds() == []
    run.control.end()
    with pytest.raises(OutOfPlaceError):
        run.control.move(Move.PAUSE, "anna")


async def test_a_run_that_ends_while_it_is_held_leaves_automation_in_control() -> None:
    run = Run()
    run.control.move(Move.PAUSE, "anna")
    gate = asyncio.ensure_future(run.control.gate())
    await run.waits()
    gate.cancel()
    run.control.end()
    assert run.control.holder is Holder.AUTOMATION


async def test_a_countdown_stands_still_and_goes_on_with_what_was_left() -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    began = loop.time()
    clock = Countdown(0.1, over.set)
    clock.go()
    clock.stop()
    clock.stop()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(over.wait(), 0.15)
    clock.go()
    clock.go()
    await asyncio.wait_for(over.wait(), PATIENCE_S)
    assert loop.time() - began >= 0.24
    clock.reset()
