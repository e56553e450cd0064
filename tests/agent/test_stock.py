"""Windows that are prepared before anybody asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.machine import events as ev
from agent.machine.events import Instruction
from farm.protocol import messages as wire
from farm.protocol.failures import Failure
from farm.protocol.plan import BrowserOptions, profile_of
from tests.agent.scene import Scene

GERMAN = BrowserOptions(locale="de-DE")
ROOMY = wire.Capacity(max_concurrency=2, max_windows=4)
RESETS = wire.OpenWindow(profile="/ns", resets=True)


def prepares(instructions: list[Instruction]) -> list[ev.PrepareWindow]:
    return [i for i in instructions if isinstance(i, ev.PrepareWindow)]


def closes(instructions: list[Instruction]) -> list[str]:
    return [i.window_id for i in instructions if isinstance(i, ev.CloseWindow)]


def asks(scene: Scene, options: BrowserOptions, command_id: str = "open") -> list[Instruction]:
    body = wire.OpenWindow(profile=profile_of(options), options=options)
    return scene.hear(wire.Command(command_id=command_id, body=body))


def stocked(number: int = 1, capacity: wire.Capacity = ROOMY) -> tuple[Scene, list[str]]:
    """A welcomed agent that has prepared what it wants; nothing of it is left to be read."""
    scene = Scene(prepared=number, capacity=capacity)
    scene.welcomed()
    tabs = []
    while orders := prepares(scene.passes(0.1)):
        (order,) = orders
        scene.on(ev.Prepared(order.context_id))
        tabs.append(order.context_id)
    scene.said()
    return scene, tabs


def test_windows_are_prepared_one_by_one_up_to_the_number_and_reported_as_idle() -> None:
    scene = Scene(prepared=2, capacity=ROOMY)
    scene.welcomed()
    (first,) = prepares(scene.passes(0.1))
    assert first.options == BrowserOptions()
    assert prepares(scene.passes(0.1)) == []  # one is enough at a time
    scene.said()
    scene.on(ev.Prepared(first.context_id))
    report = scene.reports()[-1]
    assert [(w.window_id, w.profile, w.prepared) for w in report.windows] == [("W1", "", True)]
    assert [(c.state, c.clean, c.token) for c in report.contexts] == [("active", True, None)]
    (second,) = prepares(scene.passes(0.1))
    scene.on(ev.Prepared(second.context_id))
    assert prepares(scene.passes(0.1)) == []


def test_none_is_prepared_before_the_farm_has_let_the_agent_in() -> None:
    scene = Scene(prepared=2, capacity=ROOMY)
    scene.on(ev.BrowserStarted("epoch-1", "Chrome/1"))
    scene.on(ev.LinkUp())
    assert prepares(scene.passes(0.1)) == []


def test_a_prepared_window_takes_a_run_at_once_and_is_replaced_soon() -> None:
    scene, (tab,) = stocked()
    (start,) = scene.runs(tab, last=True)
    assert isinstance(start, ev.StartRun)
    (another,) = prepares(scene.passes(0.1))
    assert another.window_id == "W2"
    scene.on(ev.Prepared("T2"))
    done = scene.ends()
    assert closes(done) == ["W1"]


def test_what_is_prepared_follows_the_result_never_goes_before_it() -> None:
    scene, (tab,) = stocked(capacity=wire.Capacity(max_concurrency=1, max_windows=9))
    scene.runs(tab, last=True)
    instructions = scene.machine.handle(
        ev.RunEnded("run", ev.Outcome(outcome="succeeded")), scene.now
    )
    kinds = [type(i.message) if isinstance(i, ev.Send) else type(i) for i in instructions]
    assert kinds.index(wire.Result) < kinds.index(ev.CloseWindow)
    assert kinds.index(wire.Result) < kinds.index(ev.PrepareWindow)


def test_a_run_in_it_makes_a_window_like_any_other() -> None:
    scene, (tab,) = stocked()
    scene.runs(tab)
    scene.passes(0.1)
    assert [w.prepared for w in scene.reports()[-1].windows if w.window_id == "W1"] == [False]


def test_who_asks_for_the_like_is_given_the_one_that_is_being_prepared() -> None:
    scene = Scene(prepared=1, capacity=ROOMY)
    scene.welcomed()
    (order,) = prepares(scene.passes(0.1))
    assert asks(scene, BrowserOptions()) == []
    scene.said()
    scene.on(ev.Prepared(order.context_id))
    report, result = scene.said()
    assert isinstance(report, wire.Report)
    assert not report.windows[0].prepared
    assert isinstance(result, wire.Result)
    assert result.value == {"window_id": order.window_id, "context_id": order.context_id}


@pytest.mark.parametrize("how", ["failed", "gone", "lost"])
def test_who_was_given_a_window_that_does_not_come_is_told(how: str) -> None:
    scene = Scene(prepared=1, capacity=ROOMY)
    scene.welcomed()
    (order,) = prepares(scene.passes(0.1))
    asks(scene, BrowserOptions())
    scene.said()
    match how:
        case "failed":
            scene.on(ev.PrepareFailed(order.context_id, "no"))
        case "gone":
            scene.on(ev.WindowGone(order.window_id))
            scene.on(ev.Prepared(order.context_id))
        case _:
            scene.on(ev.BrowserLost("x"))
            scene.on(ev.PrepareFailed(order.context_id, "no"))
    results = [m for m in scene.said() if isinstance(m, wire.Result)]
    assert [(r.command_id, r.outcome) for r in results] == [("open", "failed")]
    assert isinstance(results[0].failure, Failure)


def test_who_asks_for_other_options_is_not_given_it() -> None:
    scene = Scene(prepared=1, capacity=ROOMY)
    scene.welcomed()
    prepares(scene.passes(0.1))
    (order,) = asks(scene, GERMAN)
    assert isinstance(order, ev.OpenWindow)
    assert order.options == GERMAN


def test_a_named_identity_is_not_given_it() -> None:
    scene = Scene(prepared=1, capacity=ROOMY)
    scene.welcomed()
    prepares(scene.passes(0.1))
    body = wire.OpenWindow(identity="shop")
    (order,) = scene.hear(wire.Command(command_id="open", body=body))
    assert isinstance(order, ev.OpenWindow)


def test_options_that_were_asked_for_are_prepared_too() -> None:
    scene, _ = stocked(capacity=wire.Capacity(max_concurrency=2, max_windows=6))
    asks(scene, GERMAN)
    assert prepares(scene.passes(0.1)) == []  # somebody waits for a window
    scene.on(ev.Opened("open"))
    (order,) = prepares(scene.passes(0.1))
    assert order.options == GERMAN


class Story:
    """Jobs come and go on an agent that prepares windows."""

    def __init__(self, capacity: wire.Capacity, number: int) -> None:
        self.slots = capacity.max_concurrency or 1
        self.scene, self.ready = stocked(number, capacity)
        self.held: list[tuple[str, int]] = []
        self.counter = 0

    def asks(self, options: BrowserOptions) -> None:
        if len(self.held) < self.slots:
            self.counter += 1
            for order in asks(self.scene, options, f"open-{self.counter}"):
                assert isinstance(order, ev.OpenWindow)
                self.scene.on(ev.Opened(order.command_id))
                self.runs(order.context_id)

    def lends(self) -> None:
        if self.ready and len(self.held) < self.slots:
            self.counter += 1
            self.runs(self.ready.pop(0))

    def runs(self, tab: str) -> None:
        if self.scene.runs(tab, self.counter, f"run-{self.counter}", last=True):
            self.held.append((tab, self.counter))

    def ends(self) -> None:
        if self.held:
            tab, counter = self.held.pop(0)
            self.obeyed(self.scene.ends(run=f"run-{counter}"))
            self.scene.releases(tab, counter)

    def obeyed(self, instructions: list[Instruction]) -> None:
        for window_id in closes(instructions):
            self.scene.on(ev.WindowGone(window_id))
        for order in prepares(instructions):
            self.scene.on(ev.Prepared(order.context_id))
            self.ready.append(order.context_id)

    def settles(self) -> None:
        for _ in range(4):
            self.obeyed(self.scene.passes(0.1))


@given(
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(1, 9),
    st.lists(st.sampled_from(["plain", "german", "lend", "end"])),
)
def test_there_is_always_room_for_what_a_free_slot_may_ask_for(
    slots: int, most: int, number: int, story: list[str]
) -> None:
    capacity = wire.Capacity(max_concurrency=slots, max_windows=max(slots, most))
    told = Story(capacity, number)
    for what in story:
        match what:
            case "plain" | "german":
                told.asks(GERMAN if what == "german" else BrowserOptions())
            case "lend":
                told.lends()
            case _:
                told.ends()
        told.settles()
        room = told.scene.machine.tabs.room()
        assert room.windows + max(0, slots - room.used_slots) <= capacity.max_windows


def test_a_prepared_window_goes_where_there_is_room_for_no_other() -> None:
    scene, tabs = stocked(2, wire.Capacity(max_concurrency=2, max_windows=4))
    assert len(tabs) == 2
    scene.opens("shop")
    for tab in scene.machine.tabs.picture()[1]:
        assert tab.clean
    assert closes(scene.passes(0.1)) == ["W2"]
    scene.on(ev.WindowGone("W2"))
    assert closes(scene.passes(0.1)) == []
    assert prepares(scene.passes(0.1)) == []


@pytest.mark.parametrize("identity", ["shop", None], ids=["named", "cleaned in place"])
def test_a_window_that_stays_does_not_make_others_come_and_go(identity: str | None) -> None:
    scene = Scene(prepared=4, capacity=wire.Capacity(max_concurrency=2, max_windows=5))
    scene.welcomed()
    kept = wire.OpenWindow(identity=identity) if identity is not None else RESETS
    (order,) = scene.hear(wire.Command(command_id="open", body=kept))
    assert isinstance(order, ev.OpenWindow)
    scene.on(ev.Opened("open"))
    tab = order.context_id

    def job(counter: int) -> list[Instruction]:
        name = f"run-{counter}"
        done = [*scene.runs(tab, counter, name, last=True), *scene.passes(0.1)]
        done += [*scene.ends(run=name), *scene.on(ev.Reset(tab, clean=True))]
        done += [*scene.releases(tab, counter), *scene.passes(0.1)]
        for made in prepares(done):
            scene.on(ev.Prepared(made.context_id))
        for window_id in closes(done):
            scene.on(ev.WindowGone(window_id))
        return done

    for counter in range(1, 5):
        job(counter)
    later = [i for counter in range(5, 9) for i in job(counter)]
    assert prepares(later) == []
    assert closes(later) == []


def test_a_window_that_can_not_be_opened_is_not_tried_again_at_once() -> None:
    scene = Scene(prepared=1, capacity=ROOMY)
    scene.welcomed()
    (order,) = prepares(scene.passes(0.1))
    scene.on(ev.PrepareFailed(order.context_id, "no"))
    assert prepares(scene.passes(1)) == []
    assert len(prepares(scene.passes(5))) == 1


def test_who_stops_gives_up_what_is_prepared_and_prepares_nothing() -> None:
    scene, (tab,) = stocked()
    other = scene.opens()
    scene.runs(other)
    assert closes(scene.hear(wire.Drain(deadline_s=20))) == ["W1"]
    assert scene.machine.tabs.get(tab) is not None
    scene.on(ev.WindowGone("W1"))
    assert prepares(scene.passes(0.1)) == []


def test_that_a_prepared_window_closes_is_told_before_the_farm_can_lend_it() -> None:
    scene, (tab,) = stocked()
    release = wire.Command(command_id="r", context_id=tab, body=wire.Release())
    assert closes(scene.hear(release)) == ["W1"]
    assert [(c.state, c.clean) for c in scene.reports()[-1].contexts] == [("closing", False)]


@pytest.mark.parametrize("prepared", [0, 1])
def test_what_was_lent_and_not_used_is_offered_as_it_is(prepared: int) -> None:
    scene = Scene(prepared=prepared)
    scene.welcomed()
    tab = scene.opens()
    # Somebody has it by now who was told that it is clean, when its end under 1 was on its way.
    assert closes(scene.releases(tab, 1)) == []
    (context,) = [c for c in scene.reports()[-1].contexts if c.context_id == tab]
    assert (context.state, context.clean) == ("active", True)
    scene.runs(tab, 1, "late")
    assert scene.said()[-1] == wire.Ack(command_id="late", refused="stale")
    assert [type(order) for order in scene.runs(tab, 2)] == [ev.StartRun]


def test_what_was_lent_and_not_used_does_not_stay_for_ever() -> None:
    scene = Scene()
    scene.welcomed()
    tab = scene.opens()
    scene.releases(tab)
    assert closes(scene.passes(400.0)) == ["W1"]


def test_a_new_browser_has_windows_of_its_own_prepared() -> None:
    scene, _ = stocked()
    scene.on(ev.BrowserLost("x"))
    assert prepares(scene.passes(0.1)) == []
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    assert prepares(scene.passes(0.1)) == []
    scene.welcome(2)
    (order,) = prepares(scene.passes(0.1))
    assert order.window_id == "W2"


def test_what_is_prepared_does_not_go_for_want_of_use() -> None:
    scene, _ = stocked()
    assert closes(scene.passes(400.0)) == []


def test_the_crash_of_one_leaves_room_for_another() -> None:
    scene, (tab,) = stocked()
    assert closes(scene.on(ev.TabCrashed(tab))) == ["W1"]
    scene.on(ev.WindowGone("W1"))
    assert len(prepares(scene.passes(0.1))) == 1


def lent_for_resets() -> tuple[Scene, str]:
    """An agent with a run in a window that may be cleaned in place; all has been read."""
    scene = Scene(capacity=ROOMY)
    scene.welcomed()
    (order,) = scene.hear(wire.Command(command_id="open", body=RESETS))
    assert isinstance(order, ev.OpenWindow)
    assert order.resets
    scene.on(ev.Opened("open"))
    scene.runs(order.context_id, last=True)
    scene.said()
    return scene, order.context_id


@pytest.mark.parametrize("released_first", [True, False])
def test_a_tab_is_made_clean_after_the_result_and_lent_again(released_first: bool) -> None:
    scene, tab = lent_for_resets()
    assert scene.ends() == [ev.ResetTab(tab)]
    assert isinstance(scene.said()[0], wire.Result)
    if released_first:
        assert scene.releases(tab) == []
        assert not any(c.clean for r in scene.reports() for c in r.contexts)
        assert scene.on(ev.Reset(tab, clean=True)) == []
    else:
        assert scene.on(ev.Reset(tab, clean=True)) == []
        assert not any(c.clean for r in scene.reports() for c in r.contexts)
        assert scene.releases(tab) == []
    (report,) = scene.reports()
    assert [(c.context_id, c.clean) for c in report.contexts] == [(tab, True)]
    assert [(w.profile, w.prepared) for w in report.windows] == [("/ns", True)]
    assert isinstance(scene.runs(tab, 2, "next", last=True)[0], ev.StartRun)


@pytest.mark.parametrize("released_first", [True, False])
def test_where_one_has_to_go_what_was_asked_for_last_is_kept(released_first: bool) -> None:
    scene, _ = stocked(capacity=wire.Capacity(max_concurrency=1, max_windows=2))
    (order,) = scene.hear(wire.Command(command_id="open", body=RESETS))
    assert isinstance(order, ev.OpenWindow)
    tab = order.context_id
    scene.on(ev.Opened("open"))
    scene.runs(tab, last=True)
    scene.ends()
    told = [] if released_first else scene.on(ev.Reset(tab, clean=True))
    told += scene.releases(tab)
    told += scene.on(ev.Reset(tab, clean=True)) if released_first else []
    assert closes([*told, *scene.passes(0.1)]) == ["W1"]


def test_a_tab_that_can_not_be_made_clean_goes_with_its_window() -> None:
    scene, tab = lent_for_resets()
    scene.ends()
    assert closes(scene.on(ev.Reset(tab, clean=False))) == ["W1"]
    scene.on(ev.WindowGone("W1"))
    assert scene.releases(tab) == []
    assert scene.reports()[-1].contexts == ()


def test_nothing_is_made_clean_after_a_failure() -> None:
    scene, tab = lent_for_resets()
    assert scene.ends("failed", page_gone=True) == []
    scene.releases(tab)
    assert scene.reports()[-1].contexts == ()


def test_a_window_that_was_released_before_its_run_ended_is_closed() -> None:
    scene, tab = lent_for_resets()
    scene.releases(tab)
    assert closes(scene.ends("cancelled", page_gone=False)) == ["W1"]


def test_a_clean_window_that_nobody_wants_any_more_is_closed() -> None:
    scene, tab = lent_for_resets()
    scene.ends()
    scene.on(ev.Reset(tab, clean=True))
    scene.releases(tab)
    assert closes(scene.passes(299)) == []
    assert closes(scene.passes(2)) == ["W1"]


def test_the_farm_is_told_at_once_that_what_was_prepared_went_with_the_browser() -> None:
    scene, (tab,) = stocked()
    held = scene.opens()
    scene.runs(held)
    scene.said()
    scene.on(ev.BrowserLost("x"))
    (report,) = scene.reports()
    assert [(c.context_id, c.state, c.clean) for c in report.contexts] == [(held, "closing", False)]
    assert tab != held
