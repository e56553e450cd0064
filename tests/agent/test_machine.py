"""What the agent does about what happens, as stories."""

from agent.machine import events as ev
from agent.machine.events import Instruction
from farm.protocol import messages as wire
from tests.agent.scene import HELLO, Scene, begun, contexts, note, plan, result_of, token


def test_a_job_from_its_window_to_its_release(scene: Scene) -> None:
    scene.welcomed()
    hello, report = scene.said()
    assert isinstance(hello, wire.Hello)
    assert (hello.epoch, hello.running, hello.browser) == ("epoch-1", (), "Chrome/1")
    assert contexts(report) == []

    tab = scene.opens()
    report, opened = scene.said()
    assert contexts(report) == [(tab, "active", True)]
    assert isinstance(opened, wire.Result)
    assert opened.value == {"window_id": "W1", "context_id": tab}

    (start,) = scene.runs(tab)
    assert start == ev.StartRun("run", tab, "W1", token(1), plan("att-run"))
    assert scene.said() == [wire.Ack(command_id="run")]
    scene.passes(0.1)
    (report,) = scene.said()
    assert contexts(report) == [(tab, "active", False)]

    assert scene.notes(begun(), urgent=True) == []
    (events,) = scene.said()
    assert isinstance(events, wire.Events)
    assert [e.seq for e in events.entries] == [1]
    assert scene.hear(wire.Stored(command_id="run", seq=1)) == [ev.Settled("run", 1)]

    scene.notes()
    assert scene.said() == []
    scene.ends()
    events, result = scene.said()
    assert isinstance(events, wire.Events)
    assert isinstance(result, wire.Result)
    assert (result.seq, result.outcome, [e.seq for e in events.entries]) == (2, "succeeded", [2])
    scene.passes(0.1)
    (report,) = scene.said()
    assert contexts(report) == [(tab, "active", False)]

    assert scene.hear(wire.Stored(command_id="run", seq=2, done=True)) == []
    assert scene.machine.runs.all() == []
    assert scene.releases(tab) == [ev.CloseWindow("W1")]
    scene.on(ev.WindowGone("W1"))
    (gone,) = scene.said()
    assert contexts(gone) == []


def test_after_the_last_run_the_window_closes_at_once_and_is_reported_until_its_release(
    scene: Scene,
) -> None:
    tab = scene.running(last=True)
    assert scene.ends() == [ev.CloseWindow("W1")]
    assert result_of(scene.said()).outcome == "succeeded"
    scene.on(ev.WindowGone("W1"))
    scene.passes(0.1)
    assert contexts(scene.reports()[-1]) == [(tab, "closing", False)]
    assert scene.releases(tab) == []
    assert contexts(scene.reports()[-1]) == []


def test_a_window_that_is_still_closing_at_its_release_is_not_said_to_be_gone(
    scene: Scene,
) -> None:
    tab = scene.running(last=True)
    scene.ends()
    assert scene.releases(tab) == []
    scene.passes(0.1)
    assert contexts(scene.reports()[-1]) == [(tab, "closing", False)]
    scene.on(ev.WindowGone("W1"))
    assert contexts(scene.reports()[-1]) == []


def test_the_last_run_leaves_the_window_of_an_identity_open(scene: Scene) -> None:
    tab = scene.running("shop", last=True)
    assert scene.ends() == []
    assert scene.releases(tab) == []
    assert contexts(scene.reports()[-1]) == [(tab, "active", True)]


def test_the_tab_of_an_identity_stays_and_is_clean_after_its_release(scene: Scene) -> None:
    tab = scene.running("shop")
    scene.ends()
    scene.said()
    assert scene.releases(tab) == []
    (report,) = scene.reports()
    assert contexts(report) == [(tab, "active", True)]
    assert report.windows[0].identity == "shop"
    assert isinstance(scene.runs(tab, 2, "next")[0], ev.StartRun)


def test_who_has_control_is_told_at_once_so_that_a_kill_does_not_undo_a_pause(
    scene: Scene,
) -> None:
    scene.running()
    scene.said()
    scene.notes(wire.ControlMoved(kind="pausing", by="anna"))
    (events,) = scene.said()
    assert isinstance(events, wire.Events)
    assert [e.event.kind for e in events.entries] == ["pausing"]


def test_a_report_comes_when_the_picture_changes_and_only_then(scene: Scene) -> None:
    scene.running()
    scene.passes(0.1)
    assert [r.number for r in scene.reports()] == [3]
    for _ in range(20):
        scene.passes(0.1)
    scene.notes(note())
    scene.on(ev.TabGone("nowhere"))
    scene.on(ev.WindowGone("nowhere"))
    scene.on(ev.TabCrashed("nowhere"))
    assert scene.reports() == []
    scene.on(ev.TabCrashed("T1"))
    assert [r.number for r in scene.reports()] == [4]


def test_who_it_is_does_not_change(scene: Scene) -> None:
    scene.welcomed()
    hello = scene.said()[0]
    assert isinstance(hello, wire.Hello)
    changing = {"epoch": "", "browser": None}
    assert hello.model_copy(update=changing) == HELLO


def asks(scene: Scene, tab: str, epoch_number: int = 1, kind: str = "live") -> list[Instruction]:
    return scene.hear(
        wire.OpenChannel(
            channel_id="ch_0123456789abcdef",
            kind=kind,
            context_id=tab,
            epoch_number=epoch_number,
        )
    )


def test_a_channel_is_dialled_for_a_tab_that_is_there(scene: Scene) -> None:
    tab = scene.running("shop")
    (order,) = asks(scene, tab)
    assert isinstance(order, ev.OpenChannel)
    assert order.asked.context_id == tab


def test_a_channel_for_what_is_not_there_is_refused_and_why(scene: Scene) -> None:
    def refusals(*args: object) -> list[str]:
        scene.said()
        assert asks(scene, *args) == []  # type: ignore[arg-type]
        return [m.reason for m in scene.said() if isinstance(m, wire.ChannelRefused)]

    tab = scene.running("shop")
    assert refusals("T99") == ["unknown_context"]
    assert refusals(tab, 2) == ["stale_epoch"]
    assert refusals(tab, 1, "telepathy") == ["not_understood"]
    scene.ends(page_gone=True)
    assert refusals(tab) == ["unknown_context"]
    scene.on(ev.BrowserLost("gone"))
    assert refusals(tab) == ["unavailable"]
