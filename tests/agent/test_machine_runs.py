"""What becomes of a run: stopped, refused, and in people's hands."""

import pytest

from agent.machine import events as ev
from agent.machine.events import Instruction
from farm.protocol import messages as wire
from farm.protocol.failures import Failure, Reason
from tests.agent.scene import Scene, contexts, plan, result_of, token


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
