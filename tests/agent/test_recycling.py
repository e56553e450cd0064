"""Windows and browsers that have served long enough are replaced, one at a time."""

import pytest

from agent.machine import Limits
from agent.machine import events as ev
from agent.machine.events import Instruction
from farm.protocol import messages as wire
from tests.agent.scene import Scene

ROOMY = wire.Capacity(max_concurrency=2, max_windows=4)
ONE_USE = Limits(browser_uses=1, patience_s=5)


def replaced(instructions: list[Instruction]) -> bool:
    kinds = [type(i) for i in instructions]
    assert (ev.KillBrowser in kinds) == (ev.StartBrowser in kinds)
    return ev.KillBrowser in kinds


def serves(scene: Scene, identity: str | None = None, counter: int = 1) -> str:
    """One job from its window to its release."""
    tab = scene.opens(identity, f"open-{counter}")
    scene.runs(tab, counter, f"run-{counter}", last=True)
    for order in scene.ends(run=f"run-{counter}"):
        assert isinstance(order, ev.CloseWindow)
        scene.on(ev.WindowGone(order.window_id))
    scene.hear(wire.Stored(command_id=f"run-{counter}", seq=0, done=True))
    scene.releases(tab, counter)
    return tab


def welcomed(limits: Limits, prepared: int = 0) -> Scene:
    scene = Scene(limits=limits, prepared=prepared, capacity=ROOMY)
    scene.welcomed()
    return scene


def test_a_browser_that_has_served_enough_drains_and_is_replaced_in_a_new_epoch() -> None:
    scene = welcomed(ONE_USE)
    serves(scene)
    scene.said()
    first = scene.passes(0.1)
    assert first[0] == ev.Recycle("browser_uses: 1")
    report = scene.reports()[-1]
    assert (report.draining, report.draining_because) == (True, "recycling: browser_uses: 1")
    assert replaced(scene.passes(0.1))
    scene.said()
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    (hello,) = scene.said()
    assert isinstance(hello, wire.Hello)
    assert hello.epoch == "epoch-2"
    scene.welcome(2)
    assert not scene.reports()[-1].draining
    assert not replaced(scene.passes(1))
    scene.opens(command_id="next")


def test_what_is_new_is_refused_and_what_runs_goes_on() -> None:
    scene = welcomed(ONE_USE)
    tab = scene.opens()
    other = scene.opens(command_id="open-2")
    scene.runs(tab)
    assert isinstance(scene.passes(0.1)[0], ev.Recycle)
    scene.said()
    assert scene.runs(other, 2, "run-2") == []
    scene.hear(wire.Command(command_id="more", body=wire.OpenWindow()))
    refused = [m.refused for m in scene.said() if isinstance(m, wire.Ack)]
    assert refused == ["draining", "draining"]
    assert not replaced(scene.passes(4))
    scene.ends(page_gone=True)
    scene.releases(tab)
    assert replaced(scene.passes(0.1))


def test_what_is_lent_but_idle_is_waited_for_no_longer_than_the_patience() -> None:
    scene = welcomed(ONE_USE)
    tab = scene.opens()
    scene.runs(tab)
    scene.passes(0.1)
    scene.ends()
    assert not replaced(scene.passes(4))
    assert replaced(scene.passes(2))


def test_a_named_identity_is_waited_for_and_used_meanwhile() -> None:
    scene = welcomed(ONE_USE)
    tab = serves(scene, "shop")
    assert scene.passes(0.1) == []
    assert scene.passes(4) == []
    assert isinstance(scene.runs(tab, 2, "again")[0], ev.StartRun)
    assert isinstance(scene.passes(2)[0], ev.Recycle)
    scene.ends(run="again")
    scene.releases(tab, 2)
    assert replaced(scene.passes(0.1))


def test_a_named_identity_that_has_gone_is_waited_for_no_more() -> None:
    scene = welcomed(ONE_USE)
    serves(scene, "shop")
    assert scene.passes(1) == []
    scene.on(ev.WindowGone("W1"))
    assert isinstance(scene.passes(0.1)[0], ev.Recycle)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(browser_age_s=100), "browser_age_s: 100"),
        (Limits(browser_mb=900), "browser_mb: 901"),
        (Limits(renderer_mb=300), "renderer_mb: 300"),
    ],
)
def test_age_and_memory_count_too(limits: Limits, reason: str) -> None:
    scene = welcomed(limits)
    weighs = [i for i in scene.passes(99.9) if isinstance(i, ev.Weigh)]
    assert weighs == ([] if limits.browser_age_s else [ev.Weigh("epoch-1")])
    scene.on(ev.Weighed("an earlier one", 5000.0, 5000.0))
    assert scene.passes(0) == []
    scene.on(ev.Weighed("epoch-1", 901.0, 300.0))
    assert scene.passes(0.1)[0] == ev.Recycle(reason)


