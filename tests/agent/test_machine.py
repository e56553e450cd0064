"""What the agent does about what happens, as stories."""

import pytest

from agent.machine import events as ev
from agent.machine.events import Instruction
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from tests.agent.scene import HELLO, WINDOW_S, Scene, begun, note, plan, token


@pytest.fixture
def scene() -> Scene:
    return Scene()


def of(kind: type, messages: list[wire.FromAgent]) -> list[wire.FromAgent]:
    return [m for m in messages if isinstance(m, kind)]


def result_of(messages: list[wire.FromAgent]) -> wire.Result:
    (found,) = of(wire.Result, messages)
    assert isinstance(found, wire.Result)
    return found


def contexts(report: wire.FromAgent) -> list[tuple[str, str, bool]]:
    assert isinstance(report, wire.Report)
    return [(c.context_id, c.state, c.clean) for c in report.contexts]


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


def test_what_is_not_stored_is_sent_again_on_the_next_link(scene: Scene) -> None:
    scene.running()
    scene.notes(begun(), urgent=True)
    scene.notes()
    scene.passes(1)
    scene.hear(wire.Stored(command_id="run", seq=1))
    scene.on(ev.LinkDown())
    scene.notes()
    scene.ends()
    scene.said()
    scene.on(ev.LinkUp())
    (hello,) = scene.said()
    assert isinstance(hello, wire.Hello)
    assert [(r.command_id, r.token, r.epoch) for r in hello.running] == [
        ("run", token(1), "epoch-1")
    ]
    assert hello.highest_token == token(1)
    scene.welcome()
    messages = scene.said()
    (events,) = of(wire.Events, messages)
    assert isinstance(events, wire.Events)
    assert [e.seq for e in events.entries] == [2, 3]
    assert messages.index(events) < messages.index(result_of(messages))
    assert result_of(messages).seq == 3


def test_nothing_is_said_before_the_farm_has_let_the_agent_in(scene: Scene) -> None:
    scene.running()
    scene.on(ev.LinkDown())
    scene.on(ev.LinkUp())
    scene.said()
    scene.notes(begun(), urgent=True)
    scene.passes(5)
    scene.on(ev.TabCrashed("T1"))
    assert scene.said() == []


def test_a_result_is_kept_until_it_is_stored_over_any_number_of_links(scene: Scene) -> None:
    scene.running()
    scene.ends()
    for _ in range(3):
        scene.said()
        scene.on(ev.LinkDown())
        scene.on(ev.LinkUp())
        scene.welcome()
        assert result_of(scene.said()).outcome == "succeeded"
    scene.hear(wire.Stored(command_id="run", seq=0, done=True))
    scene.on(ev.LinkDown())
    scene.on(ev.LinkUp())
    scene.welcome()
    assert of(wire.Result, scene.said()) == []


def test_what_gathered_while_the_farm_was_away_goes_in_portions(scene: Scene) -> None:
    scene.running()
    scene.on(ev.LinkDown())
    page = tuple({"n": n} for n in range(600))
    for number in range(4):
        scene.notes(wire.Items(dataset="items", first=number * 600, items=page))
    scene.on(ev.LinkUp())
    scene.welcome()
    sent = of(wire.Events, scene.said())
    assert len(sent) == 4
    assert [e.seq for m in sent if isinstance(m, wire.Events) for e in m.entries] == [1, 2, 3, 4]


def test_items_go_soon_and_the_rest_in_company(scene: Scene) -> None:
    scene.running()
    scene.notes()
    scene.passes(0.1)
    assert of(wire.Events, scene.said()) == []
    scene.notes(wire.Items(dataset="items", first=0, items=({"a": 1},)))
    assert scene.said() == []
    scene.passes(0.1)
    (events,) = scene.said()
    assert isinstance(events, wire.Events)
    assert [e.seq for e in events.entries] == [1, 2]
    scene.notes()
    scene.passes(0.3)
    (events,) = of(wire.Events, scene.said())
    assert isinstance(events, wire.Events)
    assert [e.seq for e in events.entries] == [3]


def test_a_run_the_farm_wants_nothing_more_of_is_stopped(scene: Scene) -> None:
    tab = scene.running()
    scene.notes(begun(), urgent=True)
    refused = wire.Stored(command_id="run", refused=True)
    assert scene.hear(refused) == [ev.Disown("run"), ev.CancelRun("run")]
    scene.ends("cancelled", page_gone=True)
    result = result_of(scene.said())
    assert (result.outcome, result.failure and result.failure.reason) == (
        "failed",
        "stale_assignment",
    )
    assert scene.machine.tabs.get(tab) is None
    assert scene.hear(refused.model_copy(update={"done": True})) == []
    assert scene.machine.runs.all() == []


