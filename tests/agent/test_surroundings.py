"""What the machine tells of windows and tabs that the farm has not asked for."""

from agent.machine import events as ev
from agent.machine.events import SeenTab, SeenWindow
from farm.protocol import messages as wire
from tests.agent.scene import Scene

BOUNDS = wire.Bounds(left=10, top=20, width=800, height=600)


def own(*others: SeenTab, front: bool = True) -> SeenWindow:
    tabs = (SeenTab(key="t1", context_id="T1", front=front), *others)
    return SeenWindow(key="w1", window_id="W1", bounds=BOUNDS, tabs=tabs)


def popup(key: str = "p", *, front: bool = False, crashed: bool = False) -> SeenTab:
    return SeenTab(key=key, opener="T1", front=front, crashed=crashed)


def theirs(key: str = "u", *tabs: str) -> SeenWindow:
    keys = tabs or (f"{key}-tab",)
    seen = tuple(SeenTab(key=tab, front=tab == keys[0]) for tab in keys)
    return SeenWindow(key=key, window_id=None, tabs=seen)


def sees(scene: Scene, *windows: SeenWindow) -> wire.Report | None:
    """Something has stirred, and is looked at; what is reported of it."""
    scene.on(ev.Stirred())
    assert scene.passes(0.1) == [ev.Look("epoch-1")]
    scene.said()
    scene.on(ev.Seen("epoch-1", windows))
    reports = scene.reports()
    return reports[-1] if reports else None


def contexts(report: wire.Report | None) -> list[tuple[str, str | None, str, str, str | None]]:
    assert report is not None
    return [(c.context_id, c.window_id, c.owner, c.state, c.opener) for c in report.contexts]


def test_what_a_person_opens_is_reported_as_theirs() -> None:
    scene = Scene()
    scene.running()
    report = sees(scene, own(), theirs("u", "a", "b"))
    assert contexts(report) == [
        ("T1", "W1", "worker", "active", None),
        ("T2", "U1", "user", "active", None),
        ("T3", "U1", "user", "idle", None),
    ]
    assert report is not None
    assert [(w.window_id, w.owner, w.bounds) for w in report.windows] == [
        ("W1", "worker", BOUNDS),
        ("U1", "user", None),
    ]
    assert not any(c.clean for c in report.contexts)


def test_what_a_task_opens_belongs_to_it_and_crashes_by_itself() -> None:
    scene = Scene()
    scene.running()
    report = sees(scene, own(popup("p", front=True), popup("q", crashed=True), front=False))
    assert contexts(report) == [
        ("T1", "W1", "worker", "idle", None),
        ("T2", "W1", "worker", "active", "T1"),
        ("T3", "W1", "worker", "crashed", "T1"),
    ]


def test_a_name_is_kept_and_given_once() -> None:
    scene = Scene()
    scene.running()
    sees(scene, own(popup()), theirs("u"))
    report = sees(scene, own(popup()), theirs("u"), theirs("v"))
    assert [name for name, *_ in contexts(report)] == ["T1", "T2", "T3", "T4"]
    assert sees(scene, own(popup()), theirs("u"), theirs("v")) is None
    report = sees(scene, own(popup("r")), theirs("v"))
    assert [c[:2] for c in contexts(report)] == [("T1", "W1"), ("T5", "W1"), ("T4", "U2")]


def test_a_popup_is_gone_with_its_window_before_anybody_looks() -> None:
    scene = Scene()
    tab = scene.running()
    sees(scene, own(popup()), theirs())
    scene.ends(page_gone=True)
    scene.releases(tab)
    scene.on(ev.WindowGone("W1"))
    assert [c[:2] for c in contexts(scene.reports()[-1])] == [("T3", "U1")]


def test_the_machine_looks_once_at_a_time_and_as_often_as_it_is_told() -> None:
    scene = Scene(look_s=1.0)
    scene.running()
    assert scene.passes(0.1) == []
    assert scene.passes(1.1) == [ev.Look("epoch-1")]
    assert scene.passes(5) == []
    scene.on(ev.Seen("epoch-1", ()))
    scene.on(ev.Stirred())
    scene.on(ev.Stirred())
    assert scene.passes(0.1) == [ev.Look("epoch-1")]
    assert scene.passes(0.1) == []


def test_what_was_seen_of_an_earlier_life_means_nothing_in_the_next() -> None:
    scene = Scene(look_s=1.0)
    scene.running()
    scene.on(ev.Stirred())
    assert scene.passes(0.1) == [ev.Look("epoch-1")]
    scene.on(ev.BrowserLost("gone"))
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    scene.welcome(2)
    scene.said()
    scene.on(ev.Seen("epoch-1", (theirs(),)))
    scene.on(ev.Stirred())
    assert scene.passes(0.1) == [ev.Look("epoch-2")]
    assert all(not report.contexts for report in scene.reports())


def test_windows_of_a_persons_that_go_with_the_browser_are_told() -> None:
    scene = Scene()
    scene.running()
    sees(scene, own(), theirs("u"), theirs("v"))
    assert scene.machine.tabs.user_windows == 2
    scene.on(ev.BrowserLost("gone"))
    assert scene.machine.tabs.user_windows == 0
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    hello = scene.said()[-1]
    assert isinstance(hello, wire.Hello)
    assert hello.user_windows_lost == 2
    scene.welcome(2)
    scene.on(ev.LinkDown())
    scene.on(ev.LinkUp())
    hello = scene.said()[-1]
    assert isinstance(hello, wire.Hello)
    assert hello.user_windows_lost == 0


def test_windows_of_a_persons_that_go_with_the_agent_are_told() -> None:
    scene = Scene()
    scene.welcomed()
    sees(scene, theirs())
    scene.on(ev.StopRequested(10))
    scene.passes(0.1)
    assert wire.Bye(reason="drained", user_windows_lost=1) in scene.said()
