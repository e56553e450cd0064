"""What the agent does when its browser, the farm, its room or its own end is near, as stories."""

from agent.machine import events as ev
from agent.machine.events import Instruction
from farm.protocol import messages as wire
from tests.agent.scene import (
    WINDOW_S,
    Scene,
    contexts,
    of,
    result_of,
)

# The browser


def test_a_lost_browser_begins_a_new_epoch_and_its_results_are_kept(scene: Scene) -> None:
    scene.running()
    (start,) = scene.on(ev.BrowserLost("killed"))
    assert start == ev.StartBrowser("epoch-2")
    scene.on(ev.LinkDown())
    scene.ends("failed", page_gone=True)
    scene.on(ev.LinkUp())
    scene.said()
    scene.on(ev.BrowserStarted("epoch-2", "Chrome/1"))
    (hello,) = scene.said()
    assert isinstance(hello, wire.Hello)
    assert (hello.epoch, [r.epoch for r in hello.running]) == ("epoch-2", ["epoch-1"])
    scene.welcome(2)
    messages = scene.said()
    assert result_of(messages).outcome == "failed"
    (report,) = of(wire.Report, messages)
    assert isinstance(report, wire.Report)
    assert (report.epoch_number, report.number, report.contexts) == (2, 1, ())


def test_while_the_browser_restarts_results_and_heartbeats_go_on_and_reports_do_not(
    scene: Scene,
) -> None:
    tab = scene.running()
    scene.on(ev.BrowserLost("killed"))
    scene.ends("failed", page_gone=True)
    assert result_of(scene.said()).outcome == "failed"
    scene.passes(3)
    assert of(wire.Heartbeat, scene.said())
    scene.runs(tab, 2, "other")
    scene.hear(wire.Command(command_id="o", body=wire.OpenWindow()))
    acks = scene.said()
    assert [a.refused for a in acks if isinstance(a, wire.Ack)] == ["busy", "busy"]
    assert len(acks) == 2


def test_what_was_being_opened_in_a_lost_browser_has_failed(scene: Scene) -> None:
    scene.welcomed()
    scene.hear(wire.Command(command_id="o", body=wire.OpenWindow()))
    scene.said()
    scene.on(ev.BrowserLost("killed"))
    assert result_of(scene.said()).outcome == "failed"


def test_a_browser_that_never_started_ends_the_agent_and_a_later_one_is_tried_again(
    scene: Scene,
) -> None:
    assert scene.on(ev.BrowserFailed("none")) == [ev.Exit(1, "none")]
    other = Scene()
    other.welcomed()
    other.on(ev.BrowserLost("killed"))
    assert [type(i) for i in other.on(ev.BrowserFailed("x"))] == [ev.StartBrowser]
    assert [type(i) for i in other.on(ev.BrowserFailed("x"))] == [ev.StartBrowser]
    assert other.on(ev.BrowserFailed("x")) == [ev.Exit(1, "x")]


def test_a_window_that_cannot_be_opened_leaves_no_trace(scene: Scene) -> None:
    scene.welcomed()
    scene.hear(wire.Command(command_id="o", body=wire.OpenWindow()))
    scene.said()
    scene.on(ev.OpenFailed("o", "no"))
    messages = scene.said()
    assert result_of(messages).outcome == "failed"
    assert of(wire.Report, messages) == []
    assert scene.machine.tabs.picture() == ((), ())


def test_a_window_that_closes_while_it_is_opened_is_answered(scene: Scene) -> None:
    scene.welcomed()
    scene.hear(wire.Command(command_id="o", body=wire.OpenWindow()))
    scene.on(ev.WindowGone("W1"))
    scene.said()
    scene.on(ev.Opened("o"))
    assert result_of(scene.said()).outcome == "failed"


def test_a_window_opened_for_a_farm_that_is_gone_is_reported_and_closed_when_idle(
    scene: Scene,
) -> None:
    scene.welcomed()
    scene.hear(wire.Command(command_id="o", body=wire.OpenWindow()))
    scene.on(ev.LinkDown())
    scene.on(ev.Opened("o"))
    scene.said()
    scene.on(ev.LinkUp())
    scene.welcome()
    assert contexts(scene.reports()[-1]) == [("T1", "active", True)]
    assert ev.CloseWindow("W1") in scene.passes(301)


def test_a_tab_in_a_window_that_is_not_there_is_refused(scene: Scene) -> None:
    scene.welcomed()
    scene.said()
    scene.hear(wire.Command(command_id="o", body=wire.OpenTab(window_id="W9")))
    (ack,) = scene.said()
    assert isinstance(ack, wire.Ack)
    assert ack.refused == "unknown_context"


def test_idle_identities_are_closed_and_busy_or_held_ones_are_not(scene: Scene) -> None:
    tab = scene.running("shop")
    assert ev.CloseWindow("W1") not in scene.passes(301)
    scene.ends()
    assert ev.CloseWindow("W1") not in scene.passes(301)
    scene.releases(tab)
    assert ev.CloseWindow("W1") not in scene.passes(299)
    assert ev.CloseWindow("W1") in scene.passes(2)


# The farm


def _closed(instructions: list[Instruction]) -> bool:
    return any(isinstance(i, ev.CancelRun | ev.CloseWindow) for i in instructions)