def test_what_is_prepared_goes_with_the_browser_and_nothing_new_is_prepared() -> None:
    scene = welcomed(Limits(browser_age_s=100), prepared=1)
    (order,) = scene.passes(0.1)
    assert isinstance(order, ev.PrepareWindow)
    scene.on(ev.Prepared(order.context_id))
    _, closing = scene.passes(100)
    assert closing == ev.CloseWindow("W1")
    scene.on(ev.WindowGone("W1"))
    assert replaced(scene.passes(0.1))


def test_a_prepared_window_that_has_grown_old_is_replaced() -> None:
    scene = welcomed(Limits(window_age_s=50), prepared=1)
    (order,) = scene.passes(0.1)
    assert isinstance(order, ev.PrepareWindow)
    scene.on(ev.Prepared(order.context_id))
    assert scene.passes(49) == []
    assert scene.passes(2) == [ev.CloseWindow("W1")]
    scene.on(ev.WindowGone("W1"))
    assert isinstance(scene.passes(0.1)[0], ev.PrepareWindow)


def test_two_windows_that_have_grown_old_go_one_after_the_other() -> None:
    capacity = wire.Capacity(max_concurrency=1, max_windows=4)
    scene = Scene(limits=Limits(window_age_s=50), prepared=2, capacity=capacity)
    scene.welcomed()
    for _ in range(2):
        (order,) = scene.passes(0.1)
        assert isinstance(order, ev.PrepareWindow)
        scene.on(ev.Prepared(order.context_id))
    assert scene.passes(51) == [ev.CloseWindow("W1")]
    assert not any(isinstance(i, ev.CloseWindow) for i in scene.passes(1))
    scene.on(ev.WindowGone("W1"))
    assert ev.CloseWindow("W2") in scene.passes(0.1)


def test_a_window_of_a_persons_is_waited_for_no_longer_than_the_patience() -> None:
    scene = welcomed(ONE_USE)
    theirs = ev.SeenWindow(key="u", window_id=None, tabs=(ev.SeenTab(key="t", front=True),))
    scene.on(ev.Stirred())
    scene.passes(0.1)
    scene.on(ev.Seen("epoch-1", (theirs,)))
    serves(scene)
    for seconds in (0.1, 4):
        assert not any(isinstance(i, ev.Recycle) for i in scene.passes(seconds))
    assert any(isinstance(i, ev.Recycle) for i in scene.passes(2))
    assert replaced(scene.passes(0.1))
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    assert [m.user_windows_lost for m in scene.said() if isinstance(m, wire.Hello)][-1] == 1


def test_a_window_is_made_clean_only_so_often() -> None:
    scene = welcomed(Limits(window_uses=2))
    body = wire.OpenWindow(profile="/ns", resets=True)
    (order,) = scene.hear(wire.Command(command_id="open", body=body))
    assert isinstance(order, ev.OpenWindow)
    scene.on(ev.Opened("open"))
    tab = order.context_id
    scene.runs(tab, 1, "run-1", last=True)
    assert scene.ends(run="run-1") == [ev.ResetTab(tab)]
    scene.on(ev.Reset(tab, clean=True))
    scene.releases(tab, 1)
    scene.runs(tab, 2, "run-2", last=True)
    assert scene.ends(run="run-2") == [ev.CloseWindow("W1")]


def test_who_is_stopped_does_not_replace_its_browser() -> None:
    scene = welcomed(ONE_USE)
    tab = scene.opens()
    scene.runs(tab)
    scene.hear(wire.Drain(deadline_s=20))
    assert not replaced(scene.passes(1))


def test_a_browser_that_was_lost_begins_to_count_anew() -> None:
    scene = welcomed(Limits(browser_uses=2))
    serves(scene)
    scene.on(ev.BrowserLost("x"))
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    scene.welcome(2)
    serves(scene, counter=2)
    assert not any(isinstance(i, ev.Recycle) for i in scene.passes(0.1))


def test_a_browser_that_does_not_last_is_started_again_after_ever_longer() -> None:
    scene = welcomed(Limits())
    assert scene.on(ev.BrowserLost("x")) == [ev.StartBrowser("epoch-2")]
    waits = []
    for number in range(3, 12):
        scene.on(ev.BrowserStarted(f"epoch-{number - 1}", "Chrome/1"))
        assert scene.on(ev.BrowserLost("x")) == []
        waited = 0.0
        while ev.StartBrowser(f"epoch-{number}") not in scene.passes(0.5):
            waited += 0.5
        waits.append(waited + 0.5)
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == 30.0
    # One that has lasted is no failure.
    scene.on(ev.BrowserStarted("epoch-11", "Chrome/1"))
    scene.passes(31)
    assert scene.on(ev.BrowserLost("x")) == [ev.StartBrowser("epoch-12")]


def test_who_is_stopped_while_it_waits_starts_no_browser() -> None:
    scene = welcomed(Limits())
    scene.on(ev.BrowserLost("x"))
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    scene.on(ev.BrowserLost("x"))
    scene.on(ev.StopRequested(5))
    assert not any(isinstance(i, ev.StartBrowser) for i in scene.passes(2))