def test_a_run_the_farm_has_forgotten_ends_without_a_word(scene: Scene) -> None:
    scene.running()
    scene.hear(wire.Stored(command_id="run", refused=True, done=True))
    scene.ends("cancelled", page_gone=True)
    assert of(wire.Result, scene.said()) == []
    assert scene.machine.runs.all() == []


@pytest.mark.parametrize(
    ("reason", "outcome", "failure"),
    [("cancelled", "cancelled", None), ("timed_out", "timed_out", "job_timeout")],
)
def test_a_cancelled_run_says_for_what_reason(
    scene: Scene, reason: str, outcome: str, failure: str | None
) -> None:
    scene.running()
    order = wire.Cancel.model_validate({"command_id": "run", "reason": reason})
    assert scene.hear(order) == [ev.CancelRun("run")]
    assert scene.hear(order) == []
    scene.ends("cancelled", page_gone=True)
    result = result_of(scene.said())
    assert (result.outcome, result.page_gone) == (outcome, True)
    assert (result.failure and result.failure.reason.value) == failure


def test_a_run_that_a_person_has_stopped_says_so(scene: Scene) -> None:
    scene.running()
    failure = Failure(reason=Reason.CANCELLED, detail="by hand")
    outcome = ev.Outcome(outcome="cancelled", failure=failure, page_gone=True)
    scene.on(ev.RunEnded("run", outcome))
    result = result_of(scene.said())
    assert (result.outcome, result.failure, result.page_gone) == ("cancelled", failure, True)


def test_a_run_that_ends_by_itself_while_it_is_cancelled_says_how(scene: Scene) -> None:
    scene.running()
    scene.hear(wire.Cancel(command_id="run"))
    scene.ends("succeeded")
    assert result_of(scene.said()).outcome == "succeeded"


def test_to_cancel_what_does_not_run_is_answered(scene: Scene) -> None:
    scene.welcomed()
    scene.said()
    scene.hear(wire.Cancel(command_id="never came"))
    (ack,) = scene.said()
    assert isinstance(ack, wire.Ack)
    assert (ack.command_id, ack.refused) == ("never came", "unknown_context")


def test_a_release_in_mid_run_stops_it_and_frees_the_tab(scene: Scene) -> None:
    tab = scene.running("shop")
    assert scene.releases(tab, 2) == []
    assert scene.releases(tab, 1) == [ev.CancelRun("run")]
    scene.ends("cancelled", page_gone=True)
    assert scene.machine.tabs.get(tab) is None
    assert contexts(scene.reports()[-1]) == []


def test_a_tab_that_was_never_held_is_reported_again_when_it_is_released(scene: Scene) -> None:
    scene.welcomed()
    tab = scene.opens("shop")
    scene.said()
    assert scene.releases(tab, 1) == []
    (report,) = scene.reports()
    assert contexts(report) == [(tab, "active", True)]
    assert scene.runs(tab, 1) == []
    (ack,) = scene.said()
    assert isinstance(ack, wire.Ack)
    assert ack.refused == "stale"


def test_a_release_said_twice_forgets_no_window_that_is_still_closing(scene: Scene) -> None:
    tab = scene.running()
    scene.ends()
    assert scene.releases(tab) == [ev.CloseWindow("W1")]
    assert scene.releases(tab) == []
    assert scene.machine.tabs.get(tab) is not None
    scene.on(ev.WindowGone("W1"))
    assert scene.machine.tabs.get(tab) is None


def test_a_held_tab_is_reported_until_it_is_released_though_its_window_is_gone(
    scene: Scene,
) -> None:
    tab = scene.running()
    scene.on(ev.WindowGone("W1"))
    scene.passes(0.1)
    assert contexts(scene.reports()[-1]) == [(tab, "closing", False)]
    scene.ends("failed", page_gone=True)
    assert result_of(scene.said()).outcome == "failed"
    assert scene.releases(tab) == []
    assert contexts(scene.reports()[-1]) == []


@pytest.mark.parametrize("event", [ev.TabGone("T1"), ev.TabCrashed("T1")])
def test_a_tab_that_dies_before_its_run_ends_is_not_idle_again(
    scene: Scene, event: ev.Event
) -> None:
    tab = scene.running("shop")
    scene.on(event)
    scene.ends("succeeded")
    scene.said()
    scene.releases(tab)
    scene.passes(0.1)
    assert all(not clean for _, _, clean in contexts(scene.reports()[-1]))