def test_without_the_farm_for_one_window_the_agent_gives_up(scene: Scene) -> None:
    scene.running()
    scene.on(ev.LinkDown())
    assert not _closed(scene.passes(WINDOW_S - 0.1))
    assert ev.CancelRun("run") in scene.passes(0.2)
    scene.ends("cancelled", page_gone=True)
    scene.on(ev.LinkUp())
    scene.welcome()
    result = result_of(scene.said())
    assert (result.outcome, result.failure and result.failure.reason.value) == (
        "failed",
        "agent_lost",
    )


def test_answered_heartbeats_keep_the_work_going_and_unanswered_ones_do_not(scene: Scene) -> None:
    scene.running()
    beats: list[str] = []
    for _ in range(10):
        assert not _closed(scene.passes(2.6))
        beats = [m.nonce for m in scene.said() if isinstance(m, wire.Heartbeat)]
        scene.hear(wire.Ping(nonce=beats[-1]))
        scene.said()
    scene.passes(2.6)
    last = [m.nonce for m in scene.said() if isinstance(m, wire.Heartbeat)][-1]
    heard_at = scene.now
    scene.passes(6)
    scene.hear(wire.Ping(nonce=last))
    scene.hear(wire.Ping(nonce="never said"))
    scene.hear(wire.Ping(nonce=beats[-1]))
    assert not _closed(scene.passes(heard_at + WINDOW_S - scene.now))
    assert _closed(scene.passes(0.2))


def test_what_is_held_without_a_run_is_given_up_too(scene: Scene) -> None:
    scene.running()
    scene.ends()
    scene.on(ev.LinkDown())
    assert ev.CloseWindow("W1") in scene.passes(WINDOW_S + 1)


def test_a_refusal_ends_the_agent_only_where_dialling_again_would_not_help(scene: Scene) -> None:
    scene.on(ev.BrowserStarted("epoch-1", "c"))
    scene.on(ev.LinkUp())
    assert scene.hear(wire.Refused(reason="client_id_in_use", detail="d")) == []
    (end,) = scene.hear(wire.Refused(reason="protocol", detail="d", retry=False))
    assert isinstance(end, ev.Exit)
    assert end.code == 1


# Draining


def test_an_idle_agent_leaves_at_once(scene: Scene) -> None:
    scene.welcomed()
    scene.said()
    assert scene.on(ev.StopRequested(8)) == [ev.ShowDraining(), ev.KillBrowser(), ev.Exit(0)]
    report, bye = scene.said()
    assert isinstance(report, wire.Report)
    assert report.draining
    assert isinstance(bye, wire.Bye)


def test_a_draining_agent_takes_nothing_new_and_waits_for_its_result_to_be_stored(
    scene: Scene,
) -> None:
    scene.running()
    assert scene.hear(wire.Drain(deadline_s=8)) == [ev.ShowDraining()]
    assert scene.hear(wire.Drain(deadline_s=8)) == []
    scene.hear(wire.Command(command_id="o", body=wire.OpenWindow()))
    assert [m.refused for m in scene.said() if isinstance(m, wire.Ack)] == ["draining"]
    assert not _closed(scene.passes(5))
    assert scene.ends() == []
    assert scene.passes(5) == []
    stored = scene.hear(wire.Stored(command_id="run", seq=0, done=True))
    assert stored == [ev.KillBrowser(), ev.Exit(0)]


def test_at_the_deadline_what_runs_is_stopped_and_says_so(scene: Scene) -> None:
    scene.running()
    scene.on(ev.StopRequested(8))
    assert ev.CancelRun("run") in scene.passes(8.1)
    scene.ends("cancelled", page_gone=True)
    result = result_of(scene.said())
    assert result.failure is not None
    assert result.failure.reason.value == "drained"
    assert ev.Exit(0) in scene.passes(4)


def test_a_second_request_to_stop_means_now(scene: Scene) -> None:
    scene.running()
    scene.on(ev.StopRequested(60))
    scene.on(ev.StopRequested(0))
    assert ev.CancelRun("run") in scene.passes(0.1)


def test_a_stopping_agent_without_a_link_gives_its_last_result_a_chance(scene: Scene) -> None:
    scene.running()
    scene.on(ev.LinkDown())
    scene.on(ev.StopRequested(9))
    scene.passes(5)
    assert scene.ends() == []
    assert scene.passes(1) == []
    scene.on(ev.LinkUp())
    scene.welcome()
    assert result_of(scene.said()).outcome == "succeeded"
    assert ev.Exit(0) in scene.hear(wire.Stored(command_id="run", seq=0, done=True))


# The disk


def test_without_room_on_the_disk_nothing_new_is_taken_until_there_is_again() -> None:
    scene = Scene()
    scene.welcomed()
    scene.said()
    scene.on(ev.DiskChanged("9 bytes are free"))
    (report,) = scene.reports()
    assert (report.draining, report.draining_because) == (True, "low_disk")
    assert scene.hear(wire.Command(command_id="open", body=wire.OpenWindow())) == []
    (ack,) = (message for message in scene.said() if isinstance(message, wire.Ack))
    assert (ack.refused, ack.detail) == ("draining", "low_disk: 9 bytes are free")
    scene.on(ev.DiskChanged(None))
    (report,) = scene.reports()
    assert (report.draining, report.draining_because) == (False, "")
    scene.opens()


def test_what_runs_goes_on_when_there_is_no_room_for_anything_new() -> None:
    scene = Scene()
    scene.running()
    assert scene.on(ev.DiskChanged("9 bytes are free")) == []
    scene.ends()
    assert any(isinstance(message, wire.Result) for message in scene.said())
