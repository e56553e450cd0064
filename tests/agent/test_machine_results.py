"""What was done is said, again and again, until it is stored."""

from agent.machine import events as ev
from farm.protocol import messages as wire
from tests.agent.scene import Scene, begun, of, result_of, token


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