def test_a_crashed_tab_of_an_identity_is_closed_when_it_is_released(scene: Scene) -> None:
    tab = scene.running("shop")
    scene.on(ev.TabCrashed(tab))
    scene.ends("succeeded")
    assert scene.releases(tab) == [ev.CloseTab(tab)]


@pytest.mark.parametrize(
    ("counter", "tab", "refused"),
    [(1, "T1", "stale"), (2, "T1", "busy"), (3, "T9", "unknown_context")],
)
def test_a_run_is_refused_where_it_cannot_be(
    scene: Scene, counter: int, tab: str, refused: str
) -> None:
    scene.running()
    assert scene.runs(tab, counter, "other") == []
    (ack,) = scene.said()
    assert isinstance(ack, wire.Ack)
    assert (ack.command_id, ack.refused) == ("other", refused)


def test_a_run_without_a_token_is_not_understood(scene: Scene) -> None:
    scene.welcomed()
    tab = scene.opens()
    scene.said()
    scene.hear(wire.Command(command_id="r", context_id=tab, body=wire.RunPlan(plan=plan())))
    (ack,) = scene.said()
    assert isinstance(ack, wire.Ack)
    assert ack.refused == "not_understood"


def test_a_run_said_twice_runs_once(scene: Scene) -> None:
    tab = scene.running()
    assert scene.runs(tab) == []
    assert scene.said() == [wire.Ack(command_id="run")]


def test_a_stale_token_stays_stale_after_the_release(scene: Scene) -> None:
    tab = scene.running("shop")
    scene.ends()
    scene.releases(tab)
    scene.said()
    assert scene.runs(tab, 1, "late") == []
    (ack,) = scene.said()
    assert isinstance(ack, wire.Ack)
    assert ack.refused == "stale"


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


# The self-test


def test_a_probe_is_answered_in_any_state(scene: Scene) -> None:
    scene.welcomed()
    scene.said()
    order = wire.Command(command_id="p", body=wire.Probe())
    assert scene.hear(order) == [ev.RunProbe("p")]
    scene.on(ev.Probed("p"))
    assert result_of(scene.said()).outcome == "succeeded"
    scene.on(ev.Probed("p", "no page"))
    failed = result_of(scene.said())
    assert failed.failure is not None
    assert failed.failure.detail == "no page"


def test_a_probe_for_a_tab_is_refused_once_its_assignment_has_ended(scene: Scene) -> None:
    tab = scene.running("shop")
    scene.ends()

    def probe(context_id: str, counter: int) -> list[Instruction]:
        return scene.hear(
            wire.Command(
                command_id="p", context_id=context_id, token=token(counter), body=wire.Probe()
            )
        )

    assert probe(tab, 1) == [ev.RunProbe("p")]
    scene.releases(tab)
    scene.said()
    assert probe(tab, 1) == []
    assert scene.said()[-1] == wire.Ack(command_id="p", refused="stale")
    assert probe(tab, 2) == [ev.RunProbe("p")]
    assert probe("gone", 2) == []
    assert scene.said()[-1] == wire.Ack(command_id="p", refused="unknown_context")


# Reports


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


def _wants(kind: str, run: str = "run", counter: int = 1) -> wire.Intervene:
    return wire.Intervene.model_validate(
        {
            "intervention_id": "int",
            "command_id": run,
            "token": token(counter),
            "kind": kind,
            "by": "anna",
        }
    )


def test_an_intervention_is_passed_on_to_the_run_and_its_outcome_said(scene: Scene) -> None:
    tab = scene.running()
    wanted = _wants("pause")
    assert scene.hear(wanted) == [ev.Intervene(tab, wanted)]
    assert scene.on(ev.Intervened("int", "applied")) == []
    assert scene.said() == [wire.Intervened(intervention_id="int", outcome="applied")]


@pytest.mark.parametrize(
    ("wanted", "outcome"),
    [
        (_wants("pause", run="another"), "stale_target"),
        (_wants("pause", counter=2), "stale_target"),
        (_wants("message"), "capability_not_supported"),
    ],
)
def test_an_intervention_that_is_not_for_a_run_here_touches_nothing(
    scene: Scene, wanted: wire.Intervene, outcome: str
) -> None:
    scene.running()
    assert scene.hear(wanted) == []
    (said,) = scene.said()
    assert isinstance(said, wire.Intervened)
    assert said.outcome == outcome


def test_an_intervention_that_comes_after_the_end_is_stale(scene: Scene) -> None:
    scene.running()
    scene.ends()
    scene.said()
    assert scene.hear(_wants("resume")) == []
    (said,) = scene.said()
    assert isinstance(said, wire.Intervened)
    assert said.outcome == "stale_target"


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


# Data channels


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
