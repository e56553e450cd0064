"""An agent of flows: contexts without a window, as many as it may have, none the worse for wear."""

from agent.machine import events as ev
from farm.protocol import messages as wire
from tests.agent.scene import HELLO, Scene

CONSOLE = HELLO.model_copy(
    update={
        "client_type": "console",
        "capacity": wire.Capacity(max_concurrency=2, max_flows=2),
    }
)


def console() -> Scene:
    scene = Scene(hello=CONSOLE)
    scene.welcomed()
    scene.said()
    return scene


def begin_flow(scene: Scene, command_id: str = "flow") -> str:
    assert scene.hear(wire.Command(command_id=command_id, body=wire.CreateFlow())) == []
    report, result = scene.said()
    assert isinstance(report, wire.Report)
    assert isinstance(result, wire.Result)
    assert result.outcome == "succeeded"
    return str(result.value["context_id"])


def test_a_flow_is_there_at_once_as_a_context_without_a_window() -> None:
    scene = console()
    scene.hear(wire.Command(command_id="flow", body=wire.CreateFlow()))
    report, result = scene.said()
    assert isinstance(report, wire.Report)
    assert isinstance(result, wire.Result)
    assert report.windows == ()
    (context,) = report.contexts
    assert (context.window_id, context.state, context.clean) == (None, "idle", True)
    assert result.value == {"context_id": context.context_id}


def test_no_more_flows_begin_than_there_may_be() -> None:
    scene = console()
    begin_flow(scene, "one")
    begin_flow(scene, "two")
    scene.hear(wire.Command(command_id="three", body=wire.CreateFlow()))
    (refusal,) = scene.said()
    assert isinstance(refusal, wire.Ack)
    assert refusal.refused == "busy"


def test_a_flow_is_clean_again_when_its_run_is_over_and_stays() -> None:
    scene = console()
    flow = begin_flow(scene)
    (start,) = scene.runs(flow, last=True)
    assert isinstance(start, ev.StartRun)
    assert start.window_id is None
    assert scene.ends() == []
    assert scene.releases(flow) == []
    (context,) = scene.reports()[-1].contexts
    assert (context.context_id, context.state, context.clean) == (flow, "idle", True)
    assert scene.passes(10_000) == []
    assert [type(i) for i in scene.runs(flow, 2, "again")] == [ev.StartRun]


def test_a_flow_whose_run_was_broken_off_has_nothing_of_it_left() -> None:
    scene = console()
    flow = begin_flow(scene)
    scene.runs(flow)
    scene.ends("cancelled", page_gone=True)
    scene.releases(flow)
    (context,) = scene.reports()[-1].contexts
    assert (context.context_id, context.clean) == (flow, True)


def test_flows_and_windows_are_asked_of_those_who_have_them() -> None:
    scene = console()
    scene.hear(wire.Command(command_id="w", body=wire.OpenWindow()))
    (refusal,) = scene.said()
    assert isinstance(refusal, wire.Ack)
    assert (refusal.refused, refusal.detail) == (
        "not_understood",
        "this agent has flows, not windows",
    )


def test_flows_of_another_life_are_not_there_any_more() -> None:
    scene = console()
    begin_flow(scene)
    assert [type(i) for i in scene.on(ev.BrowserLost("broken"))] == [ev.StartBrowser]
    scene.on(ev.BrowserStarted("epoch-2", "flows"))
    scene.welcome(2)
    assert scene.reports()[-1].contexts == ()


def test_nobody_is_shown_a_flow() -> None:
    scene = console()
    flow = begin_flow(scene)
    asked = wire.OpenChannel(channel_id="c" * 16, kind="live", context_id=flow, epoch_number=1)
    assert scene.hear(asked) == []
    (answer,) = scene.said()
    assert isinstance(answer, wire.ChannelRefused)
    assert answer.reason == "not_understood"
