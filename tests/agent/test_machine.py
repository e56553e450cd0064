"""What the agent does about what happens, as stories."""

import pytest

from agent.machine import events as ev
from agent.machine.events import Instruction
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from tests.agent.scene import (
    HELLO,
    Scene,
    begun,
    contexts,
    note,
    of,
    plan,
    result_of,
    token,
)


@pytest.fixture
def scene() -> Scene:
    return Scene()


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
